"""reStructuredText, as Python's PEPs are written in, read as Markdown."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from typing import Final, TypeAlias

from spanforge.reference.parsing.base import Extract, Section
from spanforge.reference.parsing.coding import decode
from spanforge.reference.parsing.tree import markdown, row_text, table

Found: TypeAlias = re.Match[str]
_DEEPEST: Final = 6
_NUMBERED: Final = frozenset({"pep", "rfc"})
"""Roles whose text is the number of a document."""
_WITHOUT_TEXT: Final = ("code", "sourcecode", "highlight", "raw", "image", "figure", "include", "contents")
_FIELDS: Final = re.compile(r"\A\s*((?::?[A-Z][\w-]*:(?:[ \t].*)?\n(?:[ \t]+\S.*\n)*){2,})")
_FIELD: Final = re.compile(r"^:?([A-Z][\w-]*):((?:[ \t].*)?(?:\n[ \t]+\S.*)*)$", re.MULTILINE)
_SIGN: Final = r"[=\-~^\"'`*+#.:_]"
_HEADED: Final = re.compile(
    rf"^(?:({_SIGN})\1{{2,}}\n)?(?![ \t]|\.\. )(?=.*\w)(.+)\n({_SIGN})\3{{2,}}[ \t]*$", re.MULTILINE
)
_OPTIONS: Final = r"((?:\n\1[ \t]+:[\w-]+:.*)*)"
_TABLE: Final = re.compile(
    rf"^([ \t]*)\.\. csv-table::.*{_OPTIONS}\n[ \t]*\n((?:\1[ \t]+\S.*(?:\n|\Z))+)", re.MULTILINE
)
_DIRECTIVE: Final = re.compile(rf"^([ \t]*)\.\. (?!csv-table)[\w:-]+::.*{_OPTIONS}$", re.MULTILINE)
_TARGET: Final = re.compile(r"^[ \t]*\.\. (?:_`?([^:`\n]+)`?(:[ \t]+\S.*)|(\[.*)|.*)$", re.MULTILINE)
"""Links and notes by their names; what else begins like them is a comment, or a place to link to."""
_ROLE: Final = re.compile(r":([\w.+:-]{1,40}):`([^`<]{1,300}?)(?:\s{0,4}<[^`>]{0,300}>)?`")
_LINK: Final = re.compile(r"(?<!`)`([^`<]{1,300}?)\s{1,4}<([^`>]{1,500})>`__?")
_REFERENCE: Final = re.compile(r"(?<=`)__?(?!\w)")
_FIRST: Final = re.compile(r"^# (.+)$", re.MULTILINE)


def parse_rst(content: bytes) -> Extract:
    """Return a reStructuredText as Markdown: markup as it reads, the fields at its head as a row.

    A PEP's title is its number and what its fields call it.
    """
    text = decode(content)
    head = _FIELDS.match(text)
    fields = {name: " ".join(value.split()) for name, value in _FIELD.findall(head[1])} if head else {}
    levels: dict[tuple[str, str], int] = {}

    def heading(found: Found) -> str:
        level = levels.setdefault((found[1] or "", found[3]), len(levels) + 1)
        return f"{'#' * min(level, _DEEPEST)} {found[2].strip()}"

    rules: tuple[tuple[re.Pattern[str], str | Callable[[Found], str]], ...] = (
        (_HEADED, heading),
        (_TABLE, _rows),
        (_DIRECTIVE, _directive),
        (_TARGET, r"\1\2\3"),
        (_ROLE, _role),
        (_LINK, r"[\1](\2)"),
        (re.compile("``"), "`"),
        (_REFERENCE, ""),
        (re.compile("::$", re.MULTILINE), ":"),
    )
    body = text[head.end() :] if head else text
    for pattern, said in rules:
        body = pattern.sub(said, body)
    first = _FIRST.search(body)
    named = f"PEP {fields['PEP']}: {fields.get('Title', '')}" if "PEP" in fields else fields.get("Title", "")
    row = row_text([*fields], [*fields.values()])
    return Extract([Section(f"{row}\n\n{body}".strip(), "markdown")], named or (first[1] if first else ""))


def _rows(found: Found) -> str:
    head = re.search(r":header:(.*)", found[2])
    lines = [line.strip().replace("\\", "") for line in (*([head[1]] if head else []), *found[3].splitlines())]
    try:
        rows = list(csv.reader(lines, skipinitialspace=True))
    except csv.Error:
        return found[3]
    return markdown(list(table(rows, head=True if head else None))) + "\n"


def _directive(found: Found) -> str:
    name, _, said = found[0].strip().removeprefix(".. ").partition("\n")[0].partition("::")
    return "" if name.startswith(_WITHOUT_TEXT) else f"{found[1]}{said.strip()}"


def _role(found: Found) -> str:
    is_number = found[1].lower() in _NUMBERED and found[2].isdigit()
    return f"{found[1].upper()} {found[2]}" if is_number else found[2]
