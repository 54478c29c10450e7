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
_GOES_ON: Final = re.compile(r"^(?:and|but|or|then|so|(?:what|how) about)\b", re.IGNORECASE)
_NAME: Final = re.compile(r"(?<!^)\b(?:the )?[A-Z][\w'-]*(?:\s+(?:(?:of|the|de|da|van|von)\s+)?[A-Z][\w'-]*)*")
_WORD: Final = re.compile(r"[^\W_][\w'-]*")
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
    topic = _topic(before)
    if not topic:
        return question
    for pattern, said in ((_POSSESSIVE, f"{topic}'s"), (_PRONOUN, topic), (_THERE, f"in {topic}")):
        if pattern.search(question):
            return pattern.sub(lambda _, said=said: said, question, count=1)
    leans = _GOES_ON.match(question) or len(set(terms(question))) < _FEWEST_TERMS
    return f"{question.rstrip(' ?')} {_words(before)}?" if leans else question


def _topic(question: str) -> str:
    """Return the last name in a question, or else its words that carry meaning."""
    names = _NAME.findall(question)
    return names[-1] if names else _words(question)


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
