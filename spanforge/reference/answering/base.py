"""What every answerer does, and how citations are read out of an answer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol

from spanforge.reference.assembly import REFUSAL

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from spanforge.reference.models import AnsweringInput, AnsweringOutput, Citation

_CITED = re.compile(r"\[(\d{1,4}(?:\s*,\s*\d{1,4})*)\]")


class Answerer(Protocol):
    """Writes an answer from a prompt and its passages."""

    @property
    def model(self) -> str:
        """Name of the model, for the trace."""
        ...

    @property
    def provider(self) -> str:
        """Who runs the model, for the trace."""
        ...

    def answer(self, request: AnsweringInput) -> AnsweringOutput:
        """Return the whole answer.

        Raises:
            GenerationFailed: The model did not answer.
        """
        ...

    def stream(self, request: AnsweringInput) -> Iterator[str]:
        """Yield the answer piece by piece; the pieces joined are what `answer` would have said.

        Raises:
            GenerationFailed: The model stopped answering.
        """
        ...


def is_refusal(answer: str) -> bool:
    """Tell whether an answer is the constant refusal, however quoted or punctuated."""
    return answer.strip(" .\"'\n").casefold().replace("’", "'") == REFUSAL.casefold()


def used_citations(answer: str, citations: Sequence[Citation]) -> list[Citation]:
    """Return the citations whose numbers stand in the answer, in order of first use; unknown numbers are left out."""
    by_number = {citation.number: citation for citation in citations}
    numbers = (int(number) for group in _CITED.findall(answer) for number in group.split(","))
    return [by_number[number] for number in dict.fromkeys(numbers) if number in by_number]


def strip_citations(answer: str) -> str:
    """Return the answer without its numbers in square brackets."""
    return re.sub(r"\s*" + _CITED.pattern, "", answer)
