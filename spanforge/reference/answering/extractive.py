"""The offline answerer: it quotes the sentences that answer best, and says so when none does.

Sentences are chosen greedily by the weight of the question's words they add. Names that a chosen sentence
brings in count as words to look for as well, which is how an answer spread over several documents is
followed from one to the next. A factual question is answered by the words alone where they are plain to
see.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from spanforge.reference.answering.base import used_citations
from spanforge.reference.answering.spans import Wanted, answer_span, candidates, wanted
from spanforge.reference.answering.units import Unit, names_in, stems, units_of
from spanforge.reference.assembly import REFUSAL
from spanforge.reference.lexical import rarity
from spanforge.reference.models import AnsweringOutput

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

    from spanforge.reference.models import AnsweringInput

MODEL_NAME = "spanforge-extractive-1"
MIN_COVERAGE = 0.35
"""The words of an answer must cover this share of the question's weight; below it the refusal is the honest answer. Set
where refusals of questions that the documents answer and answers to those that they do not are fewest together: 14 and
21 in 100 of a public set's. At 0.3 the first are 10 and the second 33, at 0.45 they are 27 and 12."""
MIN_COVERAGE_WITHOUT_NAME = 0.45
"""The same where a name that the question asks about is in none of the chosen sentences."""
MIN_COVERAGE_TO_CUT = 0.6
"""Share of the question's weight from which a sentence may be cut to a few words: with less, only the whole of it shows
the reader how far it answers."""
MIN_GAIN = 0.2
"""A further sentence must add this share of the question's weight ..."""
MIN_GAIN_LED = 0.05
"""... or this one where a name in what is already chosen leads to it."""
HEADING_SHARE = 0.5
"""What a word counts that stands only in the headings over a sentence."""
MAX_UNITS = 4
_COMPOUND = re.compile(r"\b(?:and|or|as well as)\b|[,;]", re.IGNORECASE)
"""A question that may ask for more than one thing."""
_KIND = "\0kind"
"""Stands among the question's words for the kind of answer it wants; no text holds it."""


class ExtractiveAnswerer:
    """Answers with quotations; ``confidence`` is the covered share of the question's weight."""

    model = MODEL_NAME
    provider = "spanforge"
    generative = False

    def answer(self, request: AnsweringInput) -> AnsweringOutput:
        """Return the quotations that answer, or the refusal."""
        chosen, covered = _choose(request.query, units_of(request.grounded_docs))
        answer = _compose(request.query, chosen, covered) if chosen else REFUSAL
        return AnsweringOutput(
            answer=answer,
            citations_used=used_citations(answer, request.citations),
            confidence=covered if answer != REFUSAL else 0.0,
            model=self.model,
        )

    def stream(self, request: AnsweringInput) -> Iterator[str | AnsweringOutput]:
        """Yield the answer word by word, then the whole."""
        output = self.answer(request)
        yield from re.findall(r"\S+\s*", output.answer)
        yield output

    def close(self) -> None:
        """Nothing is held open."""

    async def aanswer(self, request: AnsweringInput) -> AnsweringOutput:
        """Return the answer; a matter of a few milliseconds, done in place."""
        return self.answer(request)

    async def astream(self, request: AnsweringInput) -> AsyncIterator[str | AnsweringOutput]:
        """Yield the answer word by word, then the whole."""
        for item in self.stream(request):
            yield item


def _choose(question: str, units: Sequence[Unit]) -> tuple[list[Unit], float]:
    """Return the chosen units in order of choice, and the share of the question's weight they cover.

    Nothing is chosen where too little is covered, or where the question needs a kind of answer that is nowhere to be
    seen.
    """
    want = wanted(question)
    asked = stems(question) - ({want.measure} if want else set())
    if not asked or not units:
        return [], 0.0
    said = [_said(question, want, unit) for unit in units]
    still_open = rarity(asked, said)
    words = sum(still_open.values())
    if want is not None and want.expected:
        still_open[_KIND] = words / len(still_open)
    total = sum(still_open.values())
    one_fact = want is not None and want.expected and not _COMPOUND.search(question)
    chosen: list[Unit] = []
    names: set[str] = set()
    above: set[str] = set()
    left = set(range(len(units)))
    while left and len(chosen) < MAX_UNITS:
        if one_fact and chosen and _KIND not in still_open:
            break
        best = max(left, key=lambda i: (_gain(units[i], said[i], still_open, names, total), -i))
        led = bool(names & units[best].names)
        gain = _gain(units[best], said[best], still_open, set(), total)
        if gain < total * (MIN_GAIN_LED if led or not chosen else MIN_GAIN):
            break
        # What shares neither a name nor a word of the question with the rest speaks of something else.
        if chosen and not led and not said[best] & (asked - still_open.keys()):
            break
        left.discard(best)
        chosen.append(units[best])
        for term in said[best]:
            still_open.pop(term, None)
        above |= units[best].context
        names |= units[best].names - asked
    if want is not None and want.required and _KIND in still_open:
        return [], 0.0
    # That something of the wanted kind stands there is a reason to choose a sentence, not one to believe it.
    still_open.pop(_KIND, None)
    missing = sum(value * (1.0 - HEADING_SHARE * (term in above)) for term, value in still_open.items())
    covered = 1.0 - missing / words
    nameless = bool((names_in(question) & still_open.keys()) - above)
    enough = covered >= (MIN_COVERAGE_WITHOUT_NAME if nameless else MIN_COVERAGE)
    return (chosen, covered) if enough else ([], covered)


def _said(question: str, want: Wanted | None, unit: Unit) -> frozenset[str]:
    if want is not None and want.expected and candidates(question, want, unit.text):
        return unit.terms | {_KIND}
    return unit.terms


def _gain(unit: Unit, said: frozenset[str], still_open: Mapping[str, float], names: set[str], total: float) -> float:
    own = sum(value for term, value in still_open.items() if term in said)
    near = sum(HEADING_SHARE * value for term, value in still_open.items() if term in unit.context)
    # A name is a reason to prefer one sentence over another, not a reason to say more.
    led = MIN_GAIN * total if own and names & unit.names else 0.0
    return own + near + led


def _compose(question: str, chosen: Sequence[Unit], covered: float) -> str:
    if len(chosen) == 1 and covered >= MIN_COVERAGE_TO_CUT:
        span = answer_span(question, chosen[0].sentence)
        if span is not None:
            return f"{span} [{chosen[0].number}]"
    return " ".join(f"{_closed(unit.text)} [{unit.number}]" for unit in chosen)


def _closed(text: str) -> str:
    return text if text[-1] in ".!?。！？" else text + "."  # noqa: RUF001 - full-width stops end sentences in CJK text
