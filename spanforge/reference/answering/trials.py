"""Questions put to documents that answer them and to documents that do not: what `train` and `measure` share.

A set is a folder in BEIR layout. Every question is asked twice, of one half of the documents and of the other, so that
each is once answerable and once not, while documents near the missing one stay. A set that has questions of its own
that its documents do not answer (``unanswerable.jsonl``, lines like those of ``queries.jsonl``) is asked once, whole.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from spanforge.reference.answering.choice import Choice, choose
from spanforge.reference.answering.extractive import ExtractiveAnswerer
from spanforge.reference.assembly import REFUSAL
from spanforge.reference.evaluation.datasets import read_retrieval
from spanforge.reference.models import AnsweringOutput, Document
from spanforge.reference.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from spanforge.reference.models import AnsweringInput, RagResult

_UNANSWERABLE: Final = "unanswerable.jsonl"


@dataclass(frozen=True, slots=True)
class Trial:
    """One question put to one set of documents.

    Attributes:
        answerable: Whether a relevant document was among them.
        features: What spoke for and against an answer; empty where nothing was there to choose from.
        result: How the run ended.
        strict: How it ended in strict mode; the same while a model is being fitted.
        right: Whether the result cites a relevant document.
    """

    answerable: bool
    features: Mapping[str, float] = field(repr=False)
    result: RagResult
    strict: RagResult
    right: bool


@dataclass(frozen=True, slots=True)
class TrialSet:
    """The trials of one folder."""

    name: str
    trials: tuple[Trial, ...] = field(repr=False)


class _Observed(ExtractiveAnswerer):
    """Keeps what was chosen. While a model is being fitted none is asked, and every answer is the refusal."""

    def __init__(self, *, answering: bool) -> None:
        self._answering = answering
        self.choice = Choice()

    def answer(self, request: AnsweringInput) -> AnsweringOutput:
        self.choice = choose(request.query, request.grounded_docs)
        if self._answering:
            return super().answer(request)
        return AnsweringOutput(answer=REFUSAL, citations_used=[], confidence=0.0, model=self.model)


def read_sets(folder: Path, *, answering: bool) -> Iterator[TrialSet]:
    """Put the questions of every set in a folder.

    Args:
        folder: Holds one folder a set.
        answering: Whether the committed model decides between answer and refusal; without it all is refused.

    Raises:
        DatasetError: A set is malformed.
        FileNotFoundError: The folder holds no set.
    """
    places = sorted(path for path in folder.iterdir() if path.is_dir())
    if not places:
        raise FileNotFoundError("the folder holds no folder with a test set")
    for place in places:
        yield TrialSet(place.name, tuple(_trials(place, answering=answering)))


def _trials(place: Path, *, answering: bool) -> Iterator[Trial]:
    dataset = read_retrieval(place)
    questions = [
        (text, frozenset(document for document, grade in dataset.qrels[query].items() if grade))
        for query, text in dataset.queries.items()
    ]
    if (place / _UNANSWERABLE).is_file():
        lines = (place / _UNANSWERABLE).read_text(encoding="utf-8").splitlines()
        questions += [(str(json.loads(line)["text"]), frozenset[str]()) for line in lines if line.strip()]
        yield from _asked(dataset.corpus, questions, answering=answering)
        return
    names = list(dataset.corpus)
    for half in (names[::2], names[1::2]):
        yield from _asked({name: dataset.corpus[name] for name in half}, questions, answering=answering)


def _asked(
    corpus: Mapping[str, str], questions: Iterable[tuple[str, frozenset[str]]], *, answering: bool
) -> Iterator[Trial]:
    observed = _Observed(answering=answering)
    with Pipeline(answerer=observed) as pipeline:
        pipeline.ingest([Document(document_id=name, text=text) for name, text in corpus.items()])
        for question, relevant in questions:
            observed.choice = Choice()
            result = pipeline.ask(question)
            features = observed.choice.features
            yield Trial(
                answerable=not relevant.isdisjoint(corpus),
                features=features,
                result=result,
                strict=pipeline.ask(question, strict=True) if answering else result,
                right=any(citation.document_id in relevant for citation in result.citations_used),
            )
