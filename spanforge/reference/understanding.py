"""Query understanding: keywords, entities, intent and expansion (protocol step 1)."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from typing import Literal

from spanforge.reference.lexical import STOP_WORDS, terms, words

Intent = Literal["factual", "procedural", "comparison", "explanation", "general"]

MAX_QUERY_CHARS = 8_000
"""What lies beyond is not searched for: it is a document, not a question. The trace still hashes the whole query."""
_INTENTS: tuple[tuple[Intent, re.Pattern[str]], ...] = (
    ("comparison", re.compile(r"\b(compare[ds]?|comparison|differen(?:ce|t)|differ|versus|vs)\b")),
    ("explanation", re.compile(r"\b(why|explain|reasons?|cause[sd]?)\b")),
    ("procedural", re.compile(r"\b(how (?:do|does|can|to|should|would)|steps?|procedure|process)\b")),
    (
        "factual",
        re.compile(r"\b(what|when|where|who|whom|whose|which|how (?:many|much|long|far|old|tall|high|big))\b"),
    ),
)
_ENTITY = re.compile(
    r"\b(?:[A-Z][\w'-]*|\d[\w.,/-]*\w|\d)(?:\s+(?:(?:of|the|de|van|von)\s+)?(?:[A-Z][\w'-]*|\d[\w.-]*))*"
)


@dataclass(frozen=True, slots=True)
class ProcessedQuery:
    """A question as the later stages use it; names as in the protocol.

    Attributes:
        original_query: As it was asked, cut at `MAX_QUERY_CHARS`.
        expanded_query: What is searched for.
        intent: What kind of answer is wanted.
        entities: Names and numbers.
        keywords: Words that carry meaning, in order, each once.
        terms: Stems of the keywords, in order, with repeats.
    """

    original_query: str = field(repr=False)
    expanded_query: str = field(repr=False)
    intent: Intent
    entities: tuple[str, ...] = field(repr=False)
    keywords: tuple[str, ...] = field(repr=False)
    terms: tuple[str, ...] = field(repr=False)


def process_query(query: str) -> ProcessedQuery:
    """Understand a question.

    The expanded query is the question itself: repeating keywords and adding terms of the first results were
    measured on public sets and lowered nDCG@10, so no expansion is kept (the documentation has the
    figures).
    """
    text = unicodedata.normalize("NFKC", query[:MAX_QUERY_CHARS]).replace("\x00", " ").strip()
    lowered = text.lower()
    intents: list[Intent] = [name for name, pattern in _INTENTS if pattern.search(lowered)]
    keywords = tuple(dict.fromkeys(word for word in words(text) if word not in STOP_WORDS))
    return ProcessedQuery(
        original_query=text,
        expanded_query=text,
        intent=intents[0] if intents else "general",
        entities=_entities(text),
        keywords=keywords,
        terms=tuple(terms(text)),
    )


def _entities(text: str) -> tuple[str, ...]:
    found = (match[0] for match in _ENTITY.finditer(text))
    return tuple(dict.fromkeys(name for name in found if name.lower() not in STOP_WORDS))
