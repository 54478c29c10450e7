"""What people thought of an answer (protocol step 6), and the escalation that a poor rating asks for (step 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spanforge.reference.failures import InvalidInput
from spanforge.sdk import sf_feedback, sf_rag

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spanforge.reference.models import RagResult

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
    feedback_id = sf_feedback.submit(
        result.session_id,
        rating=f"star_{rating}",
        comment=comment,
        user_id=user_id,
        metadata={"issues": list(issues), "status": result.status.value},
    )
    if rating <= POOR_RATING:
        value, threshold = float(rating), float(POOR_RATING)
        sf_rag.escalate(result.session_id, "low-rating", trigger="rating", level=1, value=value, threshold=threshold)
    return feedback_id
