"""What the settings say to the parts of a runtime."""

from __future__ import annotations

from typing import Any

from spanforge._hashing import Hasher, utf8
from spanforge._text import Cleaner
from spanforge.config import Settings
from spanforge.delivery.writer import DeliveryPolicy

__all__ = ["cleaner_of", "limits_of", "policy_of"]


def cleaner_of(settings: Settings) -> Cleaner:
    """Return what hashes, scrubs and drops text."""
    key = settings.hash_key
    return Cleaner(
        Hasher(utf8(key.get_secret_value()) if key else None),
        settings.metadata_allow,
        capture=settings.capture_messages,
    )


def policy_of(settings: Settings) -> DeliveryPolicy:
    """Return how hard workers try."""
    return DeliveryPolicy(
        source=settings.source,
        batch_events=settings.batch_events,
        batch_delay_s=settings.batch_delay_s,
        max_attempts=settings.max_attempts,
        backoff_s=settings.backoff_s,
        max_backoff_s=settings.max_backoff_s,
    )


def limits_of(settings: Settings) -> dict[str, Any]:
    """Return the limits of the session table."""
    return {
        "max_open": settings.max_sessions,
        "retained": settings.retained_sessions,
        "idle_s": settings.session_idle_s,
        "id_cap": settings.max_chunk_ids,
        "open_ids": settings.max_open_chunk_ids,
    }
