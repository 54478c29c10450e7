"""The SDK: `from spanforge.sdk import sf_rag, sf_feedback`."""

from __future__ import annotations

from typing import Any

from spanforge._absent import sentence
from spanforge.config import SecretStr, ServerSettings, Settings, SFClientConfig
from spanforge.sdk._base import SFServiceClient
from spanforge.sdk.feedback import FeedbackStatusInfo, SFFeedbackClient
from spanforge.sdk.rag import RAGStatusInfo, SFRAGClient
from spanforge.sessions.aggregate import SessionAggregate

__all__ = [
    "FeedbackStatusInfo",
    "RAGStatusInfo",
    "SFClientConfig",
    "SFFeedbackClient",
    "SFRAGClient",
    "SFServiceClient",
    "SecretStr",
    "ServerSettings",
    "SessionAggregate",
    "Settings",
    "configure",
    "sf_feedback",
    "sf_rag",
]

sf_rag = SFRAGClient()
"""Traces RAG runs: one object for the process's life."""

sf_feedback = SFFeedbackClient()
"""Takes ratings, and shares `sf_rag`'s configuration and delivery."""


def configure(config: SFClientConfig | None = None, **settings: Any) -> None:
    """Configure the process: keywords win over `SPANFORGE_*` variables, which win over the defaults.

    Args:
        config: A configuration of the earlier package, if one is at hand.
        settings: Fields of `spanforge.config.Settings`.

    Raises:
        ConfigError: A setting cannot be used; the message names it, and nothing has changed.
    """
    sf_rag.configure(**{**(config.as_overrides() if config else {}), **settings})


def __getattr__(name: str) -> Any:
    raise AttributeError(sentence(f"spanforge.sdk.{name}"))
