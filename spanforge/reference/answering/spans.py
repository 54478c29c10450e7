"""Cutting a sentence down to the words that answer a factual question.

Rules, not a model: the question's first words tell what kind of answer is wanted; candidates of that kind
are found in the sentence; the one standing closest to the question's words wins. Where there is no clear
winner the whole sentence is the answer, which is never wrong, only longer.
"""

from __future__ import annotations

import re
from typing import Literal

from spanforge.reference.lexical import STOP_WORDS, stem, terms, words

Kind = Literal["name", "time", "quantity"]

_TIME_QUESTION = re.compile(
    r"^(?:when\b|(?:in |on |since |by )?(?:what|which) (?:year|date|day|month|century|decade)\b)"
)
_QUANTITY_QUESTION = re.compile(
    r"^(?:(?:by |for |at |in )?how (?:many|much|long|far|tall|high|deep|old|big|large|fast|often|heavy|wide)\b"
    r"|what (?:is|was|are) the (?:number|percentage|population|height|length|depth|price|limit|size|rate|speed|age|"
    r"temperature|boiling point|melting point|distance|budget|allowance)\b|what percentage\b)"
)
_NAME_QUESTION = re.compile(r"^(?:who|whom|whose|where|(?:in |on |at |from )?(?:which|what)\b)")
_DEFINITION = re.compile(r"^what (?:is|are|was|were|does|do)\b")

_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_TIME = re.compile(
    rf"\b(?:\d{{1,2}}(?:st|nd|rd|th)?\s+(?:{_MONTHS})(?:\s+\d{{4}})?|(?:{_MONTHS})\s+\d{{1,2}}(?:,?\s+\d{{4}})?"
    rf"|(?:{_MONTHS})\s+\d{{4}}|\d{{4}}-\d{{2}}-\d{{2}}|(?:1[0-9]|20)\d{{2}}s?|\d{{1,2}}:\d{{2}})\b"
)
_NUMBER_WORDS = (
    "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|sixty|seventy|"
    "eighty|ninety|hundred|thousand|million|billion"
)
_QUANTITY = re.compile(
    rf"(?:(?:about|around|roughly|nearly|approximately|at least|at most|up to|over)\s+)?"
    rf"(?:[$€£]\s?)?(?:\d[\d,]*(?:\.\d+)?|\b(?:{_NUMBER_WORDS})\b)"
    rf"(?:\s*(?:%|°[CF]|(?:percent|per cent|{_NUMBER_WORDS})\b))?"
    rf"(?:[\s-](?:degrees Celsius|degrees|kilometres|kilometers|metres|meters|miles|feet|seconds|minutes|hours|days|"
    rf"weeks|months|years|people|inhabitants|tokens|euros|dollars|kilograms|grams|litres|km|m|kg|ms|s|"
    rf"working days|calendar days|business days)\b(?: per \w+)?)?"
)
_NAME = re.compile(r"\b[A-Z][\w'’.-]*\w(?:\s+(?:(?:of|the|de|da|van|von|and)\s+)?[A-Z][\w'’-]*)*")
_REACH = 40
"""Distance, in words, beyond which a word of the question no longer speaks for a candidate."""


def wanted_kind(question: str) -> Kind | None:
    """Return what kind of answer a question wants, None where only a sentence will do."""
    lowered = " ".join(question.lower().split())
    if _TIME_QUESTION.match(lowered):
        return "time"
    if _QUANTITY_QUESTION.match(lowered):
        return "quantity"
    if _NAME_QUESTION.match(lowered):
        return "name"
    return None


def answer_span(question: str, sentence: str) -> str | None:
    """Return the part of the sentence that answers the question, None where no part clearly does.

    Args:
        question: The question as asked.
        sentence: One sentence of a document that covers the question.
    """
    kind = wanted_kind(question)
    if kind is None:
        return None
    asked = set(terms(question))
    tokens = [(match.start(), stem(match[0].lower())) for match in re.finditer(r"\w+", sentence)]
    anchors = [i for i, (_, token) in enumerate(tokens) if token in asked]
    if not anchors:
        return None
    pattern = {"time": _TIME, "quantity": _QUANTITY, "name": _NAME}[kind]
    scored: list[tuple[float, str]] = []
    for match in pattern.finditer(sentence):
        text = match[0].strip()
        content = [word for word in words(text) if word not in STOP_WORDS]
        if not content or asked.intersection(stem(word) for word in content):
            continue
        position = sum(1 for start, _ in tokens if start < match.start())
        closeness = sum(
            1.0 / (1 + abs(position - anchor)) for anchor in anchors if abs(position - anchor) <= _REACH
        )
        scored.append((closeness, text))
    if not scored:
        return None
    scored.sort(key=lambda item: -item[0])
    if kind == "name" and not _clear_name(question, sentence, scored):
        return None
    if len(scored) > 1 and scored[1][0] > 0.8 * scored[0][0] and scored[1][1] != scored[0][1]:
        return None
    return scored[0][1]


def _clear_name(question: str, sentence: str, scored: list[tuple[float, str]]) -> bool:
    """Tell whether a name is the answer, rather than a name inside a definition.

    "What is X?" asks for a sentence about X unless the sentence equates X with the name.
    """
    if not _DEFINITION.match(question.lower().strip()):
        return True
    name = re.escape(scored[0][1])
    equation = rf"(?:^(?:The city of )?{name},? (?:is|was|are|were)\b|\b(?:is|was|are|were|called|named) {name}\s*[.,;]?$)"
    return re.search(equation, sentence) is not None
