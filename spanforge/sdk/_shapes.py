"""Where the hits are in what a store or a framework hands over, and what its shape says of their scores.

A shape that is not known holds no hits: a chunk is never made of the response itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple, cast

from spanforge._guard import guarded
from spanforge._text import Note, as_float, is_dict, is_row
from spanforge.sdk import _coerce
from spanforge.sdk._fields import Names, as_dict, get, is_pair, row
from spanforge.sdk._scores import Leaning

__all__ = ["IDS", "LEANINGS", "SCORES", "TEXTS", "Result", "is_hit", "results"]

IDS: Final = Names((
    "chunk_id", "id", "doc_id", "_id", "id_", "node_id", "uuid", "file_id", "pk", "document_id",
    "x-amz-bedrock-kb-chunk-id",
))  # fmt: skip
LEANINGS: Final[dict[str, Leaning]] = {
    **dict.fromkeys(
        (
            "_relevance_score", "@search.reranker_score", "score", "similarity", "relevance_score", "relevance",
            "_score", "@search.score", "rank_fusion_score", "certainty",
        ),
        Leaning.SIMILARITY,
    ),
    "distance": Leaning.CALLED_DISTANCE,
    "_distance": Leaning.DISTANCE,
    "vector_distance": Leaning.DISTANCE,
    "text_match": Leaning.SIMILARITY,
    "?column?": Leaning.UNKNOWN,
}  # fmt: skip
"""Where a score may stand, and what the name says of it."""
SCORES: Final = Names(LEANINGS)
TEXTS: Final = Names(("content", "text", "page_content", "document", "body"))
_COLUMNS: Final = {"distances": "_distance", "scores": "score", "metadatas": "metadata", "documents": "document"}
_LISTS: Final = (
    "matches", "points", "source_nodes", "documents", "hits", "results", "nodes", "objects", "retrievalResults",
)  # fmt: skip
_LOOSE_LISTS: Final = ("result", "value", "data", "responses", "body")
"""Names that a hit may have too: looked at only in what is no hit."""
_TOTALS: Final = ("total", "found", "@odata.count", "totalCount", "number_documents_retrieved")
_HIT_MARKS: Final = (*IDS, *SCORES, "node")
_NESTED_LISTS: Final = {"groups": "hits", "output": "results"}
"""Qdrant's groups, and the searches of OpenAI's responses."""
_TEXT: Final = frozenset({str, bytes})
_DEPTH: Final = 5
MAX_RESULTS: Final = 50
"""Queries that one call may answer."""
_PAIR: Final = 2
_SCORES_AND_PLACES: Final = {("f", "i"), ("f", "u")}


class Result(NamedTuple):
    """What was found for one query.

    Attributes:
        hits: The first hits, best first.
        given: How many hits there are.
        total: How many matches the store counted, where it says so.
        leaning: What the shape says of the scores, where it says more than their names.
        unreadable: Why nothing could be read; empty where it could.
    """

    hits: Sequence[Any]
    given: int
    total: int | None = None
    leaning: Leaning | None = None
    unreadable: str = ""


_NOTHING: Final = Result((), 0)


def results(hits: object, most: int, note: Note) -> list[Result]:
    """Return what was found: one result for each query that the store was asked at once.

    Args:
        hits: As handed over.
        most: Hits of each result to look at.
        note: Told of what cannot be read.
    """
    found = _results(hits, most, 0)
    if found is None:
        # Reading an iterator would take the application's results away.
        reason = "chunks_iterator" if issubclass(type(hits), Iterator) else "chunks_unreadable"
        note(reason)
        return [Result((), 0, unreadable=reason)]
    return found


def _results(hits: object, most: int, depth: int) -> list[Result] | None:
    """Find the results in anything; None where its shape is not known."""
    if hits is None:
        return [_NOTHING]
    if depth > _DEPTH or issubclass(type(hits), (str, bytes, Iterator)):
        return None
    if is_row(hits):
        return _pair_of_arrays(hits, most) or _row_of(hits, most, depth)
    if (frame := _frame(hits, most)) is not None:
        return [frame]
    return _inside(hits, most, depth) or _one_or_many(hits, most)


def _one_or_many(hits: object, most: int) -> list[Result] | None:
    """Read a single hit, or a collection of them that is no list."""
    if is_hit(as_dict(hits)):
        return [Result([hits], 1)]
    found = None if is_dict(hits) else _coerce.elements(hits, most)
    return None if found is None else [Result(*found)]


def _row_of(hits: Sequence[Any], most: int, depth: int) -> list[Result] | None:
    """Read a list: of hits, or of one result for each query (batches)."""
    found, given = row(hits, most)
    if not found:
        return [_NOTHING]
    top = found[0]
    if type(hits) is tuple and len(found) == given == _PAIR and is_row(top) and _is_place(found[1]):
        # A page of a scroll: the hits, and where the next page begins.
        return _results(top, most, depth + 1)
    if not _is_batch(top):
        return [Result(found, given)]
    unknown = [Result((), 0, unreadable="chunks_unreadable")]
    return _first_results(result for group in found for result in _results(group, most, depth + 1) or unknown)


def _first_results(found: Iterable[Result]) -> list[Result]:
    """Return as many results as one call may answer, and one more where there are more; the rest is not looked at."""
    return list(islice(found, MAX_RESULTS + 1))


def _is_place(value: object) -> bool:
    return value is None or _coerce.identifier(value) is not None


def _is_batch(top: object) -> bool:
    """Tell whether the first thing in a list is the whole result of a query, and no hit."""
    if issubclass(type(top), list):
        return not is_pair(cast("list[Any]", top))
    return not is_row(top) and not is_hit(top) and any(is_row(get(top, name)) for name in (*_LISTS, "ids"))


def is_hit(thing: object) -> bool:
    """Tell whether something has what hits have, an id, a score or a text, or is a text."""
    return (
        type(thing) in _TEXT
        or any(get(thing, name) is not None for name in _HIT_MARKS)
        or any(type(get(thing, name)) in _TEXT for name in TEXTS)
    )


def _inside(thing: object, most: int, depth: int) -> list[Result] | None:
    """Return what is inside a store's response; None where it is none that is known."""
    if (columns := _columns(thing, most)) is not None:
        return columns
    for plural, single in _NESTED_LISTS.items():
        if is_row(groups := get(thing, plural)) and (found := _nested(groups, single, most)) is not None:
            return found
    root = get(thing, "root")
    if is_row(children := get(root, "children")):
        return _counted([Result(*row(children, most))], root)
    for name in _LISTS if is_hit(thing) else (*_LISTS, *_LOOSE_LISTS):
        value = get(thing, name)
        if is_row(value) or not (value is None or is_hit(value)):
            inner = _results(value, most, depth + 1) if is_row(value) else _inside(value, most, depth + 1)
            if inner is not None:
                return _counted(inner, thing)
    return None


def _nested(groups: Sequence[Any], name: str, most: int) -> list[Result] | None:
    """Read hits in lists below a list: in groups of one result, or in the searches among the items of an answer."""
    lists = (inner for group in row(groups, most)[0] if is_row(inner := get(group, name)))
    if name == "hits":
        hits: list[Any] = []
        given = 0
        for inner in lists:
            found, count = row(inner, most - len(hits))
            hits += found
            given += count
        return [Result(hits, given)]
    return _first_results(Result(*row(inner, most)) for inner in lists) or None


def _counted(found: list[Result], holder: object) -> list[Result]:
    """Add how many matches a store says there are."""
    if len(found) != 1 or found[0].total is not None:
        return found
    for place in (holder, get(holder, "fields")):
        for name in _TOTALS:
            value = get(place, name)
            number = as_float(value if as_float(value) is not None else get(value, "value"))
            if number is not None and number >= found[0].given:
                return [found[0]._replace(total=int(number))]
    return found


def _columns(thing: object, most: int) -> list[Result] | None:
    """Turn a result given by columns, one list for each field, or one list of lists (Chroma), into rows."""
    ids = get(thing, "ids")
    if not is_row(ids) and type(ids).__module__ != "numpy":
        return None
    groups = row(ids, most)[0]
    columns = {single: column for many, single in _COLUMNS.items() if (column := get(thing, many)) is not None}
    if not groups or not (is_row(groups[0]) or type(groups[0]).__module__ == "numpy"):
        return [_rows(ids, columns, most)]
    by_query = {name: row(column, MAX_RESULTS + 1)[0] for name, column in columns.items()}
    return _first_results(
        _rows(group, {name: _at(column, number) for name, column in by_query.items()}, most)
        for number, group in enumerate(groups)
        if is_row(group) or type(group).__module__ == "numpy"
    )


def _rows(ids: object, columns: dict[str, Any], most: int) -> Result:
    found, given = row(ids, most)
    cells = {name: row(column, most)[0] for name, column in columns.items()}
    hits = [
        {"id": one, **{name: value for name, column in cells.items() if (value := _at(column, place)) is not None}}
        for place, one in enumerate(found)
    ]
    return Result(hits, given)


def _pair_of_arrays(hits: Sequence[Any], most: int) -> list[Result] | None:
    """Read scores and positions in two arrays (FAISS); a place that nothing was found for has position -1."""
    if len(hits) != _PAIR or any(type(one).__module__ != "numpy" for one in hits):
        return None
    scores, places = hits
    shape: tuple[int, ...] = scores.shape
    if shape != places.shape or (scores.dtype.kind, places.dtype.kind) not in _SCORES_AND_PLACES:
        return None
    if len(shape) == 1:
        scores, places = scores[None], places[None]
    found: list[Result] = []
    for row_of_scores, row_of_places in zip(scores[: MAX_RESULTS + 1], places[: MAX_RESULTS + 1], strict=True):
        pairs = zip(row_of_places[:most].tolist(), row_of_scores[:most].tolist(), strict=True)
        hits = [{"id": place, "distance": score} for place, score in pairs if place != -1]
        found.append(Result(hits, int((row_of_places != -1).sum()), leaning=Leaning.UNKNOWN))
    return found


def _no_frame(*_: Any) -> Result | None:
    return None


@partial(guarded, recover=_no_frame, meant=())
def _frame(hits: Any, most: int) -> Result | None:
    """Read a data frame of pandas or polars, or a table of Arrow."""
    library = type(hits).__module__.partition(".")[0]
    if library == "pandas":
        return Result(hits.head(most).to_dict("records"), len(hits))
    if library == "polars":
        return Result(hits.head(most).to_dicts(), len(hits))
    if library == "pyarrow":
        return Result(hits.slice(0, most).to_pylist(), len(hits))
    return None


def _at(column: list[Any], position: int) -> Any:
    return column[position] if position < len(column) else None
