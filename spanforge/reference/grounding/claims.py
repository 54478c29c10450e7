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
    r"^(?:(?:(?:i'?m |i am )?(?:so |very )?sorry|unfortunately|i apologi[sz]e|apologies|regrettably|no)[\s,:;.]*)?"
    r"(?:but\s+)?"
    r"(?:i (?:do not|don't|can ?not|can't|could not|couldn't|did not|didn't|am not able to|am unable to|was unable to) "
    r"(?:have|know|answer|find|determine|provide|see|tell|locate|confirm)\b"
    r"|i(?:'m| am) (?:not sure|unable|not aware)\b"
    r"|(?:it|this|that|the answer|(?:the |this |that )?(?:requested |relevant )?information) "
    r"(?:is not|isn't|was not|wasn't|cannot be|can't be|could not be) "
    r"(?:(?:explicitly |directly )?(?:mentioned|stated|specified|given|provided|contained|included|available|found"
    r"|determined|answered|known|clear)|in the)\b"
    r"|(?:there (?:is|was) )?(?:no|not enough|insufficient) "
    r"(?:(?:relevant|such|specific|sufficient|further) )?(?:information|context|data|evidence|answer|mention)\b"
    r"|not (?:mentioned|stated|specified|found|available|known|enough information)\b"
    r"|nothing (?:in|was found)\b"
    r"|(?:based on |according to )?(?:the |this |these )?(?:provided |given |retrieved |available )?"
    r"(?:context|contexts|documents?|sources?|passages?|text),? "
    r"(?:(?:(?:does|do|did) (?:not|n't)|doesn't|don't|didn't) "
    r"(?:contain|mention|provide|say|include|state|specify|have|give|answer|tell|discuss)"
    r"|(?:provides?|contains?|gives?|has|have) no (?:\w+ )?(?:details?|information|answers?|mention|evidence|data))\b)",
    re.IGNORECASE,
)
"""Sentences that say no answer was found; they claim nothing about the world."""

_CHAT: Final = re.compile(
    r"^(?:sure|certainly|of course|absolutely|great question|good question|hello|hi|thanks?(?: you)?"
    r"|you(?:'re| are) welcome|happy to help|i hope (?:this|that|it) helps|let me know\b.*|feel free\b.*"
    r"|(?:please )?(?:do not|don't) hesitate\b.*|if you have (?:any )?(?:more |other |further )?questions\b.*"
    r"|(?:here|below)(?:'s| is| are)\b[^.]{0,80}\b(?:summary|answer|overview|list|steps|information|breakdown)\b"
    r"[^.:]{0,80})"
    r"[\s.!:]*$",
    re.IGNORECASE,
)
"""What is said to be polite, or to announce what follows."""

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
    """Split an answer into claims in order, one a sentence or list item, without citation marks and list marks.

    Pieces without a content word (a heading rule, a lone "Yes.") are no claims; questions and refusals are none either.
    """
    plain = strip_citations(answer)
    pieces = (_LIST_MARK.sub("", plain[start:end]).strip() for start, end in sentence_spans(plain))
    return [piece for piece in pieces if _is_claim(piece)]


def _is_claim(piece: str) -> bool:
    beginning = piece.replace("\u2019", "'")[:_REFUSAL_REACH]
    if piece.endswith(("?", ":")) or _REFUSAL.match(beginning) or _CHAT.match(beginning):
        return False
    return bool(Sentence(piece, 0).words)


def is_yes_or_no(answer: str) -> bool:
    """Tell whether an answer is a bare yes or no, which claims what its question asks."""
    return bool(_YES_OR_NO.match(strip_citations(answer)))


def read_claim(text: str, question: str = "") -> Claim:
    """Make a claim ready to be judged; citation and list marks are dropped.

    A fragment such as "Paris" is joined with the question it answers, so that "What is the capital of France?" and
    "Paris" are judged as one statement.
    """
    plain = _LIST_MARK.sub("", strip_citations(text)).strip()
    units = sentences_of(plain)
    if not question or len(units) != 1 or len(units[0].words) > _SHORT:
        return Claim(units)
    asked = question.strip().rstrip("?").rstrip()
    joined = Sentence(f"{plain.rstrip('.')} {asked}", 0)
    return Claim((joined,), Sentence(asked, 0).content - units[0].content)
