"""What an answer claims: its sentences, without citation marks."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from spanforge.reference.grounding.contexts import sentences_of
from spanforge.reference.grounding.sentence import Sentence
from spanforge.reference.grounding.text import sentence_spans

_CITATION: Final = re.compile(r"\s?\[\d{1,4}(?:\s?[,;\u2013-]\s?\d{1,4}){0,20}\]")
_LIST_MARK: Final = re.compile(r"^\s*(?:[-*\u2022\u2013#>]{1,6}\s+|\(?\d{1,3}[.)]\s+(?=\S))")
_REFUSAL: Final = re.compile(
    r"^(?:sorry|unfortunately|i'?m sorry|i am sorry|i apologi[sz]e)?[\s,:;]*(?:but\s+)?"
    r"(?:i (?:do not|don't|can ?not|can't|could not|couldn't|am not able to|am unable to|was unable to) "
    r"(?:have|know|answer|find|determine|provide|see)\b"
    r"|there (?:is|was) (?:no|not enough|insufficient) (?:relevant )?(?:information|context|data|evidence)\b"
    r"|(?:the |this |these )?(?:provided |given |retrieved |available )?"
    r"(?:context|contexts|documents?|sources?|passages?|text) "
    r"(?:does|do|did) (?:not|n't) (?:contain|mention|provide|say|include|state|specify|have)\b)",
    re.IGNORECASE,
)
"""Sentences that say no answer was found; they claim nothing about the world."""

_REFUSAL_REACH: Final = 200
_YES_OR_NO: Final = re.compile(r"^\W*(?:yes|no)\b\W*$", re.IGNORECASE)
_SHORT: Final = 3
"""Content words up to which an answer is a fragment that says something only together with its question."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement to be judged.

    Attributes:
        units: Its sentences.
        asked: Content stems that stand in it only because the question was joined to it.
    """

    units: tuple[Sentence, ...] = field(repr=False)
    asked: frozenset[str] = field(default=frozenset(), repr=False)


def strip_citations(text: str) -> str:
    """Remove ``[n]`` citation marks and the white space before them."""
    return _CITATION.sub("", text)


def split_claims(answer: str) -> list[str]:
    """Split an answer into claims, one a sentence or list item.

    Args:
        answer: The answer as generated.

    Returns:
        The claims in order, without citation marks and list marks. Pieces without a content word (a heading rule, a
        lone "Yes.") are no claims; questions and refusals are none either.
    """
    claims: list[str] = []
    plain = strip_citations(answer)
    for start, end in sentence_spans(plain):
        piece = _LIST_MARK.sub("", plain[start:end]).strip()
        if _is_claim(piece):
            claims.append(piece)
    return claims


def _is_claim(piece: str) -> bool:
    if piece.endswith("?") or _REFUSAL.match(piece.replace("\u2019", "'")[:_REFUSAL_REACH]):
        return False
    return bool(Sentence(piece, 0).words)


def is_yes_or_no(answer: str) -> bool:
    """Tell whether an answer is a bare yes or no, which claims what its question asks."""
    return bool(_YES_OR_NO.match(strip_citations(answer)))


def read_claim(text: str, question: str = "") -> Claim:
    """Make a claim ready to be judged.

    Args:
        text: The claim; citation and list marks are dropped.
        question: The question it answers. A fragment such as "Paris" is joined with it, so that "What is the capital
            of France?" and "Paris" are judged as one statement.

    Returns:
        The claim's sentences, and which words only the question contributed.
    """
    plain = _LIST_MARK.sub("", strip_citations(text)).strip()
    units = sentences_of(plain)
    if not question or len(units) != 1 or len(units[0].words) > _SHORT:
        return Claim(units)
    asked = question.strip().rstrip("?").rstrip()
    joined = Sentence(f"{plain.rstrip('.')} {asked}", 0)
    return Claim((joined,), Sentence(asked, 0).content - units[0].content)
