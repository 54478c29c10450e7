"""Statements made from a text that are known to be true of it, or known not to be.

Public sets of claims contain few clean contradictions, so that a model fitted to them alone learns little about a
changed unit or two exchanged names. From sentences of the training texts this module makes both: sentences left as
they are or harmlessly changed, and sentences with one fault of a known kind.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from spanforge.reference.grounding.contexts import sentences_of
from spanforge.reference.grounding.lexicon import ALIKE_GROUPS, MONTHS, OPPOSITE_SIDES, UNITS
from spanforge.reference.grounding.sentence import Sentence

_MIN_CONTENT: Final = 5
_MAX_TOKENS: Final = 40
_MIN_HEAD_WORDS: Final = 6
_SHORT_FORM: Final = 4
"""Names of units and months up to this length are abbreviations, or words of other meanings too."""
_TRIED: Final = 12
"""Sentences tried until one allows a change."""

_Change = Callable[[Sentence], str | None]
_WORD: Final = re.compile(r"[^\W\d_]+")
_NUMBER: Final = re.compile(r"(?<![\w.-])\d{1,4}(?![\w.,-]*\d)")
_YEAR: Final = re.compile(r"\b(1[5-9]\d\d|20\d\d)\b")
_VERB: Final = re.compile(r"\b(is|was|are|were|has|have|can|will|should|could|must)\b(?! not)")
_NOT: Final = re.compile(r" not\b")


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement about a text; ``kind`` says how it was made, ``supported`` whether the text bears it out."""

    text: str = field(repr=False)
    kind: str
    supported: bool


def statements(text: str, stranger: str, rng: random.Random) -> Iterator[Statement]:
    """Make statements from one sentence of a text.

    Args:
        text: The text.
        stranger: Another text; sentences and names foreign to the first are taken from it.
        rng: Source of choices; the same state gives the same statements.

    Yields:
        Three true statements at most and one false one of each kind that the sentence allows; none if no sentence of
        the text is fit.
    """
    fit = [sentence for sentence in sentences_of(text) if _is_fit(sentence)]
    if not fit:
        return
    rng.shuffle(fit)
    makers: list[tuple[str, bool, _Change]] = [
        ("verbatim", True, lambda sentence: sentence.text),
        *((kind, True, partial(change, rng=rng)) for kind, change in _HARMLESS.items()),
        *((kind, False, partial(change, rng=rng)) for kind, change in _HARMFUL.items()),
        ("name", False, lambda sentence: _change_name(sentence, stranger, text, rng)),
        ("roles", False, lambda sentence: _exchange_names(sentence, rng)),
    ]
    for kind, supported, change in makers:
        made = next(filter(None, map(change, fit[:_TRIED])), None)
        if made:
            yield Statement(made, kind, supported)
    strange = [sentence for sentence in sentences_of(stranger) if _is_fit(sentence)]
    if strange:
        yield Statement(rng.choice(strange).text, "stranger", supported=False)


def _is_fit(sentence: Sentence) -> bool:
    is_prose = "://" not in sentence.text and sentence.text[-1] in ".!?"
    return is_prose and len(sentence.content) >= _MIN_CONTENT and len(sentence.tokens) <= _MAX_TOKENS


def _cut(sentence: Sentence, rng: random.Random) -> str | None:
    text = sentence.text
    head, comma, _ = text.rpartition(", ")
    return head + "." if comma and len(head.split()) >= _MIN_HEAD_WORDS else None


def _say_otherwise(sentence: Sentence, rng: random.Random) -> str | None:
    return _swap_word(sentence.text, ALIKE_GROUPS, rng)


def _contradict(sentence: Sentence, rng: random.Random) -> str | None:
    text = sentence.text
    pairs = [(a, b) for sides in OPPOSITE_SIDES for one, two in (sides, sides[::-1]) for a in one for b in two[:1]]
    table: dict[str, list[str]] = {}
    for word, opposite in pairs:
        table.setdefault(word, []).append(opposite)
    places = [match for match in _WORD.finditer(text) if match[0].lower() in table]
    if not places:
        return None
    place = rng.choice(places)
    return text[: place.start()] + rng.choice(table[place[0].lower()]) + text[place.end() :]


def _swap_word(text: str, groups: Sequence[Sequence[str]], rng: random.Random) -> str | None:
    places = [match for match in _WORD.finditer(text) if any(match[0] in group for group in groups)]
    if not places:
        return None
    place = rng.choice(places)
    others = [word for group in groups if place[0] in group for word in group if word != place[0]]
    return text[: place.start()] + rng.choice(others) + text[place.end() :]


def _change_number(sentence: Sentence, rng: random.Random) -> str | None:
    text = sentence.text
    places = [match for match in _NUMBER.finditer(text) if not _YEAR.fullmatch(match[0])]
    if not places:
        return None
    place = rng.choice(places)
    value = int(place[0])
    changed = rng.choice([value + rng.randint(1, 9), value * 2 + 1, value * 10 + 5])
    return text[: place.start()] + str(changed) + text[place.end() :]


def _change_unit(sentence: Sentence, rng: random.Random) -> str | None:
    text = sentence.text
    places = [
        match
        for match in re.finditer(r"(?<=\d )[^\W\d_]+", text)
        if match[0] in UNITS and UNITS[match[0]][0] != "percent"
    ]
    if not places:
        return None
    place = rng.choice(places)
    dimension, factor = UNITS[place[0]]
    others = [
        name for name, (kind, size) in UNITS.items() if kind == dimension and size != factor and len(name) > _SHORT_FORM
    ]
    return text[: place.start()] + rng.choice(others) + text[place.end() :] if others else None


def _change_date(sentence: Sentence, rng: random.Random) -> str | None:
    text = sentence.text
    years = list(_YEAR.finditer(text))
    months = [
        match
        for match in _WORD.finditer(text)
        if match[0][0].isupper() and match[0].lower() in MONTHS and len(match[0]) > _SHORT_FORM
    ]
    if not years and not months:
        return None
    place = rng.choice(years or months)
    if years:
        new = str(int(place[0]) + rng.choice([-12, -3, 2, 7]))
    else:
        new = rng.choice(
            sorted(name.title() for name in MONTHS if len(name) > _SHORT_FORM and name != place[0].lower())
        )
    return text[: place.start()] + new + text[place.end() :]


def _negate(sentence: Sentence, rng: random.Random) -> str | None:
    text = sentence.text
    if _NOT.search(text):
        return _NOT.sub("", text, count=1)
    return _VERB.sub(r"\1 not", text, count=1) if _VERB.search(text) else None


def _change_name(sentence: Sentence, other: str, text: str, rng: random.Random) -> str | None:
    mine = _names(sentence)
    theirs = [name for stranger in sentences_of(other)[:20] for name in _names(stranger) if name not in text]
    if not mine or not theirs:
        return None
    name = rng.choice(mine)
    return sentence.text.replace(name, rng.choice(theirs))


def _exchange_names(sentence: Sentence, rng: random.Random) -> str | None:
    mine = _names(sentence)
    pairs = [(a, b) for a, b in zip(mine, mine[2:] or mine[1:], strict=False) if a not in b and b not in a]
    if not pairs:
        return None
    first, second = rng.choice(pairs)
    return "".join(
        {first: second, second: first}.get(piece, piece)
        for piece in re.split(f"({re.escape(first)}|{re.escape(second)})", sentence.text)
    )


def _names(sentence: Sentence) -> list[str]:
    tokens = sentence.tokens
    return list(dict.fromkeys(token for index, token in enumerate(tokens) if index and sentence.is_name(index)))


_HARMLESS: Final[dict[str, Callable[..., str | None]]] = {"cut": _cut, "synonym": _say_otherwise}
_HARMFUL: Final[dict[str, Callable[..., str | None]]] = {
    "negation": _negate,
    "opposite": _contradict,
    "number": _change_number,
    "unit": _change_unit,
    "date": _change_date,
}
