"""Passages cut into the units an extractive answer is made of: sentences that can stand alone."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from spanforge.reference.assembly import quoted
from spanforge.reference.grounding.contexts import content_stem
from spanforge.reference.grounding.text import TOKEN, sentence_spans

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spanforge.reference.models import RetrievedDocument

_LIST_MARK = re.compile(r"^(?:[-*+]\s+|\d+[.)]\s+|>\s*)")
_EMPHASIS = re.compile(r"\*\*|__|`")
_LEANS = re.compile(r"^(?:It|Its|They|Their|He|His|She|Her|This|These|That|Those|Such)\b")
_NAME = re.compile(r"\b[A-Z][\w'-]+")


@dataclass(frozen=True, slots=True)
class Unit:
    """A sentence, with the one before it where it leans on that ("It flows through ten countries").

    Attributes:
        text: As it will be quoted.
        sentence: The last sentence of it, where a short answer is looked for.
        number: Number of its passage in the prompt.
        terms: Stems of what it says.
        context: Stems of the headings over it.
        names: Stems of the names it mentions.
    """

    text: str = field(repr=False)
    sentence: str = field(repr=False)
    number: int
    terms: frozenset[str] = field(repr=False)
    context: frozenset[str] = field(repr=False)
    names: frozenset[str] = field(repr=False)


def stems(text: str) -> frozenset[str]:
    """Return the stems of the words that carry meaning, as the grounder reads them."""
    return frozenset(stem for token in TOKEN.findall(text) if (stem := content_stem(token)))


def units_of(documents: Sequence[RetrievedDocument]) -> list[Unit]:
    """Return the units of all passages in order, headings left out."""
    units: list[Unit] = []
    for number, document in enumerate(documents, start=1):
        heading = document.heading
        before = ""
        for start, end in sentence_spans(document.text):
            raw = document.text[start:end]
            if raw.startswith("#"):
                heading, before = raw.lstrip("# "), ""
                continue
            sentence = " ".join(_EMPHASIS.sub("", _LIST_MARK.sub("", quoted(raw))).split())
            own = stems(sentence)
            if not own:
                continue
            leans = bool(before and _LEANS.match(sentence))
            text = f"{before} {sentence}" if leans else sentence
            said = own | stems(before) if leans else own
            names = stems(" ".join(_NAME.findall(text)))
            units.append(Unit(text, sentence, number, said, stems(f"{document.heading} {heading}") - said, names))
            before = sentence
    return units
