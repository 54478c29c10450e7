"""Readers of test sets in BEIR folders and in JSON lines."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

_COLUMNS = 3


class DatasetError(ValueError):
    """A test set cannot be read.

    The message names the file, the line and the field, never the text that stands there.

    Attributes:
        path: The file or folder.
        line: Line number from 1, or None where the fault is not on one line.
        field: The field at fault, or None.
    """

    def __init__(self, path: Path, problem: str, *, line: int | None = None, field: str | None = None) -> None:
        place = f"{path}" if line is None else f"{path}:{line}"
        subject = "" if field is None else f" field {field!r}"
        super().__init__(f"{place}:{subject} {problem}")
        self.path = path
        self.line = line
        self.field = field


@dataclass(frozen=True, slots=True)
class RetrievalDataset:
    """Documents, queries and judgements.

    Attributes:
        name: Name of the folder.
        corpus: Document id → text, the title in front where there is one.
        queries: Query id → text; only queries with at least one relevant document.
        qrels: Query id → document id → grade; 0 is not relevant, larger is better.
    """

    name: str
    corpus: Mapping[str, str] = field(repr=False)
    queries: Mapping[str, str] = field(repr=False)
    qrels: Mapping[str, Mapping[str, int]] = field(repr=False)


@dataclass(frozen=True, slots=True)
class GroundingPair:
    """A claim, the texts it should rest on, and whether people found it supported."""

    pair_id: str
    subset: str
    question: str = field(repr=False)
    claim: str = field(repr=False)
    contexts: tuple[str, ...] = field(repr=False)
    supported: bool


def read_retrieval(folder: str | Path) -> RetrievalDataset:
    """Read a folder in BEIR layout.

    Args:
        folder: Holds ``corpus.jsonl``, ``queries.jsonl`` (each may end in ``.gz``) and ``qrels.tsv`` or
            ``qrels/test.tsv`` with a header line.

    Returns:
        The test set, reduced to the queries that have a relevant document.

    Raises:
        DatasetError: A file is missing or a line is malformed, or a judgement names an unknown query or document.
    """
    root = Path(folder)
    corpus = dict(_texts(find(root, "corpus.jsonl", "corpus.jsonl.gz")))
    queries = dict(_texts(find(root, "queries.jsonl", "queries.jsonl.gz")))
    judgements = find(root, "qrels.tsv", "qrels/test.tsv", "qrels.tsv.gz")
    qrels = read_judgements(judgements, queries, corpus)
    judged = {query: text for query, text in queries.items() if any(qrels.get(query, {}).values())}
    if not judged:
        raise DatasetError(root, "no query has a relevant document")
    return RetrievalDataset(root.name, corpus, judged, qrels)


def read_judgements(
    file: Path, queries: Mapping[str, str], corpus: Mapping[str, str] | None = None
) -> dict[str, dict[str, int]]:
    """Read judgements: query id, document id and grade, parted by tabs, with or without a header line.

    Args:
        file: The file.
        queries: Those there are, by id.
        corpus: The documents there are, by id; whatever is named will do where left out.

    Raises:
        DatasetError: The file is missing or a line is malformed, or names an unknown query or document.
    """
    qrels: dict[str, dict[str, int]] = {}
    for line, row in _lines(file):
        parts = row.split("\t")
        if line == 1 and parts[-1].strip() == "score":
            continue
        if len(parts) != _COLUMNS:
            raise DatasetError(file, "needs three tab-separated columns", line=line)
        query, document, score = (part.strip() for part in parts)
        if query not in queries:
            raise DatasetError(file, "is not in the queries", line=line, field="query-id")
        if corpus is not None and document not in corpus:
            raise DatasetError(file, "is not in the corpus", line=line, field="corpus-id")
        if not score.isdecimal():
            raise DatasetError(file, "must be a whole number from 0", line=line, field="score")
        qrels.setdefault(query, {})[document] = int(score)
    return qrels


def read_queries(file: Path) -> dict[str, str]:
    """Read questions: JSON lines with ``text`` and, where judgements name them, ``_id``; else its line is its id.

    Raises:
        DatasetError: The file is missing or empty, or a line is malformed.
    """
    queries = dict(_texts(file, numbered=True))
    if not queries:
        raise DatasetError(file, "has no lines")
    return queries


def read_grounding(path: str | Path) -> list[GroundingPair]:
    """Read claims with their contexts.

    Args:
        path: A ``.jsonl`` or ``.jsonl.gz`` file; each line an object with ``claim`` (text), ``contexts`` (list of
            texts) and ``supported`` (0 or 1), and optionally ``id``, ``subset`` and ``question``.

    Returns:
        The pairs in the order of the file.

    Raises:
        DatasetError: The file is missing or empty, or a line is malformed.
    """
    file = Path(path)
    pairs = [_pair(file, line, row) for line, row in objects(file)]
    if not pairs:
        raise DatasetError(file, "has no lines")
    return pairs


def _pair(file: Path, line: int, row: dict[str, Any]) -> GroundingPair:
    contexts: Any = row.get("contexts")
    if not isinstance(contexts, list) or not all(isinstance(text, str) for text in cast("list[object]", contexts)):
        raise DatasetError(file, "must be a list of texts", line=line, field="contexts")
    supported = row.get("supported")
    if supported not in (0, 1):
        raise DatasetError(file, "must be 0 or 1", line=line, field="supported")
    return GroundingPair(
        pair_id=text(file, line, row, "id", default=str(line)),
        subset=text(file, line, row, "subset", default=""),
        question=text(file, line, row, "question", default=""),
        claim=text(file, line, row, "claim"),
        contexts=tuple(cast("list[str]", contexts)),
        supported=bool(supported),
    )


def _texts(file: Path, *, numbered: bool = False) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for line, row in objects(file):
        identifier = text(file, line, row, "_id", str(line) if numbered else None)
        if identifier in seen:
            raise DatasetError(file, "occurs twice", line=line, field="_id")
        seen.add(identifier)
        title = text(file, line, row, "title", default="")
        body = text(file, line, row, "text")
        yield identifier, f"{title}\n{body}" if title else body


def text(file: Path, line: int, row: dict[str, Any], name: str, default: str | None = None) -> str:
    """Return a field that must be a text.

    Raises:
        DatasetError: It is not.
    """
    value = row.get(name, default)
    if not isinstance(value, str):
        raise DatasetError(file, "must be a text", line=line, field=name)
    return value


def objects(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of a file, one a line, with their line numbers.

    Raises:
        DatasetError: The file cannot be read, or a line is no object.
    """
    for line, written in _lines(file):
        row = _parse(written)
        if not isinstance(row, dict):
            raise DatasetError(file, "is not a JSON object", line=line)
        yield line, row


def _parse(text: str) -> Any:
    """Return the JSON value, or None: the decoder's own error would carry the text along."""
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        return None


def find(root: Path, *names: str) -> Path:
    """Return the first of some files that a folder has.

    Raises:
        DatasetError: It has none.
    """
    for name in names:
        if (root / name).is_file():
            return root / name
    raise DatasetError(root, f"has no {names[0]}")


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    """Yield numbered lines that are not blank."""
    problem = ""
    number = 0
    try:
        with gzip.open(file, "rt", encoding="utf-8") if file.suffix == ".gz" else file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield number, line.rstrip("\n")
    except FileNotFoundError:
        problem = "does not exist"
    except UnicodeDecodeError:
        problem = "is not UTF-8"
    except (EOFError, zlib.error, gzip.BadGzipFile):
        problem = "is not a whole gzip file"
    except OSError as error:
        problem = f"cannot be read ({type(error).__name__})"
    if problem:
        raise DatasetError(file, problem, line=number + 1 if number else None)
