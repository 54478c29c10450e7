"""What a file is, told by what it holds."""

from __future__ import annotations

from typing import Final

from spanforge.reference.failures import ParseError
from spanforge.reference.parsing.archive import Archive
from spanforge.reference.parsing.coding import has_controls

OPEN_XML: Final = "application/vnd.openxmlformats-officedocument"
_PARTS: Final = {
    "word/document.xml": f"{OPEN_XML}.wordprocessingml.document",
    "ppt/presentation.xml": f"{OPEN_XML}.presentationml.presentation",
    "xl/workbook.xml": f"{OPEN_XML}.spreadsheetml.sheet",
    "xl/workbook.bin": f"{OPEN_XML}.spreadsheetml.sheet",
}
_STARTS: Final = (
    (b"%PDF-", "application/pdf"),
    (b"{\\rtf", "application/rtf"),
    (b"\xd0\xcf\x11\xe0", f"{OPEN_XML}.spreadsheetml.sheet"),
)
_HTML: Final = (b"<!doctype html", b"<html", b"<?xml")
_MARKS: Final = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
_TEXTS: Final = frozenset({"application/jsonl", "application/json", "application/x-ipynb+json", "message/rfc822"})
_HEAD: Final = 4_096


def kind_of(content: bytes) -> str:
    """Return the media type of a file by its first bytes, empty where it is of no kind that is read."""
    head = content[:_HEAD]
    for start, kind in _STARTS:
        if head.startswith(start):
            return kind
    if head.startswith(b"PK\x03\x04"):
        return _archive(content)
    if not is_text(head):
        return ""
    return "text/html" if head.lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith(_HTML) else "text/plain"


def is_text_kind(media_type: str) -> bool:
    """Tell whether files of a media type are text, so that their bytes cannot tell one such type from another."""
    return media_type.startswith("text/") or media_type in _TEXTS


def is_text(head: bytes) -> bool:
    """Tell whether a file that begins so is text."""
    if head.startswith(_MARKS):
        return True
    return 0 not in head and not has_controls(head)


def _archive(content: bytes) -> str:
    try:
        archive = Archive(content)
        said = archive.bytes("mimetype")[:100].decode("ascii", "replace").strip()
    except ParseError:
        return ""
    return said or next((kind for part, kind in _PARTS.items() if part in archive), "")
