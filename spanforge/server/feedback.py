"""What people think of an answer, and whose opinion of which run is taken."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Final

from spanforge.reader.store import connect
from spanforge.reference.feedback import record_rating
from spanforge.sdk import sf_rag
from spanforge.server.auth.permissions import ADMINS
from spanforge.server.models import Feedback
from spanforge.server.problems import Problem

if TYPE_CHECKING:
    from pathlib import Path

    from spanforge.reference import User
    from spanforge.server.models import FeedbackRequest

_ASKED: Final = (
    "SELECT json_extract(line, '$.actor_id') FROM events "
    "WHERE session_id = ? AND org_id = ? AND event_type IN ('llm.rag.query', 'llm.rag.session')"
)
_FLUSH_S: Final = 2.0


def rate(events: Path, user: User, session_id: str, wanted: FeedbackRequest) -> Feedback:
    """Record what the user thinks of a run: of one's own, or for an admin of any of the organisation.

    Args:
        events: The server's own store of events.
        user: Who rates.
        session_id: The run.
        wanted: The rating.

    Raises:
        Problem: There is no such run that the user may rate.
    """
    if not may_rate(events, user, session_id):
        # What was traced just now may be on its way to the store still.
        sf_rag.flush(_FLUSH_S)
        if not may_rate(events, user, session_id):
            raise Problem("NOT_FOUND")
    made = record_rating(session_id, wanted.rating, comment=wanted.comment, issues=wanted.issues, user_id=user.user_id)
    return Feedback(feedback_id=made, session_id=session_id)


def may_rate(events: Path, user: User, session_id: str) -> bool:
    """Tell whether the store holds a run that a user asked, or administers."""
    if not events.is_file():
        return False
    try:
        with closing(connect(events)) as connection:
            actors = connection.execute(_ASKED, (session_id, user.org_id)).fetchall()
    except sqlite3.Error:
        return False
    return bool(actors) and (bool(user.roles & ADMINS) or (user.user_id,) in actors)
