"""Books in EPUB: their chapters in the order in which they are read."""

from __future__ import annotations

import posixpath
from urllib.parse import unquote

from spanforge.reference.failures import ParseError
from spanforge.reference.parsing.archive import Archive, attribute, joined, nearest, properties
from spanforge.reference.parsing.base import Extract
from spanforge.reference.parsing.html import parse_html


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
