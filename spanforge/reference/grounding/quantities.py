"""Numbers, units, dates and times of a sentence, brought to comparable values.

"1 km" equals "1,000 metres", "$5bn" equals "5 billion dollars", "2021-03-05" gives the same year, month and day as
"5 March 2021". Percentages, plain numbers, years and each physical dimension are kinds of their own.
"""

from __future__ import annotations

import re
from typing import Final

from spanforge.reference.grounding.amounts import Quantity
from spanforge.reference.grounding.lexicon import (
    APPROXIMATIONS,
    FUNCTION_WORDS,
    MONTHS,
    MULTIPLIERS,
    NUMBER_WORDS,
    ONES,
    ORDINAL_WORDS,
    TENS,
    UNITS,
    WEEKDAYS,
)
from spanforge.reference.grounding.stems import stem

_PIECE: Final = re.compile(
    r"(?P<iso>\d{4}-\d{2}-\d{2})(?!\d)|(?P<clock>\d{1,2}:\d{2})(?::\d{2})?(?!\d)"
    r"|(?P<number>\d+(?:,\d{3})+(?:\.\d+)?|\d+(?:[.\u00b7]\d+)?|\.\d+)"
    r"|(?P<word>[^\W\d_]+(?:['\u2019][^\W\d_]+)*)|(?P<sign>[$€£¥₹%])"
)
_GLUED: Final = re.compile(r"[^\W\d_]-?$|\w/$|[+]$")
"""A letter, a letter and a hyphen, or a slash right before a digit: part of a name such as UCP1, COVID-19 or OCT3/4."""

_NUMBERS_AS_WORDS: Final = frozenset(NUMBER_WORDS) - {"once"}
_DAYS_ALSO_WORDS: Final = frozenset({"sun", "sat", "wed", "mon"})
_MONTHS_ALSO_WORDS: Final = frozenset({"may", "march", "mar", "sep", "dec", "jan", "jun", "jul", "oct", "nov", "apr"})
_BEFORE_A_PLACE: Final = frozenset({"the", "its", "his", "her", "their", "our", "my", "your"})
_COUNTED: Final = frozenset({"hundred", "thousand", "million", "billion", "decade", "century"})
"""Words that are an amount after "a"."""

_HINTS: Final = frozenset(
    stem(word) for word in {*_NUMBERS_AS_WORDS, *ORDINAL_WORDS, *_COUNTED, *MONTHS, *WEEKDAYS} - FUNCTION_WORDS
)
_DIGIT: Final = re.compile(r"\d")

_FIRST_YEAR, _LAST_YEAR = 1400, 2100
_YEAR_DIGITS: Final = 4
_DAYS_IN_MONTH: Final = 31
_NOON: Final = 720
"""Minutes."""

_NOUNS: Final = 2
_DASHES: Final = frozenset("-\u2010\u2011\u2013\u2014")
_EACH: Final = frozenset({"a", "an", "each", "every"})
_FURTHER: Final = frozenset({"to", "and", "or", "versus", "v", "vs"})
"""Words between two numbers that share what stands after the second: "90 versus 3.6 micrograms", "5 to 10 million"."""
_ENDINGS: Final = frozenset({"st", "nd", "rd", "th", "s"})
_MAX_DIGITS: Final = 18
"""Longer digit strings are identifiers, not amounts."""


def may_have_quantities(text: str, stems: frozenset[str]) -> bool:
    """Tell cheaply whether a sentence with these stems is worth scanning; most are not."""
    return bool(_DIGIT.search(text)) or not stems.isdisjoint(_HINTS) or "May" in text or " one " in text


def names_amount(word: str) -> bool:
    """Tell whether a stem is a number, or a word for a number, month or weekday."""
    return word[:1].isdecimal() or word in _HINTS


def quantities(sentence: str) -> tuple[Quantity, ...]:
    """Return the amounts, dates and times of one sentence in reading order.

    A lone "one" is left out because it is mostly a pronoun.
    """
    return _Scanner(sentence).run()


class _Scanner:
    """One pass over the pieces of a sentence; the index always points at the next unread piece."""

    def __init__(self, sentence: str) -> None:
        self._sentence = sentence
        self._pieces = list(_PIECE.finditer(sentence))
        self._words = [piece[0].lower() if piece["word"] else piece[0] for piece in self._pieces]
        self._found: list[Quantity] = []

    def run(self) -> tuple[Quantity, ...]:
        index = 0
        while index < len(self._pieces):
            index = self._step(index)
        return tuple(self._found)

    def _step(self, index: int) -> int:
        piece, word = self._pieces[index], self._words[index]
        if piece["iso"]:
            for kind, part in zip(("year", "month", "day"), word.split("-"), strict=True):
                self._add(kind, float(part), index)
        elif piece["clock"]:
            hours, minutes = piece["clock"].split(":")
            return self._clock(int(hours) * 60 + int(minutes), index)
        elif piece["number"]:
            return self._digits(index)
        elif word in _NUMBERS_AS_WORDS or (word in _COUNTED and self._article(index)):
            return self._spelled(index)
        else:
            self._named(index)
        return index + 1

    def _named(self, index: int) -> None:
        """Read the name of a month, a weekday or a place in a row."""
        word, written = self._words[index], self._pieces[index][0]
        if word in MONTHS and written[0].isupper() and not self._is_glued(index) and self._is_month(index):
            self._add("month", MONTHS[word], index)
        elif word in WEEKDAYS and (word not in _DAYS_ALSO_WORDS or written.istitle()):
            self._add("weekday", WEEKDAYS[word], index)
        elif word in ORDINAL_WORDS and (word != "second" or self._is_place(index)):
            self._add("ordinal", ORDINAL_WORDS[word], index, spelled=True)

    def _is_place(self, index: int) -> bool:
        """Tell the second of a row from a second of time."""
        before = self._words[index - 1] if index else ""
        return before in _BEFORE_A_PLACE or before.endswith(("'s", "\u2019s"))

    def _article(self, index: int) -> bool:
        return index > 0 and self._words[index - 1] == "a"

    def _is_month(self, index: int) -> bool:
        """Words such as "May" are a month only beside a day, a year or a preposition."""
        if self._words[index] not in _MONTHS_ALSO_WORDS:
            return True
        beside = self._words[max(0, index - 1) : index] + self._words[index + 1 : index + 2]
        return any(word[0].isdigit() for word in beside) or beside[:1] in (["in"], ["since"], ["until"], ["by"], ["of"])

    def _digits(self, index: int) -> int:
        piece = self._pieces[index]
        digits = piece[0].replace(",", "").replace("\u00b7", ".")
        if _GLUED.search(self._sentence[max(0, piece.start() - 2) : piece.start()]) or len(digits) > _MAX_DIGITS:
            return index + 1
        value = float(digits)
        glued = self._words[index + 1] if self._is_glued(index) else ""
        if glued in _ENDINGS or (glued[:1].isalpha() and not self._is_suffix(glued)):
            return self._ending(index, value, glued)
        if self._next(index) in {"am", "pm"}:
            return self._clock(int(value) * 60, index)
        whole = digits.isdecimal()
        if whole and 1 <= value <= _DAYS_IN_MONTH and self._month_beside(index, index):
            self._add("day", value, index)
            return index + 1
        is_year = whole and len(piece[0]) == _YEAR_DIGITS and _FIRST_YEAR <= value <= _LAST_YEAR
        return self._amount(index, index + 1, value, "year" if is_year else "number")

    def _ending(self, index: int, value: float, glued: str) -> int:
        """Read "5th" and "1990s"; anything else glued to a number makes it part of a name, as in "3T3"."""
        if glued == "s" and value >= _FIRST_YEAR:
            self._add("year", value, index + 1)
        elif glued in _ENDINGS and glued != "s":
            self._add("day" if self._month_beside(index, index + 1) else "ordinal", value, index + 1)
        return index + 2

    @staticmethod
    def _is_suffix(word: str) -> bool:
        """Tell a unit or multiplier glued to a number from the rest of a name."""
        return word in UNITS or word in MULTIPLIERS or word in {"am", "pm", "x"}

    def _is_glued(self, index: int) -> bool:
        return index + 1 < len(self._pieces) and self._pieces[index].end() == self._pieces[index + 1].start()

    def _month_beside(self, first: int, last: int) -> bool:
        around = [self._words[i] for i in (first - 1, last + 1) if 0 <= i < len(self._words)]
        if last + 2 < len(self._words) and self._words[last + 1] == "of":
            around.append(self._words[last + 2])
        return any(word in MONTHS for word in around)

    def _next(self, index: int) -> str:
        return self._words[index + 1] if index + 1 < len(self._words) else ""

    def _clock(self, minutes: int, index: int) -> int:
        half = self._next(index)
        if half == "pm" and minutes < _NOON:
            minutes += _NOON
        elif half == "am" and minutes >= _NOON:
            minutes -= _NOON
        self._add("clock", float(minutes), index, written=minutes // 60 % 12 + minutes % 60 / 100)
        return index + (2 if half in {"am", "pm"} else 1)

    def _spelled(self, index: int) -> int:
        """Read a number in words: "twenty-five", "three hundred", "a dozen"."""
        word = self._words[index]
        if word in _COUNTED:
            return self._amount(index, index, 1.0, "number", spelled=True)
        value = NUMBER_WORDS[word]
        after = index + 1
        following = self._next(index)
        if word in TENS and following in ONES:
            value += NUMBER_WORDS[following]
            after += 1
        if word == "one" and self._words[after : after + 1] and self._words[after] not in {*MULTIPLIERS, *UNITS}:
            return after
        if word == "one" and after == len(self._words):
            return after
        return self._amount(index, after, value, "number", spelled=True)

    def _amount(self, first: int, after: int, value: float, kind: str, *, spelled: bool = False) -> int:
        """Finish an amount whose number ends before ``after``: multiplier, unit, currency before it."""
        written = value
        multiplied = False
        while after < len(self._words) and self._words[after] in MULTIPLIERS and self._takes_multiplier(after):
            value *= MULTIPLIERS[self._words[after]]
            after += 1
            multiplied = True
        last = after - 1
        shared = -1 if multiplied or kind != "number" else self._shared(after)
        if shared >= 0 and self._words[shared] in MULTIPLIERS:
            value *= MULTIPLIERS[self._words[shared]]
        unit = UNITS.get(self._words[after]) if after < len(self._words) and not self._is_sliced(after) else None
        before = self._words[first - 1] if first else ""
        if unit is None and before in "$€£¥₹" and before:
            unit = UNITS[before]
        elif unit is not None:
            last = after
        elif shared >= 0:
            unit = UNITS.get(self._words[shared])
        elif self._words[after : after + 2] == ["per", "cent"]:
            unit, last = UNITS["%"], after + 1
        if unit is not None and not (kind == "year" and unit[0] == "time"):
            kind, value = unit[0], value * unit[1]
        elif multiplied:
            kind = "number"
        self._add(kind, value, last, written=written, first=first, spelled=spelled, per=self._rate(last + 1))
        return last + 1

    def _shared(self, index: int) -> int:
        """Return where the unit or multiplier stands that a number shares with the next one; -1 if it shares none."""
        if index >= len(self._words):
            return -1
        after = index + (self._words[index] in _FURTHER)
        dashed = self._sentence[self._pieces[index - 1].end() : self._pieces[index].start()] in _DASHES
        if (after == index and not dashed) or after + 1 >= len(self._words) or not self._pieces[after]["number"]:
            return -1
        word = self._words[after + 1]
        return after + 1 if (word in UNITS or word in MULTIPLIERS) and not self._is_sliced(after + 1) else -1

    def _is_sliced(self, index: int) -> bool:
        """Tell whether a slash stands before a piece: "$600/month"."""
        return self._sentence[self._pieces[index - 1].end() : self._pieces[index].start()].strip() == "/"

    def _rate(self, index: int) -> str:
        """Return the stem of what an amount before a piece is given for: "$600 a month", "per 1,000", "/ml"."""
        if index >= len(self._words):
            return ""
        word, following = self._words[index], self._next(index)
        if self._is_sliced(index):
            return stem(word)
        for_a_time = word in _EACH and UNITS.get(following, ("",))[0] == "time"
        return stem(following) if word == "per" or for_a_time else ""

    def _takes_multiplier(self, index: int) -> bool:
        """Single letters scale a number only when glued to it: "5m" but not "5 m"."""
        if len(self._words[index]) > 1:
            return True
        return self._pieces[index - 1].end() == self._pieces[index].start()

    def _add(
        self,
        kind: str,
        value: float,
        last: int,
        *,
        written: float | None = None,
        first: int | None = None,
        spelled: bool = False,
        per: str = "",
    ) -> None:
        nouns: list[str] = []
        for word in self._words[last + 1 : last + 5]:
            if word[0].isdigit() or word in NUMBER_WORDS:
                break
            if word[0].isalpha() and word not in FUNCTION_WORDS:
                nouns.append(stem(word))
                if len(nouns) == _NOUNS:
                    break
        start = last if first is None else first
        before = self._words[start - 1] if start else ""
        if not nouns and before[:1].isalpha() and before not in FUNCTION_WORDS and before not in NUMBER_WORDS:
            nouns.append(stem(before))
        loosened = any(word in APPROXIMATIONS for word in self._words[max(0, start - 2) : start])
        self._found.append(
            Quantity(kind, value, value if written is None else written, tuple(nouns), loosened, spelled, per)
        )
