"""Retrieval results as stores and frameworks hand them over, as plain chunk payloads.

Text is hashed here, in the caller's call, and goes no further.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple, cast

from spanforge._hashing import is_digest
from spanforge._text import PATHS, Cleaner, Note, as_float, is_dict, is_row, unwrapped, well_formed
from spanforge.delivery.guard import guarded
from spanforge.exceptions import StrictModeError
from spanforge.sdk import _coerce
from spanforge.sdk._scores import normalise

__all__ = ["ChunkCollector", "Chunks", "read_chunks"]

_IDS: Final = ("chunk_id", "id", "doc_id", "_id", "id_", "node_id")
_SCORES: Final = ("score", "similarity", "relevance_score", "_score", "distance", "_distance")
_DISTANCES: Final = frozenset({"distance", "_distance"})
_SOURCES: Final = ("source", "url", "uri", "file_path", "file_name", "path")
_TEXTS: Final = ("content", "text", "page_content", "document", "body")
_METADATA: Final = ("metadata", "meta", "payload")
_COLUMNS: Final = {"distances": "distance", "scores": "score", "metadatas": "metadata", "documents": "document"}
_LISTS: Final = ("matches", "points", "source_nodes", "documents", "hits", "results", "nodes")
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


class Chunks(NamedTuple):
    """One result, read.

    Attributes:
        payloads: A payload for each chunk, in the order given.
        given: How many chunks there were before any cut.
        rule: How scores were mapped to [0, 1]; None where they were not.
        size: Estimated bytes.
    """

    payloads: list[dict[str, Any]]
    given: int
    rule: str | None
    size: int


def read_chunks(hits: Any, cleaner: Cleaner, note: Note, limit: int) -> Chunks:
    """Read a result of any known shape, or one a collector has read.

    What cannot be used is replaced or left out, and noted.
    """
    if type(hits) is ChunkCollector:
        return hits.result()
    collector = ChunkCollector(cleaner, note, limit)
    collector.add(hits)
    return collector.result()


class ChunkCollector:
    """Reads a result at once or bit by bit; only the whole of it decides how scores are mapped.

    Args:
        cleaner: The privacy policy.
        note: Told of what is replaced or left out.
        limit: Chunks kept.
    """

    __slots__ = ("_cleaner", "_given", "_limit", "_mapped", "_note", "_payloads", "_size")

    def __init__(self, cleaner: Cleaner, note: Note, limit: int) -> None:
        self._cleaner = cleaner
        self._note = note
        self._limit = limit
        self._payloads: list[dict[str, Any]] = []
        self._given = 0
        self._size = 0
        self._mapped = False

    def add(self, hits: Any) -> None:
        """Read some hits of the result; their text is hashed now."""
        payloads, size, given, limit = self._payloads, self._size, self._given, self._limit
        for hit in _items(hits, self._note):
            given += 1
            if len(payloads) >= limit:
                continue
            # A dict that already says exactly what a chunk is, which most are, goes the short way.
            payload = _plain(hit) if type(hit) is dict else None
            if payload is None:
                payload = _read(_Reader(self._cleaner, self._note, given), hit)
                self._mapped = self._mapped or "raw_score" in payload or "_mapped" in payload
                size += _BYTES_PER_CHARACTER * len(str(payload["metadata"]))
            size += _CHUNK_BYTES + len(payload["source"])
            payloads.append(payload)
        self._size, self._given = size, given

    def result(self) -> Chunks:
        """Return what was read, scores mapped by one rule."""
        if self._given > len(self._payloads):
            self._note("chunks_too_many")
        rule = _map_scores(self._payloads) if self._mapped else None
        return Chunks(self._payloads, self._given, rule, self._size)


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


def _items(hits: object, note: Note) -> Iterable[Any]:
    if hits is None or type(hits) in {list, tuple}:
        return cast("Sequence[Any]", hits or ())
    if is_dict(hits):
        return _columns(hits) or _inner_list(hits) or [hits]
    if issubclass(type(hits), Iterator):
        # Reading it would take the application's results away.
        note("chunks_iterator")
        return ()
    elements = _coerce.elements(hits)
    return elements if elements is not None else _inner_list(hits) or [hits]


def _inner_list(hits: object) -> list[Any]:
    """Return the list inside a store's response object."""
    return next((inner for name in _LISTS if (inner := _row(_get(hits, name)))), list[Any]())


def _columns(hits: dict[Any, Any]) -> list[Any]:
    """Turn a result given by columns, one list of lists for each field (Chroma), into rows."""
    ids = _row(_get(hits, "ids"))
    if not ids:
        return []
    nested = bool(_row(ids[0]))
    rows: list[dict[str, Any]] = []
    for group, group_ids in enumerate(ids if nested else [ids]):
        columns = {
            single: _row(_at(_row(column), group) if nested else column)
            for many, single in _COLUMNS.items()
            if (column := _get(hits, many)) is not None
        }
        for position, chunk_id in enumerate(_row(group_ids)):
            row = {name: value for name, column in columns.items() if (value := _at(column, position)) is not None}
            rows.append({"chunk_id": chunk_id, **row})
    return rows


def _row(value: object) -> list[Any]:
    """Return the elements of a list, a tuple or an array; of anything else none."""
    elements = _coerce.elements(value) if is_row(value) or type(value).__module__ == "numpy" else None
    return [] if elements is None else list(elements)


def _at(column: list[Any], position: int) -> Any:
    return column[position] if position < len(column) else None


def _get(thing: object, name: str) -> Any:
    """Read a key or an attribute; an attribute that raises reads as absent."""
    return dict[Any, Any].get(thing, name) if is_dict(thing) else _coerce.attribute(thing, name)


def _as_dict(value: Any) -> Any:
    """Return a mapping that is no dict, such as a database's row, as one; anything else as it is."""
    kind = cast("type[Any]", type(value))
    is_mapping = issubclass(kind, Mapping) and not issubclass(kind, dict)
    return dict(value) if is_mapping or (kind.__module__, kind.__name__) == ("sqlite3", "Row") else value


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

    def read(self, hit: Any) -> dict[str, Any]:
        """Return the payload; `raw_score` stands in it until the scores of the whole result are mapped."""
        hit, given_score, is_distance = self._unwrap(hit)
        found = (_as_dict(_get(hit, name)) for name in _METADATA)
        metadata = next((value for value in found if is_dict(value) and len(value)), None)
        content_hash = self._content_hash(hit)
        payload: dict[str, Any] = {
            "chunk_id": self._chunk_id(hit, metadata, content_hash),
            "content_hash": content_hash,
            "score": 0.0,
            "source": self._source(hit, metadata),
            "metadata": self._cleaner.mapping(metadata, self._note) if metadata else _EMPTY,
        }
        self._score(payload, hit, given_score, is_distance=is_distance)
        rank = _get(hit, "rank")
        if rank is not None and (rank := _coerce.count(rank, "rank", self._note, minimum=1)):
            payload["rank"] = rank
        return payload

    def unreadable(self) -> dict[str, Any]:
        """Return what stands for a hit whose own code fails when it is looked at."""
        self._note("chunk")
        return {
            "chunk_id": f"chunk-{self._position}",
            "content_hash": "",
            "score": 0.0,
            "source": "",
            "metadata": _EMPTY,
            "_mapped": True,
        }

    def _unwrap(self, hit: Any) -> tuple[Any, Any, bool]:
        """Take apart `(document, score)` pairs and nodes that carry their score beside them."""
        hit = _as_dict(unwrapped(hit))
        if is_row(hit) and len(pair := _row(hit)) == _PAIR:
            first, second = pair
            if as_float(first) is not None and as_float(second) is None:
                first, second = second, first
            return ({"chunk_id": first} if as_float(first) is not None else first), second, False
        score_name = next((name for name in _SCORES if _get(hit, name) is not None), None)
        score = _get(hit, score_name) if score_name else None
        node = _get(hit, "node")
        # A plain value is the name of a node, in a graph, and not the document itself.
        return (hit if node is None or _coerce.identifier(node) is not None else node), score, score_name in _DISTANCES

    def _content_hash(self, hit: Any) -> str:
        if digest := self._cleaner.digest(_get(hit, "content_hash")):
            return digest
        texts = [hit] if type(hit) in {str, bytes} else (unwrapped(_get(hit, name)) for name in _TEXTS)
        text = next((text for text in texts if type(text) in {str, bytes} and text), None)
        return "" if text is None else self._cleaner.hasher.digest(text)

    def _chunk_id(self, hit: Any, metadata: Any, content_hash: str) -> str:
        for holder in (hit, metadata):
            for name in _IDS:
                given = _get(holder, name) if holder is not None else None
                if given is not None and (text := _coerce.identifier(given)):
                    return text
        if content_hash:
            return f"sha256:{content_hash[-64:][:16]}"
        self._note("chunk_id")
        return f"chunk-{self._position}"

    def _source(self, hit: Any, metadata: Any) -> str:
        for holder in (hit, metadata):
            for name in _SOURCES:
                given = unwrapped(_get(holder, name)) if holder is not None else None
                if given is not None and (text := _source_text(given)):
                    return text
        return ""

    def _score(self, payload: dict[str, Any], hit: Any, given: Any, *, is_distance: bool) -> None:
        value = as_float(given)
        if value is None:
            self._note("score" if given is not None else "score_missing")
            payload["_mapped"] = True
            return
        kept_raw = as_float(_get(hit, "raw_score"))
        if kept_raw is not None and 0.0 <= value <= 1.0:
            # The caller has mapped it already and says what it was.
            payload["score"], payload["raw_score"] = value, kept_raw
            payload["_mapped"] = True
            return
        payload["raw_score"] = value
        if is_distance:
            payload["_distance"] = True


def _unreadable(_error: BaseException, args: tuple[Any, ...], _kwargs: dict[str, Any]) -> dict[str, Any]:
    return args[0].unreadable()


_read: Final[Callable[[_Reader, Any], dict[str, Any]]] = guarded(_Reader.read, _unreadable, meant=(StrictModeError,))


def _source_text(value: object) -> str:
    if type(value) is str or type(value) in PATHS:
        return well_formed(str(value)[:_MAX_SOURCE])
    return _coerce.identifier(value) or "" if type(value) is int else ""


def _map_scores(payloads: Iterable[dict[str, Any]]) -> str | None:
    """Bring the scores of one result into [0, 1] by one rule; drop `raw_score` where it says nothing more."""
    rows = [row for row in payloads if not row.pop("_mapped", False)]
    distances = [row.pop("_distance", False) for row in rows]
    rule, scores = normalise([row.get("raw_score", row["score"]) for row in rows], distances=any(distances))
    for row, score in zip(rows, scores, strict=True):
        raw = row.setdefault("raw_score", row["score"])
        row["score"] = score
        if rule is None:
            del row["raw_score"]
        else:
            row["raw_score"] = raw
    return rule
