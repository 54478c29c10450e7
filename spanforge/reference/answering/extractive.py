"""The offline answerer: it quotes what answers best, says how sure that is, and says so where nothing does."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from typing import Final

from spanforge.reference.answering.base import REFUSAL, UNSURE
from spanforge.reference.answering.choice import ASKS_HOW, Choice, choose
from spanforge.reference.answering.spans import answer_span
from spanforge.reference.answering.tables import quoted_cells
from spanforge.reference.answering.units import Unit, stems
from spanforge.reference.models import AnsweringInput, AnsweringOutput
from spanforge.reference.passages import quoted

MODEL_NAME = "spanforge-extractive-2"
MIN_COVERAGE_TO_CUT: Final = 0.6
"""Share of the question's weight from which a sentence may be cut to a few words: with less, only the whole of it shows
the reader how far it answers."""


class ExtractiveAnswerer:
    """Answers with quotations; ``confidence`` is the probability that they are right, from `certainty`."""

    model = MODEL_NAME
    provider = "spanforge"
    generative = False

    def answer(self, request: AnsweringInput) -> AnsweringOutput:
        """Return the quotations, as an answer or as the closest ones, or the refusal."""
        choice = choose(request.query, request.grounded_docs)
        # Not from the answer's text: a quotation may hold numbers in brackets of its own.
        numbers = dict.fromkeys(unit.number for unit in choice.units) if choice.is_shown else {}
        cited = {citation.number: citation for citation in request.citations}
        return AnsweringOutput(
            answer=_answer(choice),
            citations_used=[cited[number] for number in numbers if number in cited],
            confidence=choice.probability if choice.is_shown else 0.0,
            is_certain=choice.is_certain,
            is_quoted=True,
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


def _answer(choice: Choice) -> str:
    if not choice.is_shown:
        return REFUSAL
    if not choice.is_certain:
        return f"{UNSURE}\n{_quotations(choice)}"
    unit = choice.units[0]
    if len(choice.units) == 1 and not unit.cells and choice.covered >= MIN_COVERAGE_TO_CUT:
        span = answer_span(choice.asked.text, unit.sentence)
        if span is not None:
            return f"{quoted(span)} [{unit.number}]"
    return _quotations(choice)


def _quotations(choice: Choice) -> str:
    parts = dict.fromkeys(f"{_quotation(choice, unit)} [{unit.number}]" for unit in choice.units)
    apart = any(unit.cells or "\n" in part for unit, part in zip(choice.units, parts, strict=False))
    return ("\n" if apart else " ").join(parts)


def _quotation(choice: Choice, unit: Unit) -> str:
    """Return a unit whole.

    An item that says no more of the question than its list or another item has the list around it, as steps have. A
    heading that says what the unit itself leaves open stands before it.
    """
    if unit.cells:
        return quoted_cells(choice.asked.text, choice.asked.want, unit)
    own = choice.asked.words.keys() & stems(unit.sentence)
    alike = sum(own <= stems(line) for line in unit.listing.split("\n"))
    text = unit.listing if alike > 1 or (unit.listing and ASKS_HOW.search(choice.asked.text)) else _closed(unit.text)
    missing = choice.asked.words.keys() - stems(text)
    heading = unit.heading if not unit.heading.endswith("?") and missing & stems(unit.heading) else ""
    joint = ":\n" if "\n" in text else ": "
    return f"{quoted(heading)}{joint}{text}" if heading else text


def _closed(text: str) -> str:
    return text if text[-1] in ".!?。！？:;" else text + "."  # noqa: RUF001 - full-width stops end sentences in CJK text
