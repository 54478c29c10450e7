"""Judgements of passages, from what people said of the answers that were made of them.

Events hold no question, only its digest, and of passages their ids: so do the judgements.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any, Final, cast

from spanforge._hashing import Hasher
from spanforge.namespaces.feedback import FeedbackRating
from spanforge.namespaces.stages import FEEDBACK, GENERATED, QUERY, RERANKED, RETRIEVED
from spanforge.sdk import StoredSession

RELEVANCE: Final = "relevance"
"""Key in the metadata of a rating under which stands chunk id → grade: what somebody said of single passages."""
_BEST: Final = 3
_HELPED: Final = 3
"""Points of 5 above which an answer helped; each point above is a grade of its passages."""
_OF_THE_WORDING: Final = frozenset({"missing_citation", "too_long", "too_slow", "unclear", "unsafe"})


def judgements_of(sessions: Iterable[StoredSession], hashers: Sequence[Hasher]) -> dict[str, dict[str, int]]:
    """Return digest of the question → chunk id → grade, the mean of what was said.

    The passages of an answer share its ratings: from 4 points of 5 on they are relevant (1, and 2 for 5 points), below
    they are not (0). A poor rating whose issues are all of the wording says nothing of them. Grades that stand under
    `RELEVANCE`, from 0 to 3, come before. Runs with several questions are left out: nobody says which one is rated.

    Args:
        sessions: Runs with all their events.
        hashers: Those that chunk ids in the metadata of ratings may have been digested by.
    """
    points: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    grades: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for session in sessions:
        asked = {payload["query_hash"] for payload in _payloads(session, QUERY)}
        if len(asked) != 1:
            continue
        digest = asked.pop()
        used = {chunk for payload in _payloads(session, GENERATED) for chunk in payload.get("chunk_ids_used") or ()}
        lists = (payload.get("chunks") or () for payload in _payloads(session, RETRIEVED, RERANKED))
        shown = {chunk["chunk_id"] for chunks in lists for chunk in chunks}
        # Keys inside the metadata of a rating become digests on their way.
        names = {
            name: chunk for chunk in used | shown for name in (chunk, *(by.labelled("key", chunk) for by in hashers))
        }
        for payload in _payloads(session, FEEDBACK):
            value, issues = FeedbackRating(payload["rating"]).points, set(payload.get("issues", ()))
            if value is not None and (value > _HELPED or not issues or issues - _OF_THE_WORDING):
                for chunk in used:
                    points[digest, chunk].append(value)
            for name, grade in _mapping(payload.get("metadata", {}).get(RELEVANCE)).items():
                if name in names and isinstance(grade, int | float) and 0 <= grade <= _BEST:
                    grades[digest, names[name]].append(grade)
    found: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for (digest, chunk), said in points.items():
        found[digest][chunk] = max(0, int(fmean(said)) - _HELPED)
    for (digest, chunk), said in grades.items():
        found[digest][chunk] = int(fmean(said) + 0.5)
    return dict(found)


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _payloads(session: StoredSession, *event_types: str) -> list[Mapping[str, Any]]:
    return [event.payload for event in session.events if event.event_type in event_types]
