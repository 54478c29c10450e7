"""Books in EPUB: their chapters in the order in which they are read."""

from __future__ import annotations

import posixpath
from urllib.parse import unquote

from spanforge.reference.failures import ParseError
from spanforge.reference.parsing.archive import Archive, attribute, local
from spanforge.reference.parsing.base import Extract
from spanforge.reference.parsing.dates import date_of
from spanforge.reference.parsing.html import parse_html


def parse_book(content: bytes) -> Extract:
    """Return the chapters of a book, each as a section.

    Raises:
        ParseError: The file is damaged, or lists no chapters.
    """
    archive = Archive(content)
    container = archive.xml("META-INF/container.xml")
    listed = () if container is None else (attribute(one, "full-path") for one in container.iter())
    name = next(filter(None, listed), "")
    package = archive.xml(name) if name else None
    if package is None:
        raise ParseError("The book is damaged, or lists no chapters.")
    parts = list(package.iter())
    files = {attribute(one, "id"): attribute(one, "href") for one in parts if local(one) == "item"}
    spine = [files.get(attribute(one, "idref"), "") for one in parts if local(one) == "itemref"]
    folder = posixpath.dirname(name)
    chapters = [archive.bytes(posixpath.normpath(posixpath.join(folder, unquote(one)))) for one in spine if one]
    read = [parse_html(chapter, "utf-8") for chapter in chapters if chapter is not None]
    said = {local(one): one.text or "" for one in parts if local(one) in {"title", "date"}}
    return Extract(
        [section for chapter in read for section in chapter.sections],
        said.get("title", ""),
        date_of(said.get("date", "")),
        [node for chapter in read for node in chapter.nodes],
    )
