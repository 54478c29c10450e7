"""A follow-up question, said so that it stands alone, and what a conversation asked last."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Final

from spanforge.reference.lexical import STOP_WORDS, terms

_POSSESSIVE: Final = re.compile(r"\b(?:its|their|his|her(?= \w))\b", re.IGNORECASE)
_PRONOUN: Final = re.compile(r"\b(?:it|they|them|he|him|she|her|hers|theirs)\b", re.IGNORECASE)
_THERE: Final = re.compile(r"\bthere(?=\W*$)", re.IGNORECASE)
_GOES_ON: Final = re.compile(r"^(?:(?:and|but|or|then|so|(?:what|how) about)\b,?\s*)+", re.IGNORECASE)
_PREPOSITION: Final = re.compile(
    r"\b(in|on|at|of|for|from|to|by|with|under|after|before|during|since)\s+(?=\S)", re.IGNORECASE
)
_OF_ANYTHING: Final = frozenset({"", "for", "of", "with"})
_ASKS: Final = re.compile(
    r"\b(?:who|whom|whose|what|when|where|which|why|how|is|are|was|were|do|does|did|has|have|had|can|could|will|would"
    r"|shall|should|may|might|must)\b",
    re.IGNORECASE,
)
_NAME: Final = re.compile(r"(?<!^)\b(?:the )?[A-Z][\w'-]*(?:\s+(?:(?:of|the|de|da|van|von)\s+)?[A-Z][\w'-]*)*")
_NUMBER: Final = re.compile(r"\b\d[\w.-]*\b")
_SAYS_NAME: Final = re.compile(r"[A-Z\d]")
_WORD: Final = re.compile(r"[^\W_][\w'-]*")
_LONGEST_SWAP: Final = 6
"""Words up to which what follows "and" stands for something in the question before."""
_FEWEST_TERMS: Final = 2
"""Words that carry meaning with which a question says what it is about."""
_MOST_CONVERSATIONS: Final = 1_024


def standing_alone(question: str, earlier: Sequence[str]) -> str:
    """Return a question with what it leaves to earlier ones.

    Args:
        question: As it is asked.
        earlier: What was asked before in the same conversation, the latest last.
    """
    before = ""
    for asked in (*earlier, question):
        before = _joined(asked, before) if before else asked
    return before


def _joined(question: str, before: str) -> str:
    topic = _topic(before, question)
    if not topic:
        return question
    for pattern, said in ((_POSSESSIVE, f"{topic}'s"), (_PRONOUN, topic), (_THERE, f"in {topic}")):
        if pattern.search(question):
            return pattern.sub(lambda _, said=said: said, question, count=1)
    goes_on = _GOES_ON.match(question)
    if not goes_on and len(set(terms(question))) >= _FEWEST_TERMS:
        return question
    other = question[goes_on.end() if goes_on else 0 :].rstrip(" ?.!")
    begins = _PREPOSITION.match(other)
    name = other[begins.end() :] if begins else other
    is_name = name and len(name.split()) <= _LONGEST_SWAP and not _ASKS.search(name) and (goes_on or begins)
    place = _place(name, begins[1].lower() if begins else "", before) if is_name else None
    return f"{before[: place[0]]}{name}{before[place[1] :]}" if place else f"{question.rstrip(' ?')} {_words(before)}?"


def _place(name: str, preposition: str, before: str) -> tuple[int, int] | None:
    """Return where a question says what another name stands for now: the last place that is written like it.

    That is behind the same preposition ("in Odense", "in Leeds"), or where names and numbers are ("Q3", "Q4").
    """
    behind = [
        _behind(before, found.end()) for found in _PREPOSITION.finditer(before) if found[1].lower() == preposition
    ]
    named = [found.span() for found in (*_NAME.finditer(before), *_NUMBER.finditer(before))]
    anywhere = named if _SAYS_NAME.search(name) and (behind or preposition in _OF_ANYTHING) else []
    for places in (behind, sorted(anywhere)):
        for alike in (_shape, _kind):
            found = [place for place in places if alike(before[slice(*place)]) == alike(name)]
            if found:
                return found[-1]
    return None


def _behind(before: str, start: int) -> tuple[int, int]:
    """Return from where to where what begins at a place goes: a name, or all up to the next preposition or verb."""
    thing = _NAME.match(before, start) or _NUMBER.match(before, start)
    stops = [found.start() for pattern in (_PREPOSITION, _ASKS) if (found := pattern.search(before, start))]
    until = thing.end() if thing else min(stops, default=len(before))
    return start, start + len(before[start:until].rstrip(" ?,"))


def _shape(name: str) -> str:
    return re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "0", name.lower().removeprefix("the ")))


def _kind(name: str) -> tuple[bool, bool]:
    return any(map(str.isdigit, name)), any(map(str.isalpha, name))


def _topic(before: str, question: str) -> str:
    """Return the last name in the question before, or else its words that carry meaning.

    What stands there behind a preposition of the new question is rather what that says anew: "it on macOS" is not
    "Windows", after "the VPN on Windows".
    """
    anew = {found[1].lower() for found in _PREPOSITION.finditer(question)}
    aside = {_behind(before, found.end()) for found in _PREPOSITION.finditer(before) if found[1].lower() in anew}
    names = list(_NAME.finditer(before))
    kept = [found for found in names if found.span() not in aside] or names
    return kept[-1][0] if kept else _words(before)


def _words(question: str) -> str:
    return " ".join(word for word in _WORD.findall(question) if word.lower() not in STOP_WORDS)


class Conversations:
    """What each conversation asked last, in this process; the least recently used forgotten first, nothing written."""

    def __init__(self) -> None:
        self._last: OrderedDict[Hashable, str] = OrderedDict()
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Conversations({len(self._last)})"

    def next(self, key: Hashable, question: str, earlier: Sequence[str]) -> str:
        """Return a question as it stands alone, and remember it as the conversation's last one.

        Args:
            key: The conversation and whose it is; None for none.
            question: As it is asked.
            earlier: What was asked before, where the caller says so.
        """
        if key is None:
            return standing_alone(question, earlier)
        with self._lock:
            known = (self._last[key],) if key in self._last else ()
            alone = standing_alone(question, (*known, *earlier))
            self._last[key] = alone
            self._last.move_to_end(key)
            while len(self._last) > _MOST_CONVERSATIONS:
                self._last.popitem(last=False)
        return alone
