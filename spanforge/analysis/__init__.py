"""Stored events as sessions: the same fold as the live table, over whatever was written."""

from spanforge.analysis.sessions import StoredSession, is_sound, stored_sessions

__all__ = ["StoredSession", "is_sound", "stored_sessions"]
