"""What every answerer does, and how citations are read out of an answer."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Protocol

from spanforge.reference.answering.choice import choose
from spanforge.reference.models import AnsweringInput, AnsweringOutput, Citation

REFUSAL = "I don't have information on that"
"""The one constant refusal (protocol, scenario 2)."""

UNSURE = "Not sure; the closest passages say:"
"""What stands before quotations that are less likely right than not."""

_CITED = re.compile(r"\[([0-9]{1,4}(?:\s*,\s*[0-9]{1,4})*)\]")


class Answerer(Protocol):
    """Writes an answer from a prompt and its passages.

    The streaming forms yield the answer piece by piece, and as their last item the whole output.
    """

    @property
    def model(self) -> str:
        """Name of the model, for the trace."""
        ...

    @property
    def provider(self) -> str:
        """Who runs the model, for the trace."""
        ...

    @property
    def generative(self) -> bool:
        """Whether another attempt can word it differently, and a question be answered without passages."""
        ...

    def answer(self, request: AnsweringInput) -> AnsweringOutput:
        """Return the answer.

        Raises:
            GenerationFailed: The model did not answer.
        """
        ...

    def stream(self, request: AnsweringInput) -> Iterator[str | AnsweringOutput]:
        """Yield the answer's pieces, then the whole.

        Raises:
            GenerationFailed: The model stopped answering.
        """
        ...

    async def aanswer(self, request: AnsweringInput) -> AnsweringOutput:
        """Return the answer without blocking the event loop."""
        ...

    def astream(self, request: AnsweringInput) -> AsyncIterator[str | AnsweringOutput]:
        """Yield the answer's pieces, then the whole, without blocking the event loop."""
        ...

    def close(self) -> None:
        """Release connections, where there are any."""
        ...


def is_refusal(answer: str) -> bool:
    """Tell whether an answer is the constant refusal, however quoted or punctuated."""
    return answer.strip(" .\"'\n").casefold().replace("\u2019", "'") == REFUSAL.casefold()


def used_citations(answer: str, citations: Sequence[Citation]) -> list[Citation]:
    """Return the citations whose numbers stand in the answer, by first use; unknown numbers are left out."""
    by_number = {citation.number: citation for citation in citations}
    numbers = (int(number) for group in _CITED.findall(answer) for number in group.split(","))
    return [by_number[number] for number in dict.fromkeys(numbers) if number in by_number]


def whole(
    request: AnsweringInput,
    answer: str,
    *,
    model: str,
    prompt_tokens: int = 0,
    output_tokens: int = 0,
    finish_reason: str = "stop",
) -> AnsweringOutput:
    """Return the output for an answer as the model wrote it.

    Its confidence is the probability that the passages hold the answer, as `choice` judges them, times the share of the
    answer's sentences that carry a citation: all that can be said before the answer is verified.
    """
    text = answer.strip()
    sentences = [part for part in re.split(r"(?<=[.!?\]])\s+", text) if part]
    cited = sum(1 for part in sentences if _CITED.search(part)) / len(sentences) if sentences else 0.0
    return AnsweringOutput(
        answer=text,
        citations_used=used_citations(text, request.citations),
        confidence=cited * choose(request.query, request.grounded_docs).probability,
        model=model,
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        finish_reason=finish_reason,
    )
