"""What an upload is, told by what it holds: a name is only asked which kind of text a text is."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Final

from spanforge.reference.failures import UnsupportedFormat
from spanforge.reference.parsing import media_type_of
from spanforge.reference.parsing.registry import is_text_kind, kind_of

PDF: Final = "application/pdf"
DOCX: Final = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
HTML: Final = "text/html"
PLAIN: Final = "text/plain"
_ZIP: Final = b"PK\x03\x04"


def sniff(content: bytes, name: str) -> str:
    """Return the media type of a file.

    Args:
        content: Its bytes.
        name: Its name, which only tells Markdown, tables, messages and plain text apart.

    Raises:
        UnsupportedFormat: It is of no kind that can be read.
    """
    kind = kind_of(content)
    if not kind and content.startswith(_ZIP):
        raise UnsupportedFormat("Archives are not unpacked; send the documents one by one.")
    if not kind:
        raise UnsupportedFormat
    named = media_type_of(PurePosixPath(name).name)
    return named if kind == PLAIN and is_text_kind(named) else kind
