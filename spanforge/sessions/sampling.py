"""Which sessions are sent: decided by the session id alone, so that all processes agree without talking."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from spanforge.namespaces.stages import ESCALATED

__all__ = ["always_kept", "is_sampled"]

_SCALE = 1 << 64


def is_sampled(session_id: str, rate: float) -> bool:
    """Tell whether a session belongs to the share `rate`, in [0, 1], whose stages are sent."""
    if rate >= 1.0:
        return True
    digest = sha256(b"sample:" + session_id.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") < rate * _SCALE


def always_kept(event_type: str, payload: Mapping[str, Any], grounding_below: float) -> bool:
    """Tell whether one event is reason enough to keep its whole session, whatever the rate."""
    if event_type == ESCALATED or payload.get("status") in {"error", "timeout"}:
        return True
    score = payload.get("grounding_score")
    return score is not None and score < grounding_below
