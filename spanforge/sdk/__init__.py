"""The SDK: `from spanforge.sdk import sf_rag, sf_feedback`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from spanforge._absent import explained
from spanforge.config import SecretStr, ServerSettings, Settings, SFClientConfig
from spanforge.delivery.ledger import DeliveryReceipt
from spanforge.sdk._base import SFServiceClient
from spanforge.sdk._keywords import SettingsDetails
from spanforge.sdk.feedback import FeedbackStatusInfo, SFFeedbackClient
from spanforge.sdk.rag import RAGStatusInfo, SFRAGClient
from spanforge.sessions.fold import SessionAggregate
from spanforge.sessions.stored import StoredSession, StoredTotals, is_sound, stored_sessions

__all__ = [
    "DeliveryReceipt",
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
    "StoredSession",
    "StoredTotals",
    "configure",
    "flush",
    "get_status",
    "is_sound",
    "sf_feedback",
    "sf_rag",
    "shutdown",
    "stored_sessions",
]

sf_rag = SFRAGClient()
"""Traces RAG runs: one object for the process's life."""

sf_feedback = SFFeedbackClient()
"""Takes ratings, and shares `sf_rag`'s configuration and delivery."""


flush = sf_rag.flush
shutdown = sf_rag.shutdown
get_status = sf_rag.get_status


def configure(config: SFClientConfig | None = None, **settings: Unpack[SettingsDetails]) -> None:
    """Configure the process: keywords win over `SPANFORGE_*` variables, which win over the defaults.

    Every call configures anew: what it does not name, the sinks too, is what the environment says, or the default.

    Args:
        config: A configuration of the earlier package, if one is at hand.
        settings: Fields of `spanforge.config.Settings`.

    Raises:
        ConfigError: A setting cannot be used; the message names it, and nothing has changed.
    """
    sf_rag.cell.configure({**(config.as_overrides() if config else {}), **settings})


# Hidden from type checkers, who would believe that every name is there.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        raise explained(__name__, name)
