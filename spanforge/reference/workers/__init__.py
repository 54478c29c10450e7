"""Processes in which documents are read: each is held to `Limits`, may be killed, and takes nobody else with it."""

from __future__ import annotations

from spanforge.reference.workers.pool import DEFAULT_LIMITS, TOO_COSTLY, WORKERS, CalledOff, Limits, Workers

__all__ = ["DEFAULT_LIMITS", "TOO_COSTLY", "WORKERS", "CalledOff", "Limits", "Workers"]
