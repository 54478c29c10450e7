"""What a question asks for by name, as a column of a table may have it, and whether a row has a value of that kind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from spanforge.reference.answering.spans import Wanted, candidates
from spanforge.reference.answering.units import Unit, stems
from spanforge.reference.grounding.lexicon import MONTHS, WEEKDAYS
from spanforge.reference.grounding.rows import JOINT, Cell
from spanforge.reference.grounding.text import TOKEN

_PRICE: Final = stems(
    "cost price fare fee charge rate amount total eur euro usd dollar gbp pound chf franc kr krone"
    " krona nok sek dkk pln zloty czk huf jpy yen cny yuan inr rupee aud cad nzd"
)
_LENGTHS: Final = stems("mm cm m km metres meters kilometres kilometers feet inches miles")
_TIMES: Final = stems("seconds minutes hours days weeks months years")
_TIMED: Final = _TIMES | stems("time date hours open close start begin end from to until since due slot")
_MEASURED: Final = {
    "tall": stems("height length size tall") | _LENGTHS,
    "high": stems("height altitude elevation length high") | _LENGTHS,
    "deep": stems("depth deep") | _LENGTHS,
    "wide": stems("width breadth wide") | _LENGTHS,
    "far": stems("distance range length far") | _LENGTHS,
    "long": stems("length duration time span distance period long") | _LENGTHS | _TIMES,
    "old": stems("age year born birth built founded old"),
    "heavy": stems("weight mass heavy kg g t"),
    "fast": stems("speed velocity pace knots mph kmh fast"),
}
"""Names of columns that hold what "how tall" and the like ask for."""
_PERSON: Final = stems("people")
_PEOPLE: Final = stems("people staff employees headcount workforce population inhabitants residents")
PLAIN_VERBS: Final = stems(
    "live stay reside work sit stand lie go come run speak use belong locate situate happen hold keep get make made"
    " need"
)
"""Verbs that a table leaves to the name of a column: that somebody lives in a city is said by "City"."""
_VERBS: Final = {
    "cost": _PRICE,
    "weigh": _MEASURED["heavy"] | stems("weigh"),
    "earn": stems("salary wage pay income earnings earn"),
    "live": stems("live city town village country continent habitat range region address place location home"),
}
_NO_NOUN: Final = (
    "is|are|was|were|do|does|did|has|have|had|can|could|will|would|shall|should|may|might|must"
    "|the|a|an|of|in|on|at|to|for"
)
_NOUN: Final = rf"(?!(?:{_NO_NOUN})\b)\w[\w-]*"
_NAMED: Final = (
    re.compile(rf"\b(?:what|which|whose)\s+(?!(?:time|date|day|month|year)\b)({_NOUN}(?:\s+{_NOUN})?)"),
    re.compile(
        rf"\b(?:what|who|which)\s+(?:is|are|was|were)\s+the\s+({_NOUN}(?:\s+{_NOUN}){{0,2}})"
        r"\s+(?:of|for|in|to|from|at)\b"
    ),
    re.compile(rf"\bhow\s+(?:many|much)\s+({_NOUN}(?:\s+{_NOUN})?)"),
    re.compile(rf"\b(?:what|who)\s+(?:is|are|was|were)\s+[^?]*?\w['\u2019]s\s+({_NOUN}(?:\s+{_NOUN})?)"),
)
_HOW: Final = re.compile(rf"\bhow\s+({'|'.join(_MEASURED)})\b")
_HOW_MUCH: Final = re.compile(r"\bhow\s+much\s+(?:is|are|was|were)\b")
_VERB: Final = re.compile(rf"\b({'|'.join(_VERBS)})s?\b")


def asked_attributes(question: str) -> list[frozenset[str]]:
    """Return what a question asks for: for each thing the stems of which a table must know one."""
    lowered = " ".join(question.lower().split())
    asked = [stems(match[1]) for pattern in _NAMED for match in pattern.finditer(lowered)]
    asked = [alternatives | _PEOPLE if alternatives & _PERSON else alternatives for alternatives in asked]
    asked += [_MEASURED[match[1]] for match in _HOW.finditer(lowered)]
    asked += [_VERBS[match[1]] for match in _VERB.finditer(lowered)]
    if _HOW_MUCH.search(lowered):
        asked.append(_PRICE)
    return [alternatives for alternatives in asked if alternatives]


def has_kind(question: str, want: Wanted | None, unit: Unit, cells: Sequence[Cell] = ()) -> bool:
    """Tell whether a row, or some cells of it, hold a value of the kind that a question wants."""
    if want is None or not want.expected:
        return True
    cells = cells or unit.cells
    values = [cell.value for cell in cells]
    if want.kind == "quantity":
        return any(character.isdigit() for value in values for character in value)
    if candidates(question, want, JOINT.join(values)):
        return True
    if want.kind == "who":  # "Who approves it?" is answered by whatever stands under "Approver".
        columns = stems(" ".join(cell.column for cell in cells))
        return any(stem.endswith(("er", "or")) and {stem, stem[:-2]} & stems(question) for stem in columns)
    if want.kind != "time":
        return False
    # The name of a column must say that "10 to 17" is a time, and none need say that "July" is one.
    words = {token.lower() for value in values for token in TOKEN.findall(value)}
    timed = _TIMED | stems(question)
    return any(cell.value[:1].isdigit() and timed & stems(cell.column) for cell in cells) or not words.isdisjoint(
        {*MONTHS, *WEEKDAYS}
    )
