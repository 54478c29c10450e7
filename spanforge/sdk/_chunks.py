"""Retrieval results as stores and frameworks hand them over, as plain chunk payloads.

Text is hashed here, in the caller's call, and goes no further.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, cast

from spanforge._text import Cleaner, Note
from spanforge.sdk._hits import plain_payload, read_hit
from spanforge.sdk._scores import Leaning, leaning_of, normalise
from spanforge.sdk._shapes import MAX_RESULTS, Result, results

__all__ = ["ChunkCollector", "Chunks", "joined", "read_chunks"]

_CHUNK_BYTES: Final = 480
_BYTES_PER_CHARACTER: Final = 4


class Chunks(NamedTuple):
    """What was found for one query, read.

    Attributes:
        payloads: A payload for each chunk, in the order given.
        given: How many chunks there were before any cut.
        total: How many matches the store says there are, at least those given.
        is_partial: Whether something was given that could not be read.
        rule: How scores were mapped to [0, 1]; None where they were not.
        size: Estimated bytes.
    """

    payloads: list[dict[str, Any]]
    given: int
    total: int
    is_partial: bool
    rule: str | None
    size: int


def read_chunks(hits: Any, cleaner: Cleaner, note: Note, limit: int, metric: str = "") -> list[Chunks]:
    """Read what was found, of any known shape, or as a collector has read it; a batch of queries has a result for each.

    What cannot be used is replaced or left out, and noted.
    """
    if type(hits) in _READ_ALREADY:
        return hits.results(metric)
    # Most results are lists of dicts that say exactly what chunks are, and need nobody to collect them.
    listed = cast("list[Any]", hits if type(hits) is list else ())
    if not metric and 0 < len(listed) <= limit and (plain := _all_plain(listed)) is not None:
        return [plain]
    collector = ChunkCollector(cleaner, note, limit)
    collector.add(hits)
    return collector.results(metric)


def _all_plain(hits: list[Any]) -> Chunks | None:
    """Read hits that are dicts of nothing but the plain keys; None where one is not."""
    payloads: list[dict[str, Any]] = []
    size = _CHUNK_BYTES * len(hits)
    for hit in hits:
        payload = plain_payload(cast("dict[str, Any]", hit)) if type(hit) is dict else None
        if payload is None:
            return None
        payloads.append(payload)
        size += len(payload["source"])
    return Chunks(payloads, len(payloads), len(payloads), False, None, size)


class _Found:
    """What one query has found so far."""

    __slots__ = ("given", "is_mapped", "is_partial", "leaning", "payloads", "size", "total")

    def __init__(self) -> None:
        self.payloads: list[dict[str, Any]] = []
        self.given = self.total = self.size = 0
        self.is_mapped = self.is_partial = False
        self.leaning: Leaning | None = None


class ChunkCollector:
    """Reads a result at once or bit by bit; only the whole of it decides how scores are mapped.

    Args:
        cleaner: The privacy policy.
        note: Told of what is replaced or left out.
        limit: Chunks kept.
    """

    __slots__ = ("_cleaner", "_found", "_note", "_room", "limit")

    def __init__(self, cleaner: Cleaner, note: Note, limit: int) -> None:
        self._cleaner = cleaner
        self._note = note
        self.limit = self._room = limit
        self._found = [_Found()]

    def add(self, hits: Any) -> None:
        """Read some hits; their text is hashed now. Those of a further query begin a result of their own."""
        found = results(hits, max(1, self._room), self._note)
        if len(found) > MAX_RESULTS:
            self._note("chunks_too_many")
        for number, result in enumerate(found[:MAX_RESULTS]):
            if number:
                self._found.append(_Found())
            self._add(self._found[-1], result)

    def _add(self, found: _Found, result: Result) -> None:
        found.leaning = found.leaning or result.leaning
        found.is_partial = found.is_partial or bool(result.unreadable)
        for position, hit in enumerate(result.hits[: self._room], found.given + 1):
            # What turns out to be no hit was looked at all the same.
            self._room -= 1
            # A dict that already says exactly what a chunk is, which most are, goes the short way.
            payload = plain_payload(cast("dict[str, Any]", hit)) if type(hit) is dict else None
            if payload is None:
                payload = read_hit(hit, position, self._cleaner, self._note)
                if payload is None:
                    self._note("chunks_unreadable")
                    found.is_partial = True
                    continue
                found.is_mapped = found.is_mapped or "score" not in payload or "raw_score" in payload
                found.size += _BYTES_PER_CHARACTER * len(str(payload["metadata"]))
            found.size += _CHUNK_BYTES + len(payload["source"])
            found.payloads.append(payload)
        found.given += result.given
        found.total = max(found.total, found.given, result.total or 0)

    @property
    def chunk_ids(self) -> Iterator[str]:
        """The ids of what was read so far."""
        return (payload["chunk_id"] for found in self._found for payload in found.payloads)

    def results(self, metric: str = "") -> list[Chunks]:
        """Return what was read, the scores of each result mapped by one rule."""
        return [self._result(found, metric) for found in self._found]

    def _result(self, found: _Found, metric: str) -> Chunks:
        if found.given > len(found.payloads) and not self._room:
            self._note("chunks_too_many")
        is_mapped = found.is_mapped or metric
        rule = _map_scores(found.payloads, found.leaning, metric, self._note) if is_mapped else None
        return Chunks(found.payloads, found.given, found.total, found.is_partial, rule, found.size)


class _Joined:
    """What several calls have found, as one result: the scores of each are mapped by a rule of their own."""

    def __init__(self, collectors: Sequence[ChunkCollector]) -> None:
        self._collectors = collectors

    def results(self, metric: str = "") -> list[Chunks]:
        """Return it; no more chunks than one of the calls might have found."""
        found = [result for one in self._collectors for result in one.results(metric)]
        rules = {one.rule for one in found if one.payloads}
        return [
            Chunks(
                [payload for one in found for payload in one.payloads][: self._collectors[0].limit],
                sum(one.given for one in found),
                sum(one.total for one in found),
                any(one.is_partial for one in found),
                rules.pop() if len(rules) == 1 else None,
                sum(one.size for one in found),
            )
        ]


def joined(collectors: Sequence[ChunkCollector]) -> ChunkCollector | _Joined | None:
    """Return what calls have found within one stage, to be given to its trace call."""
    if not collectors:
        return None
    return collectors[0] if len(collectors) == 1 else _Joined(collectors)


_READ_ALREADY: Final = (ChunkCollector, _Joined)


def _map_scores(payloads: Sequence[dict[str, Any]], told: Leaning | None, metric: str, note: Note) -> str | None:
    """Bring the scores of one result into [0, 1] by one rule; drop `raw_score` where it says nothing more."""
    scored = [one for one in payloads if "_leaning" in one or ("score" in one and "raw_score" not in one)]
    if not scored:
        return None
    leanings = {one.pop("_leaning", Leaning.OWN) for one in scored}
    raw: list[float] = [one.pop("score") if "score" in one else one["raw_score"] for one in scored]
    meant = leaning_of(raw, told or (leanings.pop() if len(leanings) == 1 else Leaning.UNKNOWN), metric)
    if meant is Leaning.UNKNOWN:
        note("score_undecided")
    known = meant is not Leaning.UNKNOWN
    rule, scores = normalise(raw, distances=meant is Leaning.DISTANCE) if known else (None, raw)
    for one, score, given in zip(scored, scores, raw, strict=True):
        if known:
            one["score"] = score
        if rule is not None or not known:
            one["raw_score"] = given
        else:
            one.pop("raw_score", None)
    return rule
