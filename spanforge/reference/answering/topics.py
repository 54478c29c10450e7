"""What a question is about: its words that carry meaning, and its names, each name one topic however long."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from spanforge.reference.grounding.opposites import ALIKE

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from spanforge.reference.grounding.sentence import Sentence

_INSIDE_NAMES: Final = frozenset({"of", "the", "de", "da", "van", "von"})


@dataclass(frozen=True, slots=True)
class Topic:
    """A word, or all words of a name.

    Attributes:
        stems: Its content stems, in order.
        is_name: Whether it is a name.
    """

    stems: tuple[str, ...] = field(repr=False)
    is_name: bool

    def share_in(self, said: Container[str]) -> float:
        """Return the share of its words, in [0, 1], that some text says, itself or by a synonym."""
        return sum(says(said, stem) for stem in self.stems) / len(self.stems)


def says(said: Container[str], stem: str) -> bool:
    """Tell whether a stem or a synonym of it is among what was said."""
    return stem in said or any(other in said for other in ALIKE.get(stem, ()))


def topics_of(question: Sentence, measure: str = "") -> list[Topic]:
    """Return the distinct topics of a question in order.

    Args:
        question: The question.
        measure: A stem that only says what kind of answer is wanted ("tall"), and so is no topic.
    """
    topics: list[Topic] = []
    last_of_name = -1
    for index, stem in enumerate(question.stems):
        if not stem or stem == measure:
            continue
        is_name = index in question.marked_names
        if is_name and last_of_name >= 0 and _within_name(question, last_of_name, index):
            topics[-1] = Topic((*topics[-1].stems, stem), is_name=True)
        else:
            topics.append(Topic((stem,), is_name))
        last_of_name = index if is_name else -1
    return list(dict.fromkeys(topics))


def mean_share(topics: Sequence[Topic], said: Container[str]) -> float:
    """Return the mean share of some topics that a text says, in [0, 1]; 1 where there are none."""
    return sum(topic.share_in(said) for topic in topics) / len(topics) if topics else 1.0


def _within_name(question: Sentence, start: int, end: int) -> bool:
    return end - start == 1 or (end - start == 2 and question.tokens[start + 1].lower() in _INSIDE_NAMES)  # noqa: PLR2004 - one word between two
