"""Stored events as sessions: the same fold as the live table, over whatever was written."""

from spanforge.analysis.sessions import StoredSession, stored_sessions

__all__ = ["StoredSession", "stored_sessions"]
