"""spanforge: in-process, local-first observability for Retrieval-Augmented Generation.

Everything is reached through this door, and loaded when it is first used.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

from spanforge._absent import explained
from spanforge._version import __version__

if TYPE_CHECKING:
    from spanforge.delivery.ledger import SinkLedger
    from spanforge.exceptions import (
        ConfigError,
        DecodeError,
        InvalidPayloadError,
        MissingExtraError,
        SinkWriteError,
        SpanforgeError,
        StrictModeError,
        UnknownSessionError,
    )
    from spanforge.namespaces.event import Event
    from spanforge.namespaces.feedback import FeedbackRating, FeedbackSubmittedPayload, FeedbackSummaryPayload
    from spanforge.namespaces.retrieval import (
        EscalationPayload,
        RAGEvaluationPayload,
        RAGSessionPayload,
        RAGSpanPayload,
        RerankPayload,
        RetrievalQueryPayload,
        RetrievalResultPayload,
        RetrievedChunk,
    )
    from spanforge.reader import EventReader, follow, read_events
    from spanforge.sdk import (
        DeliveryReceipt,
        FeedbackStatusInfo,
        RAGStatusInfo,
        SecretStr,
        SessionAggregate,
        Settings,
        SFClientConfig,
        SFFeedbackClient,
        SFRAGClient,
        configure,
        flush,
        get_status,
        sf_feedback,
        sf_rag,
        shutdown,
    )
    from spanforge.sinks.base import Receipt, Sink

__all__ = [
    "ConfigError",
    "DecodeError",
    "DeliveryReceipt",
    "EscalationPayload",
    "Event",
    "EventReader",
    "FeedbackRating",
    "FeedbackStatusInfo",
    "FeedbackSubmittedPayload",
    "FeedbackSummaryPayload",
    "InvalidPayloadError",
    "MissingExtraError",
    "RAGEvaluationPayload",
    "RAGSessionPayload",
    "RAGSpanPayload",
    "RAGStatusInfo",
    "Receipt",
    "RerankPayload",
    "RetrievalQueryPayload",
    "RetrievalResultPayload",
    "RetrievedChunk",
    "SFClientConfig",
    "SFFeedbackClient",
    "SFRAGClient",
    "SecretStr",
    "SessionAggregate",
    "Settings",
    "Sink",
    "SinkLedger",
    "SinkWriteError",
    "SpanforgeError",
    "StrictModeError",
    "UnknownSessionError",
    "__version__",
    "configure",
    "flush",
    "follow",
    "get_status",
    "read_events",
    "sf_feedback",
    "sf_rag",
    "shutdown",
]

# Hidden from type checkers, who would believe that every name is there.
if not TYPE_CHECKING:
    _HOMES = {
        "spanforge.delivery.ledger": {"SinkLedger"},
        "spanforge.exceptions": {name for name in __all__ if name.endswith("Error")},
        "spanforge.namespaces.event": {"Event"},
        "spanforge.namespaces.feedback": {"FeedbackRating", "FeedbackSubmittedPayload", "FeedbackSummaryPayload"},
        "spanforge.reader": {"EventReader", "follow", "read_events"},
        "spanforge.sinks.base": {"Receipt", "Sink"},
        "spanforge.namespaces.retrieval": {name for name in __all__ if name.endswith(("Payload", "Chunk"))},
    }

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise explained(__name__, name)
        home = next((module for module, names in _HOMES.items() if name in names), "spanforge.sdk")
        return getattr(import_module(home), name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


# What it says, `auto` reads: this package alone stays light to import where nobody asked.
if "SPANFORGE_AUTO" in os.environ:
    import_module("spanforge.auto")
