"""What travels with the context, across tasks and copied contexts: the session, and who events are made for."""

from __future__ import annotations

from contextvars import ContextVar

from spanforge.namespaces.event import Binding

__all__ = ["bound", "current_session"]

current_session: ContextVar[str | None] = ContextVar("spanforge_session", default=None)
bound: ContextVar[Binding | None] = ContextVar("spanforge_binding", default=None)
