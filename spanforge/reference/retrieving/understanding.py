"""Query understanding: keywords and terms (protocol step 1)."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from typing import Final

from spanforge.reference.lexical import STOP_WORDS, terms, words

MAX_QUERY_CHARS = 8_000
"""What lies beyond is not searched for: it is a document, not a question. The trace still hashes the whole query."""

_POLITE: Final = re.compile(
    r"\b(?:please|kindly|hello|hi|thanks?(?: you)?(?: (?:so|very) much)?|(?:could|can|would|will) you"
    r"(?: (?:please|kindly|perhaps|possibly))?(?: (?:tell|explain to|show|give|help) me)?"
    r"|i (?:would|'d) (?:like|love) to know|i (?:want|need) to know|i (?:was|am|'m) (?:just )?wondering"
    r"|do you (?:happen to )?know|tell me)\b[\s,!.]*",
    re.IGNORECASE,
)
"""What is said around a question, and of no use to find its answer."""

_RAMBLING_WORDS: Final = 20
"""Words from which a question is looked for inside what is said around it ..."""
_FEWEST_TERMS: Final = 3
"""... and words that carry meaning which it must have to stand alone."""
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+")
_LEANS: Final = re.compile(
    r"\b(?:it|its|they|them|their|he|him|his|she|her|this|that|these|those|there|one)\b", re.IGNORECASE
)
_QUESTION_WORDS: Final = "who|whom|whose|what|when|where|which|why|how"
_ASKS: Final = re.compile(rf"\b(?:{_QUESTION_WORDS})\b", re.IGNORECASE)
ASIDE: Final = re.compile(rf"\?\s+(?=\w)|,?\s+and\s+(?=(?:\w+\s+)?(?:{_QUESTION_WORDS})\b)", re.IGNORECASE)
"""What stands between two questions that are asked in one."""
_ELLIPTICAL: Final = re.compile(
    rf"\b(?:{_QUESTION_WORDS}|how\s+\w+)\s+(?:in|at|on|by|for|to|from|of|about|with)\b", re.IGNORECASE
)
"""A question without a verb of its own, such as "and when in Leeds"."""


@dataclass(frozen=True, slots=True)
class ProcessedQuery:
    """A question as the later stages use it; names as in the protocol.

    Attributes:
        original_query: As it was asked, cut at `MAX_QUERY_CHARS`.
        expanded_query: What is searched for and answered: the question without what only makes it polite.
        keywords: Words that carry meaning, in order, each once.
        terms: Stems of the keywords, in order, with repeats.
    """

    original_query: str = field(repr=False)
    expanded_query: str = field(repr=False)
    keywords: tuple[str, ...] = field(repr=False)
    terms: tuple[str, ...] = field(repr=False)


def process_query(query: str) -> ProcessedQuery:
    """Understand a question.

    Nothing is added to it: what the first results tell of it changes their order alone (`feedback`), not what is found.
    """
    text = unicodedata.normalize("NFKC", query[:MAX_QUERY_CHARS]).replace("\x00", " ").strip()
    plain = _POLITE.sub("", text).strip() or text
    if plain != text or len(text.split()) > _RAMBLING_WORDS:
        plain = _core(plain)
    keywords = tuple(dict.fromkeys(word for word in words(plain) if word not in STOP_WORDS))
    return ProcessedQuery(
        original_query=text,
        expanded_query=plain,
        keywords=keywords,
        terms=tuple(terms(plain)),
    )


def _core(text: str) -> str:
    """Return what a text asks in the end, all of it where that is not to be told, or leans on the rest."""
    asked = [piece.rpartition(": ")[2] for piece in _SENTENCE_END.split(text) if piece.endswith("?")]
    core = " ".join(asked)
    return core if len(set(terms(core))) >= _FEWEST_TERMS and not _LEANS.search(core) else text


def parts_of(query: str) -> list[str]:
    """Return the questions that are asked side by side in one; itself where one of them leans on another."""
    parts = [part.strip(" ,") for part in ASIDE.split(query)]
    stand = all(_ASKS.search(part) and terms(part) for part in parts)
    leaning = any(_LEANS.search(part) or _ELLIPTICAL.search(part) for part in parts[1:])
    return parts if len(parts) > 1 and stand and not leaning else [query]
