"""`sf_feedback`: what people thought of an answer (P-KNOW-RAG, step 6)."""

from __future__ import annotations

import os
import threading
from collections import Counter, OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final

from spanforge._text import MAX_NODES, Note, first, is_dict, unwrapped
from spanforge.config import SFClientConfig
from spanforge.namespaces.feedback import FeedbackRating, FeedbackSubmittedPayload, FeedbackSummaryPayload
from spanforge.namespaces.stages import FEEDBACK
from spanforge.sdk import _coerce as coerce
from spanforge.sdk._base import SFServiceClient, new_session_id
from spanforge.sdk._context import current_session
from spanforge.sdk._never_raises import never_raises

__all__ = ["FeedbackStatusInfo", "SFFeedbackClient"]

_MAX_SESSIONS: Final = 1_000
_MAX_PER_SESSION: Final = 100
_MAX_BYTES: Final = 8 << 20
_RATING_BYTES: Final = 1_500
_BYTES_PER_CHARACTER: Final = 4
_MAX_ISSUES: Final = 20
_COMMON_ISSUES: Final = 5
ALL_SESSIONS: Final = "*"

ISSUE_CODES: Final = frozenset(
    {
        "incomplete_context",
        "incorrect_answer",
        "irrelevant_answer",
        "missing_citation",
        "not_grounded",
        "outdated_info",
        "too_long",
        "too_slow",
        "unclear",
        "unsafe",
        "wrong_source",
    }
)
"""What `metadata["issues"]` may name. A closed list: an open one would let a comment through as a code."""


@dataclass(frozen=True)
class FeedbackStatusInfo:
    """How feedback is doing in this process.

    Attributes:
        status: `ok`, or `degraded` where a sink is down or has lost events.
        total_submitted: Ratings accepted.
        sessions_tracked: Sessions whose ratings are remembered.
    """

    status: str
    total_submitted: int
    sessions_tracked: int


_NO_STATUS: Final = FeedbackStatusInfo("degraded", 0, 0)
_NO_SUMMARY: Final = FeedbackSummaryPayload(session_id=ALL_SESSIONS)


def _size(payload: FeedbackSubmittedPayload) -> int:
    """Estimate the bytes a rating takes."""
    return _RATING_BYTES + _BYTES_PER_CHARACTER * len(str(payload.metadata))


class _Ratings:
    """The latest ratings by session, bounded, and how many there were in all.

    Attributes:
        pid: The process they were submitted in.
        submitted: Ratings accepted.
    """

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.submitted = 0
        self._lock = threading.RLock()
        self._kept: OrderedDict[str, list[FeedbackSubmittedPayload]] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, payload: FeedbackSubmittedPayload) -> None:
        with self._lock:
            self.submitted += 1
            kept = self._kept.setdefault(payload.session_id, [])
            self._kept.move_to_end(payload.session_id)
            kept.append(payload)
            self._bytes += _size(payload) - sum(_size(old) for old in kept[:-_MAX_PER_SESSION])
            del kept[:-_MAX_PER_SESSION]
            while len(self._kept) > _MAX_SESSIONS or (self._bytes > _MAX_BYTES and len(self._kept) > 1):
                _, oldest = self._kept.popitem(last=False)
                self._bytes -= sum(_size(old) for old in oldest)

    def of(self, session_id: str) -> list[FeedbackSubmittedPayload]:
        with self._lock:
            return list(self._kept.get(session_id, ()))

    def all(self) -> list[FeedbackSubmittedPayload]:
        with self._lock:
            return [payload for payloads in self._kept.values() for payload in payloads]


def _no_feedback_id(client: SFFeedbackClient, /, *_args: Any, **_kwargs: Any) -> str:
    return new_session_id(client)


def _no_ratings(*_args: Any, **_kwargs: Any) -> list[dict[str, Any]]:
    return []


def _no_summary(*_args: Any, **_kwargs: Any) -> FeedbackSummaryPayload:
    return _NO_SUMMARY


def _no_status(*_args: Any, **_kwargs: Any) -> FeedbackStatusInfo:
    return _NO_STATUS


class SFFeedbackClient(SFServiceClient):
    """Collects ratings, emits them as events, and remembers the latest of them in this process.

    At most 100 ratings of each of the latest 1,000 sessions are remembered; every one is emitted.

    Args:
        config: None, as for `sf_feedback`, shares the process's configuration.
    """

    def __init__(self, config: SFClientConfig | None = None) -> None:
        super().__init__(config, "feedback")
        self._ratings = _Ratings()

    @never_raises(_no_feedback_id, last="")
    def submit(
        self,
        session_id: str | None = None,
        trace_id: str = "",
        rating: str | FeedbackRating = FeedbackRating.FREE_TEXT,
        *,
        comment: str | None = None,
        user_id: str | None = None,
        source: str = "api",
        metadata: Mapping[str, object] | None = None,
    ) -> str:
        """Record a rating.

        Args:
            session_id: The run it is about; may be left out inside a scope.
            trace_id: The trace it is about.
            rating: `thumbs_up`, `thumbs_down`, `star_1` … `star_5`, `likert_1` … `likert_5` or `free_text`; anything
                else is recorded as `free_text`, and counted.
            comment: What was said; only its digest is kept.
            user_id: Who said it; only its digest is kept.
            source: Channel it came by.
            metadata: Further values; under `issues`, codes of what was wrong (`incomplete_context`, `outdated_info` …),
                and under `relevance`, the ids of chunks with their grades: 0, not relevant, to 3.

        Returns:
            The id of the rating, a ULID.
        """
        runtime = self.cell.get()
        note, hasher = runtime.note, runtime.cleaner.hasher
        feedback_id = runtime.new_session_id()
        if runtime.settings.disabled:
            return feedback_id
        own_id = coerce.session_id(session_id if session_id is not None else current_session.get(), note)
        chosen = FeedbackRating(
            coerce.choice(rating, "rating", frozenset(FeedbackRating), note, otherwise=FeedbackRating.FREE_TEXT)
        )
        issues, details = _without_issues(metadata)
        payload = FeedbackSubmittedPayload(
            feedback_id=feedback_id,
            session_id=own_id or feedback_id,
            trace_id=coerce.name(trace_id, "trace_id", note),
            rating=chosen,
            comment_hash=hasher.digest(text) if (text := coerce.query_text(comment, note)) else "",
            user_id_hash=hasher.digest(user) if (user := _user(user_id, note)) else "",
            source=coerce.name(source, "source", note),
            metadata=runtime.cleaner.mapping(details, note),
            value=chosen.numeric_value(),
            issues=tuple(_codes(issues, note)),
        )
        self._own_ratings().add(payload)
        record = payload.to_dict()
        record["rating"] = chosen.value
        runtime.outside(FEEDBACK, payload.session_id, record, _size(payload))
        return feedback_id

    @never_raises(_no_ratings, [])
    def get_feedback(
        self, session_id: str, *, rating_filter: str | FeedbackRating | None = None
    ) -> list[dict[str, object]]:
        """Return the ratings of a session that this process remembers, in the order they were submitted."""
        kept = self._own_ratings().of(coerce.identifier(session_id) or "")
        wanted = None if rating_filter is None else unwrapped(rating_filter)
        return [payload.to_dict() for payload in kept if wanted is None or payload.rating == wanted]

    @never_raises(_no_summary, _NO_SUMMARY)
    def get_summary(self, session_id: str = ALL_SESSIONS) -> FeedbackSummaryPayload:
        """Return what the remembered ratings of a session, or of all sessions, come to."""
        own_id = coerce.identifier(session_id) or ALL_SESSIONS
        ratings = self._own_ratings()
        return summarise(own_id, ratings.all() if own_id == ALL_SESSIONS else ratings.of(own_id))

    @never_raises(_no_status, _NO_STATUS)
    def get_status(self) -> FeedbackStatusInfo:
        """Return how many ratings were accepted, and whether they arrive."""
        degraded = any(ledger.degraded for ledger in self.cell.get().dispatchers.ledgers().values())
        ratings = self._own_ratings()
        return FeedbackStatusInfo("degraded" if degraded else "ok", ratings.submitted, len(ratings))

    def _own_ratings(self) -> _Ratings:
        """Return the ratings of this process: a forked child begins with none, and with a lock nobody holds."""
        if self._ratings.pid != os.getpid():
            self._ratings = _Ratings()
        return self._ratings


def summarise(session_id: str, ratings: list[FeedbackSubmittedPayload]) -> FeedbackSummaryPayload:
    """Fold ratings into a summary: means on the scale of 1 to 5, helpful from 4 points or thumbs up."""
    counts = Counter(payload.rating for payload in ratings)
    points = [value for payload in ratings if (value := payload.rating.points) is not None]
    helpful = [value for payload in ratings if (value := payload.rating.helpful) is not None]
    issues = Counter(code for payload in ratings for code in payload.issues)
    return FeedbackSummaryPayload(
        session_id=session_id,
        total_feedback=len(ratings),
        thumbs_up_count=counts[FeedbackRating.THUMBS_UP],
        thumbs_down_count=counts[FeedbackRating.THUMBS_DOWN],
        avg_rating=fmean(points) if points else None,
        helpful_rate=sum(helpful) / len(helpful) if helpful else None,
        free_text_count=counts[FeedbackRating.FREE_TEXT],
        counts={rating.value: count for rating, count in sorted(counts.items())},
        common_issues=tuple(
            code for code, _ in sorted(issues.items(), key=lambda pair: (-pair[1], pair[0]))[:_COMMON_ISSUES]
        ),
        avg_star_rating=_mean_of(ratings, "star_"),
        avg_likert_score=_mean_of(ratings, "likert_"),
    )


def _mean_of(ratings: list[FeedbackSubmittedPayload], prefix: str) -> float | None:
    points = [payload.rating.points or 0 for payload in ratings if payload.rating.startswith(prefix)]
    return fmean(points) if points else None


def _user(user_id: object, note: Note) -> str:
    text = coerce.identifier(user_id)
    if text is None and user_id is not None:
        note("user_id")
    return text or ""


def _without_issues(metadata: object) -> tuple[object, object]:
    """Return what stands under `issues`, and all else of which any is kept."""
    if not is_dict(metadata):
        return (), metadata
    details = dict(first(lambda: dict[Any, Any].items(metadata), MAX_NODES + 2))
    details.pop("issues", None)
    return dict[Any, Any].get(metadata, "issues", ()), details


def _codes(issues: object, note: Note) -> list[str]:
    """Return the known issue codes among those given; anything else may be text, and is left out."""
    codes: list[str] = []
    given = unwrapped(issues)
    found, count = ([given], 1) if type(given) is str else coerce.elements(given, _MAX_ISSUES) or ([], 0)
    if count > _MAX_ISSUES:
        note("issues")
    for issue in found:
        code = unwrapped(issue)
        if type(code) is str and code in ISSUE_CODES:
            codes.append(code)
        else:
            note("issues")
    return codes
