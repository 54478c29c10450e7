"""Retrieval results as stores and frameworks hand them over, as plain chunk payloads.

Text is hashed here, in the caller's call, and goes no further.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple, cast

from spanforge._guard import guarded
from spanforge._hashing import is_digest
from spanforge._text import PATHS, Cleaner, Note, as_float, is_dict, is_row, unwrapped, well_formed
from spanforge.exceptions import StrictModeError
from spanforge.sdk import _coerce
from spanforge.sdk._scores import Leaning, leaning_of, normalise
from spanforge.sdk._shapes import (
    IDS,
    MAX_RESULTS,
    SCORES,
    TEXTS,
    Result,
    as_dict,
    fields,
    get,
    is_hit,
    results,
    row,
    snapshot,
)

__all__ = ["ChunkCollector", "Chunks", "joined", "read_chunks"]

_SOURCES: Final = (
    "source", "url", "uri", "file_path", "file_name", "filename", "path", "x-amz-bedrock-kb-source-uri",
)  # fmt: skip
_NESTED: Final = (
    "metadata", "meta", "payload", "_source", "entity", "properties", "attributes", "fields", "document",
)  # fmt: skip
"""Where stores keep the fields of a hit, when not in the hit itself."""
_LOCATIONS: Final = ("location", "s3Location", "webLocation")
_NESTED_SCORES: Final = ("score", "relevance_score", "certainty", "distance")
_THREE_KEYS: Final = ("chunk_id", "score", "source")
_FOUR_KEYS: Final = (*_THREE_KEYS, "content_hash")
_get_three: Final = itemgetter(*_THREE_KEYS)
_get_four: Final = itemgetter(*_FOUR_KEYS)
_EMPTY: Final[dict[str, Any]] = {}
_CHUNK_BYTES: Final = 480
_BYTES_PER_CHARACTER: Final = 4
_MAX_SOURCE: Final = 1_024
_PAIR: Final = 2
_THREE: Final = len(_THREE_KEYS)
_FOUR: Final = len(_FOUR_KEYS)
_MAX_PARTS: Final = 4
_FIELDS: Final = tuple(
    name
    for name in dict.fromkeys(
        (*IDS, *SCORES, *TEXTS, *_SOURCES, *_NESTED, _LOCATIONS[0], "content_hash", "raw_score", "rank", "node")
    )
    if name.isidentifier()
)
"""What an object may have of what is looked for in hits."""


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
        payload = _plain(hit) if type(hit) is dict else None
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
            payload = _plain(hit) if type(hit) is dict else None
            if payload is None:
                payload = _read(_Reader(self._cleaner, self._note, position), hit)
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


def _plain(hit: Any) -> dict[str, Any] | None:
    """Read a dict of nothing but the plain keys, all as they should be; None for any other."""
    content_hash = ""
    try:
        if len(hit) == _FOUR:
            chunk_id, score, source, content_hash = _get_four(hit)
        elif len(hit) == _THREE:
            chunk_id, score, source = _get_three(hit)
        else:
            return None
    except KeyError:
        return None
    if (
        type(chunk_id) is str
        and type(source) is str
        and type(score) is float
        and 0.0 <= score <= 1.0
        and 0 < len(chunk_id) <= _coerce.MAX_ID
        and len(source) <= _MAX_SOURCE
        and chunk_id.isascii()
        and source.isascii()
        and (content_hash == "" or (type(content_hash) is str and is_digest(content_hash)))
    ):
        return {
            "chunk_id": chunk_id,
            "content_hash": content_hash,
            "score": score,
            "source": source,
            "metadata": _EMPTY,
        }
    return None


class _Reader:
    """Reads one hit of any shape.

    Args:
        position: Its place in the result, from 1: the id of a hit that has none.
    """

    __slots__ = ("_cleaner", "_note", "_position")

    def __init__(self, cleaner: Cleaner, note: Note, position: int) -> None:
        self._cleaner = cleaner
        self._note = note
        self._position = position

    def read(self, hit: Any) -> dict[str, Any] | None:
        """Return the payload, None for what is no hit.

        Until the scores of the whole result are mapped, `raw_score` and what is known of it stand in it for a score.
        """
        hit, given_score, leaning = self._unwrap(hit)
        nested = [inner for value in fields(hit, _NESTED).values() if is_dict(inner := as_dict(value)) and len(inner)]
        if given_score is None:
            if not nested and not is_hit(hit):
                return None
            given_score, leaning = self._nested_score(hit, nested)
        content_hash = self._content_hash(hit, nested)
        payload: dict[str, Any] = {
            "chunk_id": self._chunk_id(hit, nested, content_hash),
            "content_hash": content_hash,
            "source": self._source(hit, nested),
            "metadata": self._cleaner.mapping(nested[0], self._note) if nested else _EMPTY,
        }
        self._score(payload, hit, given_score, leaning)
        rank = get(hit, "rank")
        if rank is not None and (rank := _coerce.count(rank, "rank", self._note, minimum=1)):
            payload["rank"] = rank
        return payload

    def unreadable(self) -> dict[str, Any]:
        """Return what stands for a hit whose own code fails when it is looked at."""
        self._note("chunk")
        return {"chunk_id": f"chunk-{self._position}", "content_hash": "", "source": "", "metadata": _EMPTY}

    def _unwrap(self, hit: Any) -> tuple[Any, Any, Leaning]:
        """Take apart `(document, score)` pairs and nodes that carry their score beside them."""
        hit = as_dict(unwrapped(hit))
        if is_row(hit) and len(pair := row(hit, _PAIR + 1)[0]) == _PAIR:
            first, second = pair
            if as_float(first) is not None and as_float(second) is None:
                first, second = second, first
            is_id = as_float(first) is not None
            document = {"chunk_id": first} if is_id else snapshot(as_dict(unwrapped(first)), _FIELDS)
            return document, second, Leaning.SIMILARITY
        hit = snapshot(hit, _FIELDS)
        name, score = next(iter(fields(hit, SCORES).items()), ("", None))
        # A plain value is the name of a node, in a graph, and not the document itself.
        node = snapshot(as_dict(get(hit, "node")), _FIELDS)
        return (node if is_dict(node) else hit), score, _leaning(hit, name) if name else Leaning.UNKNOWN

    def _nested_score(self, hit: Any, nested: list[dict[Any, Any]]) -> tuple[Any, Leaning]:
        """Find the score that a reranker left in the metadata, or a store's own object for metadata has."""
        for holder, names in (
            (nested[0] if nested else None, _NESTED_SCORES[:2]),
            (get(hit, "metadata"), _NESTED_SCORES),
        ):
            for name, value in fields(holder, names).items():
                return value, Leaning.DISTANCE if name == "distance" else SCORES[name]
        return None, Leaning.UNKNOWN

    def _content_hash(self, hit: Any, nested: list[dict[Any, Any]]) -> str:
        given = get(hit, "content_hash")
        if given is not None and (digest := self._cleaner.digest(given)):
            return digest
        if type(hit) is str or type(hit) is bytes:
            return self._cleaner.hasher.digest(hit) if hit else ""
        texts = (_text(value) for holder in (hit, *nested) for value in fields(holder, TEXTS).values())
        text = next((text for text in texts if text), None)
        return "" if text is None else self._cleaner.hasher.digest(text)

    def _chunk_id(self, hit: Any, nested: list[dict[Any, Any]], content_hash: str) -> str:
        for holder in (hit, *nested):
            for given in fields(holder, IDS).values():
                if text := _coerce.identifier(given):
                    return text
        if content_hash:
            return f"sha256:{content_hash[-64:][:16]}"
        self._note("chunk_id")
        return f"chunk-{self._position}"

    def _source(self, hit: Any, nested: list[dict[Any, Any]]) -> str:
        for holder in (hit, *nested, *_locations(hit)):
            for given in fields(holder, _SOURCES).values():
                if text := _source_text(unwrapped(given)):
                    return text
        return ""

    def _score(self, payload: dict[str, Any], hit: Any, given: Any, leaning: Leaning) -> None:
        value = as_float(given)
        if value is None:
            self._note("score" if given is not None else "score_missing")
            return
        kept_raw = as_float(get(hit, "raw_score"))
        if kept_raw is not None and 0.0 <= value <= 1.0:
            # The caller has mapped it already and says what it was.
            payload["score"], payload["raw_score"] = value, kept_raw
            return
        payload["raw_score"], payload["_leaning"] = value, leaning


def _unreadable(_error: BaseException, args: tuple[Any, ...], _kwargs: dict[str, Any]) -> dict[str, Any] | None:
    return args[0].unreadable()


_read: Final[Callable[[_Reader, Any], dict[str, Any] | None]] = guarded(
    _Reader.read, _unreadable, meant=(StrictModeError,)
)


def _leaning(hit: Any, name: str) -> Leaning:
    """Say what a score of this name means in this hit."""
    if name == "score" and get(hit, "chunk_id") is not None:
        return Leaning.OWN
    # Milvus calls every measure a distance.
    return Leaning.UNKNOWN if name == "distance" and get(hit, "entity") is not None else SCORES[name]


def _text(value: object) -> str | bytes | None:
    """Return the text of a field: text, an object that has it, or the first part of several that do."""
    value = unwrapped(value)
    if is_row(value):
        return next((text for part in row(value, _MAX_PARTS)[0] if (text := _text(get(part, "text")))), None)
    inner = unwrapped(get(value, "text")) if is_dict(value) else value
    return inner if type(inner) is str or type(inner) is bytes else None


def _locations(hit: Any) -> Iterator[dict[Any, Any]]:
    """Yield the places that a hit may say it comes from."""
    for place in fields(hit, _LOCATIONS).values():
        if is_dict(place):
            yield place
            yield from _locations(place)


def _source_text(value: object) -> str:
    if type(value) is str or type(value) in PATHS:
        return well_formed(str(value)[:_MAX_SOURCE])
    return _coerce.identifier(value) or "" if type(value) is int else ""


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
