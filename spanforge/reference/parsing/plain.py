"""Plain text and Markdown."""

from __future__ import annotations

import re

from spanforge.reference.parsing.base import ParsedDocument, Section, bounded, decode

_FRONT_MATTER = re.compile(r"\A---\n.*?\n(?:---|\.\.\.)\n", re.DOTALL)
_TITLE = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)


def parse_text(content: bytes) -> ParsedDocument:
    """Return a plain text as one section."""
    return bounded([Section(decode(content))], "text/plain")


def parse_markdown(content: bytes) -> ParsedDocument:
    """Return a Markdown text as one section, its front matter left out, its first heading as title."""
    text = _FRONT_MATTER.sub("", decode(content), count=1)
    title = _TITLE.search(text)
    return bounded([Section(text, "markdown")], "text/markdown", title=title[1] if title else "")
