"""The offline answerer: it quotes the sentences that answer best, and says so when none does.

Sentences are chosen greedily by the weight of the question's words they add. Names that a chosen sentence
brings in count as words to look for as well, which is how an answer spread over several documents is
followed from one to the next. A factual question is answered by the words alone where they are plain to
see.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spanforge.reference.answering.base import used_citations
from spanforge.reference.answering.spans import answer_span, wanted_kind
from spanforge.reference.assembly import REFUSAL, quoted
from spanforge.reference.grounding.text import sentence_spans
from spanforge.reference.lexical import STOP_WORDS, absent_weight, rarity, stem, terms, words
from spanforge.reference.models import AnsweringOutput
from spanforge.reference.understanding import process_query

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from spanforge.reference.models import AnsweringInput, RetrievedDocument

MODEL_NAME = "spanforge-extractive-1"
MIN_COVERAGE = 0.5
"""An answer must cover this share of the question's weight; below it the refusal is the honest answer."""
MIN_GAIN = 0.12
"""A further sentence must add this share of the question's weight, bridges included."""
BRIDGE_WEIGHT = 0.5
"""Weight of a name brought in by a chosen sentence, relative to the mean weight of the question's words."""
HEADING_SHARE = 0.8
"""What a word that stands only in the heading over a sentence counts."""
MAX_SENTENCES = 4
_LIST_MARK = re.compile(r"^(?:[-*+]\s+|\d+[.)]\s+|>\s*)")
_EMPHASIS = re.compile(r"\*\*|__|`")


@dataclass(frozen=True, slots=True)
class _Sentence:
    text: str
    number: int
    terms: frozenset[str]
    context: frozenset[str]
    names: frozenset[str]

    def __repr__(self) -> str:
        return f"_Sentence([{self.number}])"


class ExtractiveAnswerer:
    """Answers with quotations."""

    model = MODEL_NAME
    provider = "spanforge"

    def answer(self, request: AnsweringInput) -> AnsweringOutput:
        """Return the quotations that answer, or the refusal; ``confidence`` is the covered share."""
        sentences = _sentences(request.grounded_docs)
        chosen, covered = _choose(request.query, sentences)
        answer = _compose(request.query, chosen) if covered >= MIN_COVERAGE else REFUSAL
        return AnsweringOutput(
            answer=answer,
            citations_used=used_citations(answer, request.citations),
            confidence=covered if answer != REFUSAL else 0.0,
            model=self.model,
        )

    def stream(self, request: AnsweringInput) -> Iterator[str]:
        """Yield the answer word by word."""
        yield from re.findall(r"\S+\s*", self.answer(request).answer)


def _sentences(documents: Sequence[RetrievedDocument]) -> list[_Sentence]:
    sentences: list[_Sentence] = []
    for number, document in enumerate(documents, start=1):
        heading = frozenset(terms(document.heading))
        for start, end in sentence_spans(document.text):
            raw = document.text[start:end]
            if raw.startswith("#"):
                continue
            text = _EMPHASIS.sub("", _LIST_MARK.sub("", quoted(raw)))
            own = frozenset(terms(text))
            if own:
                sentences.append(_Sentence(text, number, own, heading - own, _names(text)))
    return sentences


def _names(text: str) -> frozenset[str]:
    found = re.findall(r"\b[A-Z][\w'’-]+", text)
    return frozenset(stem(word) for name in found for word in words(name) if word not in STOP_WORDS)


def _choose(query: str, sentences: Sequence[_Sentence]) -> tuple[list[_Sentence], float]:
    """Return the chosen sentences in order of choice, and the share of the question's weight they cover."""
    wanted = set(process_query(query).terms)
    if not wanted or not sentences:
        return [], 0.0
    weights = rarity([sentence.terms for sentence in sentences])
    default = absent_weight(len(sentences))
    weight = {term: weights.get(term, default) for term in wanted}
    total = sum(weight.values())
    bridges: dict[str, float] = {}
    open_terms: dict[str, float] = dict(weight)
    chosen: list[_Sentence] = []
    while len(chosen) < MAX_SENTENCES:
        best = max(sentences, key=lambda sentence: (_gain(sentence, open_terms, bridges), -sentence.number))
        if _gain(best, open_terms, bridges) < MIN_GAIN * total or (chosen and not _adds(best, open_terms)):
            break
        chosen.append(best)
        for term in best.terms:
            open_terms.pop(term, None)
            bridges.pop(term, None)
        for term in best.context.intersection(open_terms):
            open_terms[term] *= 1.0 - HEADING_SHARE
        bridges.update((name, BRIDGE_WEIGHT * total / len(weight)) for name in best.names - wanted)
    return chosen, 1.0 - sum(open_terms.values()) / total


def _gain(sentence: _Sentence, open_terms: Mapping[str, float], bridges: Mapping[str, float]) -> float:
    own = sum(value for term, value in open_terms.items() if term in sentence.terms)
    near = sum(HEADING_SHARE * value for term, value in open_terms.items() if term in sentence.context)
    bridge = max((value for term, value in bridges.items() if term in sentence.terms), default=0.0)
    return own + near + (bridge if own else 0.0)


def _adds(sentence: _Sentence, open_terms: Mapping[str, float]) -> bool:
    return not sentence.terms.isdisjoint(open_terms)


def _compose(query: str, chosen: Sequence[_Sentence]) -> str:
    if len(chosen) == 1 and wanted_kind(query):
        span = answer_span(query, chosen[0].text)
        if span is not None:
            return f"{span} [{chosen[0].number}]"
    return " ".join(f"{_closed(sentence.text)} [{sentence.number}]" for sentence in chosen)


def _closed(text: str) -> str:
    flat = " ".join(text.split())
    return flat if flat[-1] in ".!?。！？" else flat + "."  # noqa: RUF001 - full-width stops end sentences in CJK text
