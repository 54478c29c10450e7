"""One hit of any store or framework, as the payload of a chunk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from operator import itemgetter
from typing import Any, Final

from spanforge._guard import guarded
from spanforge._hashing import is_digest
from spanforge._text import PATHS, Cleaner, Note, as_float, is_dict, is_row, unwrapped, well_formed
from spanforge.exceptions import StrictModeError
from spanforge.sdk import _coerce
from spanforge.sdk._fields import Names, as_dict, fields, get, row, snapshot
from spanforge.sdk._scores import Leaning
from spanforge.sdk._shapes import IDS, LEANINGS, SCORES, TEXTS, is_hit

__all__ = ["plain_payload", "read_hit"]

_SOURCES: Final = Names((
    "source", "url", "uri", "file_path", "file_name", "filename", "path", "x-amz-bedrock-kb-source-uri",
))  # fmt: skip
_NESTED: Final = Names((
    "metadata", "meta", "payload", "_source", "entity", "properties", "attributes", "fields", "document",
))  # fmt: skip
"""Where stores keep the fields of a hit, when not in the hit itself."""
_LOCATIONS: Final = Names(("location", "s3Location", "webLocation"))
_RERANKED: Final = Names(("score", "relevance_score"))
"""Where rerankers leave their score in the metadata."""
_MEASURED: Final = Names((*_RERANKED, "certainty", "distance"))
"""Where a store's own object for metadata has one (Weaviate)."""
_THREE_KEYS: Final = ("chunk_id", "score", "source")
_get_three: Final = itemgetter(*_THREE_KEYS)
_EMPTY: Final[dict[str, Any]] = {}
_MAX_SOURCE: Final = 1_024
_PAIR: Final = 2
_THREE: Final = len(_THREE_KEYS)
_FOUR: Final = _THREE + 1
_MAX_PARTS: Final = 4
_FIELDS: Final = Names(
    name
    for name in dict.fromkeys(
        (*IDS, *SCORES, *TEXTS, *_SOURCES, *_NESTED, "location", "content_hash", "raw_score", "rank", "node")
    )
    if name.isidentifier()
)
"""What an object may have of what is looked for in hits."""


def plain_payload(hit: dict[Any, Any]) -> dict[str, Any] | None:
    """Read a dict of nothing but the plain keys, all as they should be; None for any other."""
    # A `KeyError` costs as much as reading a hit of another shape.
    if "chunk_id" not in hit or not _THREE <= len(hit) <= _FOUR:
        return None
    try:
        chunk_id, score, source = _get_three(hit)
        content_hash = hit["content_hash"] if len(hit) == _FOUR else ""
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


def _read(hit: Any, position: int, cleaner: Cleaner, note: Note) -> dict[str, Any] | None:
    """Return the payload of one hit of any shape, None for what is no hit.

    Until the scores of the whole result are mapped, `raw_score` and what is known of it stand in it for a score.

    Args:
        hit: As handed over.
        position: Its place in the result, from 1: the id of a hit that has none.
        cleaner: The privacy policy.
        note: Told of what is replaced or left out.
    """
    hit, given_score, leaning = _unwrap(hit)
    text = hit if type(hit) is str or type(hit) is bytes else None
    whole: dict[Any, Any] = hit if is_dict(hit) else _EMPTY
    nested = [inner for value in fields(whole, _NESTED).values() if is_dict(inner := as_dict(value)) and len(inner)]
    if given_score is None:
        if not nested and text is None and not is_hit(whole):
            return None
        given_score, leaning = _nested_score(whole, nested)
    holders = (whole, *nested)
    content_hash = _content_hash(holders, text, cleaner)
    payload: dict[str, Any] = {
        "chunk_id": _chunk_id(holders, content_hash) or _placeholder(position, "chunk_id", note),
        "content_hash": content_hash,
        "source": _source(holders),
        "metadata": cleaner.mapping(nested[0], note) if nested else _EMPTY,
    }
    _set_score(payload, given_score, get(whole, "raw_score"), leaning, note)
    rank = get(whole, "rank")
    if rank is not None and (rank := _coerce.count(rank, "rank", note, minimum=1)):
        payload["rank"] = rank
    return payload


def _unreadable(_error: BaseException, args: tuple[Any, ...], _kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """Return what stands for a hit whose own code fails when it is looked at."""
    _, position, _, note = args
    return {"chunk_id": _placeholder(position, "chunk", note), "content_hash": "", "source": "", "metadata": _EMPTY}


read_hit: Final[Callable[[Any, int, Cleaner, Note], dict[str, Any] | None]] = guarded(
    _read, _unreadable, meant=(StrictModeError,)
)


def _placeholder(position: int, reason: str, note: Note) -> str:
    note(reason)
    return f"chunk-{position}"


def _unwrap(hit: Any) -> tuple[Any, Any, Leaning]:
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
    if (node := get(hit, "node")) is not None and is_dict(inner := snapshot(as_dict(node), _FIELDS)):
        return inner, score, _leaning(hit, name) if name else Leaning.UNKNOWN
    return hit, score, _leaning(hit, name) if name else Leaning.UNKNOWN


def _leaning(hit: Any, name: str) -> Leaning:
    """Say what a score of this name means in this hit."""
    if name == "score" and get(hit, "chunk_id") is not None:
        return Leaning.OWN
    # Milvus calls every measure a distance.
    return Leaning.UNKNOWN if name == "distance" and get(hit, "entity") is not None else LEANINGS[name]


def _nested_score(hit: dict[Any, Any], nested: list[dict[Any, Any]]) -> tuple[Any, Leaning]:
    """Find the score that a reranker left in the metadata, or a store's own object for metadata has."""
    for holder, names in ((nested[0] if nested else None, _RERANKED), (get(hit, "metadata"), _MEASURED)):
        for name, value in fields(holder, names).items():
            return value, Leaning.DISTANCE if name == "distance" else LEANINGS[name]
    return None, Leaning.UNKNOWN


def _set_score(payload: dict[str, Any], given: Any, raw: Any, leaning: Leaning, note: Note) -> None:
    value = as_float(given)
    if value is None:
        note("score" if given is not None else "score_missing")
        return
    kept_raw = None if raw is None else as_float(raw)
    if kept_raw is not None and 0.0 <= value <= 1.0:
        # The caller has mapped it already and says what it was.
        payload["score"], payload["raw_score"] = value, kept_raw
        return
    payload["raw_score"], payload["_leaning"] = value, leaning


def _content_hash(holders: tuple[dict[Any, Any], ...], text: str | bytes | None, cleaner: Cleaner) -> str:
    given = get(holders[0], "content_hash")
    if given is not None and (digest := cleaner.digest(given)):
        return digest
    if text is None:
        for holder in holders:
            for value in fields(holder, TEXTS).values():
                if found := _text(value):
                    return cleaner.hasher.digest(found)
    return cleaner.hasher.digest(text) if text else ""


def _text(value: object) -> str | bytes | None:
    """Return the text of a field: text, an object that has it, or the first part of several that do."""
    value = unwrapped(value)
    if is_row(value):
        return next((text for part in row(value, _MAX_PARTS)[0] if (text := _text(get(part, "text")))), None)
    inner = unwrapped(get(value, "text")) if is_dict(value) else value
    return inner if type(inner) is str or type(inner) is bytes else None


def _chunk_id(holders: tuple[dict[Any, Any], ...], content_hash: str) -> str:
    """Return the id that a hit gives, or one made of what it says; empty where it gives neither."""
    for holder in holders:
        for given in fields(holder, IDS).values():
            if text := _coerce.identifier(given):
                return text
    return f"sha256:{content_hash[-64:][:16]}" if content_hash else ""


def _source(holders: tuple[dict[Any, Any], ...]) -> str:
    for holder in chain(holders, _locations(holders[0])):
        for given in fields(holder, _SOURCES).values():
            if text := _source_text(unwrapped(given)):
                return text
    return ""


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
