"""What people thought of an answer (protocol step 6), and the escalation that a poor rating asks for (step 7)."""

from __future__ import annotations

from collections.abc import Sequence

from spanforge.namespaces.feedback import FeedbackRating
from spanforge.reference.failures import InvalidInput
from spanforge.reference.models import RagResult
from spanforge.sdk import sf_feedback, sf_rag

POOR_RATING = 2
"""Rating on the scale of 1 to 5 up to which a person is asked (protocol, automatic triggers)."""
_BEST, _WORST = 5, 1


def submit_feedback(
    result: RagResult,
    rating: int,
    *,
    comment: str | None = None,
    issues: Sequence[str] = (),
    user_id: str | None = None,
) -> str:
    """Record a rating of a result, and ask for a person where it is poor.

    Args:
        result: The result that was rated; its session is the join key.
        rating: 1 (worst) to 5 (best).
        comment: What was said; only its digest is recorded.
        issues: Codes of what was wrong, such as ``incomplete_context`` or ``outdated_info``.
        user_id: Who said it; only its digest is recorded.

    Returns:
        The id of the rating.

    Raises:
        InvalidInput: ``rating`` is not between 1 and 5.
    """
    if not _WORST <= rating <= _BEST:
        raise InvalidInput("rating must be a whole number from 1 to 5.")
    return record_rating(
        result.session_id,
        FeedbackRating(f"star_{rating}"),
        comment=comment,
        issues=issues,
        user_id=user_id,
        status=result.status.value,
    )


def record_rating(
    session_id: str,
    rating: FeedbackRating,
    *,
    comment: str | None = None,
    issues: Sequence[str] = (),
    user_id: str | None = None,
    status: str = "",
) -> str:
    """Do as `submit_feedback` does with any rating: thumbs, stars, a Likert answer, or a comment alone.

    ``status`` is how the run ended, where that is known.
    """
    metadata = {"issues": list(issues), **({"status": status} if status else {})}
    feedback_id = sf_feedback.submit(session_id, rating=rating, comment=comment, user_id=user_id, metadata=metadata)
    if rating.points is not None and rating.points <= POOR_RATING:
        value, threshold = float(rating.points), float(POOR_RATING)
        sf_rag.escalate(session_id, "low-rating", trigger="rating", level=1, value=value, threshold=threshold)
    return feedback_id
