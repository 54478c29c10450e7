"""Payloads of the `llm.feedback.*` events: what people thought of an answer (P-KNOW-RAG, step 6)."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import Field

from spanforge.namespaces.payload import Count, Finite, NonEmpty, Payload, Score, payload

__all__ = ["FeedbackRating", "FeedbackSubmittedPayload", "FeedbackSummaryPayload"]


class FeedbackRating(StrEnum):
    """The ratings `sf_feedback.submit` takes."""

    THUMBS_UP = "thumbs_up"
    THUMBS_DOWN = "thumbs_down"
    STAR_1 = "star_1"
    STAR_2 = "star_2"
    STAR_3 = "star_3"
    STAR_4 = "star_4"
    STAR_5 = "star_5"
    LIKERT_1 = "likert_1"
    LIKERT_2 = "likert_2"
    LIKERT_3 = "likert_3"
    LIKERT_4 = "likert_4"
    LIKERT_5 = "likert_5"
    FREE_TEXT = "free_text"

    @property
    def points(self) -> int | None:
        """The rating on the scale of 1 to 5; thumbs are its ends, free text is not on it (None)."""
        if self is FeedbackRating.FREE_TEXT:
            return None
        return {"up": 5, "down": 1}.get(self.value.rpartition("_")[2]) or int(self.value[-1])

    def numeric_value(self) -> float | None:
        """Return the rating as a number in [0, 1], None for free text."""
        points = self.points
        return None if points is None else (points - 1) / 4

    @property
    def helpful(self) -> bool | None:
        """True from 4 points up; None for free text."""
        return None if self.points is None else self.points >= 4  # noqa: PLR2004  the protocol's own threshold


@payload
class FeedbackSubmittedPayload(Payload):
    """`llm.feedback.submitted`: somebody rated an answer.

    Attributes:
        feedback_id: ULID of this rating.
        session_id: The run it is about.
        trace_id: The trace it is about, kept as given.
        rating: One of `FeedbackRating`.
        comment_hash: Digest of the comment, or empty.
        user_id_hash: Digest of the user id, or empty.
        source: Channel it came by, kept as given.
        metadata: JSON-safe values; free text as type and digest.
        value: The rating in [0, 1]; absent for free text.
        issues: Codes of what was wrong, as the caller named them.
    """

    feedback_id: NonEmpty
    session_id: NonEmpty
    trace_id: str
    rating: FeedbackRating
    comment_hash: str = ""
    user_id_hash: str = ""
    source: str = "api"
    metadata: dict[str, Any] = Field(default_factory=dict[str, Any])
    value: Score | None = None
    issues: tuple[str, ...] = ()


@payload
class FeedbackSummaryPayload(Payload):
    """What the ratings of a session, or of all sessions, come to.

    Attributes:
        session_id: The session, or `*` for all.
        total_feedback: Ratings received.
        thumbs_up_count: Thumbs up.
        thumbs_down_count: Thumbs down.
        avg_rating: Mean on the scale of 1 to 5 over stars, Likert answers and thumbs; absent if there were none.
        helpful_rate: Share of those that were helpful (4 or more, or thumbs up), in [0, 1]; absent if none.
        free_text_count: Comments without a rating.
        counts: Ratings by name.
        common_issues: Issue codes, most frequent first.
        avg_star_rating: Mean of the stars alone.
        avg_likert_score: Mean of the Likert answers alone.
    """

    session_id: NonEmpty
    total_feedback: Count = 0
    thumbs_up_count: Count = 0
    thumbs_down_count: Count = 0
    avg_rating: Finite | None = None
    helpful_rate: Score | None = None
    free_text_count: Count = 0
    counts: dict[str, int] = Field(default_factory=dict[str, int])
    common_issues: tuple[str, ...] = ()
    avg_star_rating: Finite | None = None
    avg_likert_score: Finite | None = None
