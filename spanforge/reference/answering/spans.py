"""What kind of answer a factual question wants, and cutting a sentence down to it.

Rules, not a model: the question's first words tell the kind, and candidates of that kind are found in the sentence.
Where there is not just one the whole sentence is the answer, which is never wrong, only longer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from spanforge.reference.answering.units import stems
from spanforge.reference.grounding.sentence import content_stem
from spanforge.reference.grounding.text import TOKEN

Kind = Literal["who", "where", "name", "time", "quantity"]

_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_HOURS = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_TENS = "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
_NUMBER_WORDS = rf"{_HOURS}|fifteen|{_TENS}|hundred|thousand|million|billion"
_LENGTH = "kilomet(?:re|er)s?|met(?:re|er)s?|centimet(?:re|er)s?|miles?|feet|foot|inches|km|cm|mm|m"
_DURATION = "milliseconds?|seconds?|minutes?|hours?|(?:working |calendar |business )?days?|weeks?|months?|years?|ms|s"
_WEIGHT = "kilograms?|grams?|tonnes?|tons?|pounds?|kg|g"
_AMOUNT = (
    r"(?:(?:about|around|roughly|nearly|approximately|at least|at most|up to|less than|more than|over|no \w+ than)\s+)?"
    rf"(?<![\w-])(?:[$€£]\s?)?(?:\d[\d,]*(?:\.\d+)?|\b(?:{_NUMBER_WORDS})\b)(?:\s(?:{_NUMBER_WORDS})\b)*"
)
_ANY_UNIT = (
    r"(?:\s*%|\s?(?:percent|per cent)\b|\s?°[CF]|\sdegrees(?: Celsius| Fahrenheit)?|\s(?:euros|dollars|pounds)\b"
    rf"|[\s-](?:{_LENGTH}|{_DURATION}|{_WEIGHT})\b)"
)
_QUANTITY = re.compile(rf"{_AMOUNT}(?:{_ANY_UNIT})?", re.IGNORECASE)
_CLOCK = (
    rf"(?:\d{{1,2}}(?:[:.]\d{{2}})?\s?(?:a\.?m\b|p\.?m\b|o'clock)|\d{{1,2}}:\d{{2}}|(?:{_HOURS}) o'clock|noon|midnight"
    rf"|(?:{_HOURS}|\d{{1,2}}) (?=in the (?:morning|afternoon|evening)|at night))"
    r"(?:\s?in the (?:morning|afternoon|evening)|\s?at night)?"
)
_WEEKDAYS = "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?"
_TIME = re.compile(
    rf"\b(?:{_CLOCK}|(?:every |on )?{_WEEKDAYS}"
    rf"|\d{{1,2}}(?:st|nd|rd|th)?\s+(?:{_MONTHS})(?:\s+\d{{4}})?"
    rf"|(?:{_MONTHS})\s+\d{{1,2}}(?:,?\s+\d{{4}})?"
    rf"|(?:{_MONTHS})\s+\d{{4}}|\d{{4}}-\d{{2}}-\d{{2}}|(?:1[0-9]|20)\d{{2}}s?)\b",
    re.IGNORECASE,
)
_ANY_TIME = re.compile(
    r"\d|\b(?:when|while|after|before|until|since|during|once|if|as|on|at|by|in|from|within|\w+ly|every|each|always"
    r"|never|now|then|today|next|last|first)\b", re.IGNORECASE
)  # fmt: skip
"""What says, however loosely, when something is."""
_CALENDAR = rf"(?:{_MONTHS}|Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)\b"
_NAME = re.compile(rf"\b(?!{_CALENDAR})" + r"[A-Z][\w'.-]*\w(?:\s+(?:(?:of|the|de|da|van|von)\s+)?[A-Z][\w'-]*)*")
_YEAR = re.compile(r"^(?:1[0-9]|20)\d{2}$")

MEASURES = {
    "tall": _LENGTH, "high": _LENGTH, "deep": _LENGTH, "wide": _LENGTH, "far": _LENGTH,
    "long": f"{_LENGTH}|{_DURATION}", "old": _DURATION, "heavy": _WEIGHT,
    "fast": "knots?|km/h|kph|mph|m/s|kilomet(?:re|er)s|miles",
}  # fmt: skip
_HOW = re.compile(r"^(?:by |for |at |in |after )?how (tall|high|deep|wide|far|long|old|heavy|fast|much|many)\b")
_AUXILIARY = "do|does|did|is|are|was|were|has|have|had|can|could|will|would|may|must|should"
_COUNTED = re.compile(rf"\bhow many (?:(?:\w+ ){{0,2}}?(\w+)(?= (?:{_AUXILIARY})\b)|(\w+))")
_QUANTITY_NOUN = re.compile(
    r"^what (?:is|was|are) the (?:\w+ ){0,2}(?:number|percentage|population|height|length|depth|price|limit|size|rate"
    r"|speed|age|temperature|point|distance|budget|allowance|span|share|density)\b|^what (?:percentage|share)\b"
)
_WHEN = re.compile(
    r"^(?:when\b|(?:in |on |at |since |by )?(?:what|which) (?:year|date|day|month|century|decade|time|hour)\b)"
)
_ASKS_FOR_A_NAME: tuple[tuple[re.Pattern[str], Kind, bool], ...] = (
    (re.compile(r"^(?:\w+ )?(?:who|whom|whose)\b"), "who", True),
    (re.compile(r"^(?:\w+ )?where\b"), "where", False),
    (re.compile(r"^(?:in |on |at |from )?(?:which|what)\b"), "name", False),
)
_PLACED = re.compile(r"\b(?:in|into|at|near|on|from|to)\s+(?:the\s+)?\Z", re.IGNORECASE)
"""What follows is a place, and nobody."""
_HAS_UNIT = re.compile(r"[$\u20ac\u00a3%\u00b0]|\d.*[a-z]|^\D+$", re.IGNORECASE)
_CLAUSE = re.compile(r";|\b(?:but|while|whereas)\b")
_COPULAS = frozenset({"is", "was", "are", "were"})
_SAYS_IT_IS = re.compile(r"\b(?:is|was|are|were|called|named)(?: (?:in|at))?(?: the(?: city of)?)? $")
_ENDS = re.compile(r"[.,;]?$")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a question wants.

    Attributes:
        kind: Kind of answer.
        pattern: Finds candidates.
        expected: Whether a sentence with a candidate answers better than one without.
        required: Whether only a sentence with a candidate answers: a height needs a number, but "when" may be
            answered by "after the journey", and "who" by "visitors".
        measure: Stem of the question's word that the candidate stands for ("tall"), which no answer repeats.
        counted: What is counted ("how many planets"), as it may follow the number.
    """

    kind: Kind
    pattern: re.Pattern[str]
    expected: bool = True
    required: bool = False
    measure: str = ""
    counted: re.Pattern[str] | None = None


def wanted(question: str) -> Wanted | None:
    """Return what kind of answer a question wants, None where only sentences will do."""
    lowered = " ".join(question.lower().split())
    when = _WHEN.match(lowered)
    if when:
        return Wanted("time", _TIME, required=when[0] != "when")
    how = _HOW.match(lowered)
    if how:
        units = MEASURES.get(how[1])
        if units:
            pattern = re.compile(rf"{_AMOUNT}[\s-](?:{units})\b(?: per \w+)?", re.IGNORECASE)
            return Wanted("quantity", pattern, required=True, measure=content_stem(how[1]))
        counted = None
        if of := _COUNTED.search(lowered):
            noun = of[1] or of[2]
            # A plural and its singular share all but the last letters.
            counted = re.compile(rf"(?:\s\w+){{0,2}}\s{re.escape(noun[: max(3, len(noun) - 3)])}\w*", re.IGNORECASE)
        return Wanted("quantity", _QUANTITY, required=True, measure=content_stem(how[1]), counted=counted)
    if _QUANTITY_NOUN.match(lowered):
        return Wanted("quantity", _QUANTITY, expected=False)
    for pattern, kind, expected in _ASKS_FOR_A_NAME:
        if pattern.match(lowered):
            return Wanted(kind, _NAME, expected=expected)
    return None


def candidates(question: str, want: Wanted, sentence: str) -> list[re.Match[str]]:
    """Return the places in a sentence that could be the answer: of the wanted kind, and not said by the question."""
    asked = stems(question)
    found: list[re.Match[str]] = []
    for match in want.pattern.finditer(sentence):
        said = stems(match[0])
        if want.kind == "quantity":
            number = re.search(r"\d[\d,.]*", match[0])
            # A bare year is a date, and a number of the question is no answer to it.
            if _YEAR.match(match[0].strip()) or (number is not None and number[0].strip(".,") in question):
                continue
        elif not said or asked & said:
            continue
        if want.kind in {"who", "where"} and re.search(r"\d", match[0]):
            continue
        if want.kind == "who" and _PLACED.search(sentence, 0, match.start()):
            continue
        found.append(match)
    return found


def lacks(want: Wanted, question: str, sentence: str) -> bool:
    """Tell whether a sentence has nothing of a kind without which it is no answer."""
    if want.kind == "time" and not want.required:
        return not _ANY_TIME.search(sentence)
    return want.required and not candidates(question, want, sentence)


def answer_span(question: str, sentence: str) -> str | None:
    """Return the part of the sentence that answers the question, None where no part clearly does.

    It is the only one of its kind there, and a number has its unit; a name is what the sentence says that something is,
    or who does what is asked about. On the given questions such a part is right in 95 of 100 cases or more.
    """
    want = wanted(question)
    if want is None:
        return None
    found = [one for one in candidates(question, want, sentence) if not _of_another(question, sentence, one)]
    if want.counted:
        counted = [text for one in found if (text := _with_counted(one, want.counted, sentence))]
        return counted[0] if len(counted) == 1 else None
    if len(found) != 1:
        return None
    text = found[0][0].strip()
    if want.kind == "quantity":
        return text if _HAS_UNIT.search(text) else None
    if want.kind == "time":
        return text
    return text if _is_said_to_be(found[0], question, sentence) else None


def _of_another(question: str, sentence: str, found: re.Match[str]) -> bool:
    """Tell whether the clause in which something is found lacks a name of the question that another clause has."""
    own = _CLAUSE.split(sentence[: found.start()])[-1] + _CLAUSE.split(sentence[found.start() :])[0]
    named = stems(" ".join(token for token in TOKEN.findall(question) if token[0].isupper()))
    return bool(named & stems(sentence) - stems(own))


def _with_counted(number: re.Match[str], counted: re.Pattern[str], sentence: str) -> str:
    """Return a number with what it counts, empty where it counts something else."""
    text = number[0].strip()
    if counted.search(text):
        return text
    behind = counted.match(sentence, number.end())
    return f"{text}{behind[0]}" if behind else ""


def _is_said_to_be(name: re.Match[str], question: str, sentence: str) -> bool:
    """Tell whether the sentence says that something is this name, or that this is who did what is asked."""
    asked = stems(question)
    before, after = sentence[: name.start()], sentence[name.end() :].lstrip()
    following = TOKEN.findall(after)[:4]
    if before or not following:
        return bool(_SAYS_IT_IS.search(before)) and bool(_ENDS.match(after))
    if following[0] in _COPULAS:
        return next((stem in asked for token in following[1:] if (stem := content_stem(token))), False)
    return following[0].islower() and content_stem(following[0]) in asked and question.lower().startswith("who")
