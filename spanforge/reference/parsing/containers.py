"""Documents that hold others: e-mail with what was attached, and books in EPUB with their chapters."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Final, cast
from urllib.parse import unquote

from spanforge.reference.failures import ParseError, UnsupportedFormat
from spanforge.reference.parsing.archive import Archive, attribute, joined, nearest, properties
from spanforge.reference.parsing.base import Extract, Section, date_of
from spanforge.reference.parsing.coding import decode, normal
from spanforge.reference.parsing.html import parse_html
from spanforge.reference.parsing.registry import read
from spanforge.reference.parsing.tree import one_line

_SHOWN: Final = ("Subject", "From", "To", "Cc", "Date")
_MOST_NESTED: Final = 5


def parse_message(content: bytes, depth: int = 0) -> Extract:
    """Return a message's head, its text, and those attachments that can be read.

    Raises:
        ParseError: It holds neither a head nor a text.
    """
    message = message_from_bytes(content, policy=policy.default)
    head = {name: said for name in _SHOWN if (said := one_line(normal(_header(message, name))))}
    parts = list(_attachments(message))
    names = [name for part in parts if (name := one_line(part.get_filename() or ""))]
    head |= {"Attachments": ", ".join(names)} if names else {}
    sections = [Section("\n".join(f"{name}: {value}" for name, value in head.items()))]
    # The last of several forms is the richest; a page may be a picture.
    bodies = (message.get_body((kind,)) for kind in ("html", "plain"))
    texts = (_text(cast("EmailMessage", body)) for body in bodies if body is not None)
    sections += next((text for text in texts if any(section.text.strip() for section in text)), list[Section]())
    missing = 0
    for part in parts:
        attached = list(_attached(part, depth))
        sections += attached
        missing += not attached and part.get_content_maintype() != "image"
    warnings = (f"Attachments that were not read: {missing}.",) if missing else ()
    return Extract(sections, head.get("Subject", ""), date_of(head.get("Date", "")), warnings=warnings)


def _header(message: EmailMessage, name: str) -> str:
    try:
        return str(message[name] or "")
    except (AttributeError, IndexError):
        # The library fails over addresses that no message should have; a reader sees them as they are.
        return next(str(value) for key, value in message.raw_items() if key.lower() == name.lower())


def _attachments(message: EmailMessage) -> Iterator[EmailMessage]:
    """Yield what is attached, be it within what is signed or listed."""
    for part in message.iter_attachments() if message.is_multipart() else ():
        yield from _attachments(part) if part.get_content_maintype() == "multipart" else [part]


def _text(part: EmailMessage) -> list[Section]:
    content, charset = _bytes(part), str(part.get_content_charset() or "")
    if part.get_content_subtype() == "html":
        return list(parse_html(content, charset).sections)
    return [Section(decode(content, charset))]


def _attached(part: EmailMessage, depth: int) -> Iterator[Section]:
    name = one_line(part.get_filename() or "")
    try:
        if part.get_content_type() == "message/rfc822":
            inner = cast("list[EmailMessage]", part.get_payload())
            yield from parse_message(inner[0].as_bytes(), depth + 1).sections if inner and depth < _MOST_NESTED else ()
        else:
            for section in read(_bytes(part), name, part.get_content_type()).sections:
                yield Section(section.text, section.kind, section.page, section.heading or name)
    except (ParseError, UnsupportedFormat):
        return


def _bytes(part: EmailMessage) -> bytes:
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def parse_book(content: bytes) -> Extract:
    """Return the chapters of a book, each as a section.

    Raises:
        ParseError: The file is damaged, or lists no chapters.
    """
    archive = Archive(content)
    listed = nearest(archive.xml("META-INF/container.xml"), {"rootfile"})
    name = next((attribute(one, "full-path") for one in listed), "")
    package = archive.xml(name)
    if package is None:
        raise ParseError("The book is damaged, or lists no chapters.")
    files = {attribute(one, "id"): unquote(attribute(one, "href")) for one in nearest(package, {"item"})}
    spine = (files.get(attribute(one, "idref")) for one in nearest(package, {"itemref"}))
    chapters = (archive.bytes(joined(posixpath.dirname(name), one)) for one in spine if one)
    read = [parse_html(chapter, "utf-8") for chapter in chapters if chapter]
    return Extract(
        [section for chapter in read for section in chapter.sections],
        *properties(package),
        [node for chapter in read for node in chapter.nodes],
    )
