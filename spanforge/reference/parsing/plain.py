"""Plain text, Markdown and rich text (RTF)."""

from __future__ import annotations

import re
from typing import Final

from spanforge.reference._extras import load
from spanforge.reference.failures import ParseError
from spanforge.reference.parsing.base import Extract, Section
from spanforge.reference.parsing.coding import decode, normal
from spanforge.reference.parsing.tree import Block, markdown, table

_FRONT_MATTER: Final = re.compile(r"\A---\n.*?\n(?:---|\.\.\.)\n", re.DOTALL)
_ROW: Final = re.compile(r"^.*\|\s*$")
_START: Final = "{\\rtf"
_NOTE: Final = re.compile(r"\{(?:\\\*)?\s*\\(?:footnote|header[lrf]?|footer[lrf]?|shptxt)\b")
_HIDDEN: Final = re.compile(r"\{(?:\\[a-z]+-?\d* ?)*?\\(?:v|deleted)(?![a-z0-9])(?:\\(?!v0)[^{}]|[^{}\\])*\}")
"""A group that begins as hidden, and does not end so in its midst."""
_BRACE: Final = re.compile(r"\\.|[{}]", re.DOTALL)
_TITLE: Final = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)


def parse_text(content: bytes) -> Extract:
    """Return a plain text as one section."""
    return Extract([Section(decode(content))])


def parse_markdown(content: bytes) -> Extract:
    """Return a Markdown text as one section, its front matter left out, its first heading as title."""
    text = _FRONT_MATTER.sub("", decode(content), count=1)
    title = _TITLE.search(text)
    return Extract([Section(text, "markdown")], title[1] if title else "")


def parse_rtf(content: bytes) -> Extract:
    """Return the paragraphs of a rich text, and the rows of its tables as "column: value" lines.

    Raises:
        ParseError: The file is not RTF.
    """
    text = content.decode("latin-1")
    if not text.lstrip().startswith(_START):
        raise ParseError("The file is not RTF, as its name says.")
    plain = normal(
        str(load("striprtf.striprtf", "reference").rtf_to_text(_notes_last(_HIDDEN.sub("{}", text)), errors="replace"))
    )
    blocks: list[Block] = []
    rows: list[list[str]] = []
    for line in [*plain.split("\n"), ""]:
        if _ROW.match(line):
            rows.append([cell.strip() for cell in line.rstrip().removesuffix("|").split("|")])
            continue
        blocks += table(rows)
        rows = []
        blocks.append(Block(line))
    return Extract([Section(markdown(blocks), "markdown")])


def _notes_last(text: str) -> str:
    """Return a rich text with its notes, edges and boxes at its end, which what reads it would leave out."""
    kept: list[str] = []
    notes: list[str] = []
    position = 0
    while note := _NOTE.search(text, position):
        depth, end = 0, len(text)
        for brace in _BRACE.finditer(text, note.start()):
            depth += {"{": 1, "}": -1}.get(brace[0], 0)
            if not depth:
                end = brace.end()
                break
        kept.append(f"{text[position : note.start()]}{{}}")
        notes.append(f"\\par {{{text[note.end() : end]}")
        position = end
    rest = text[position:].rstrip().removesuffix("}")
    return "".join([*kept, rest, *notes, "}"]) if notes else text
