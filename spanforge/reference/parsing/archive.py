"""Documents that are archives of XML: Word, slides, OpenDocument, books.

Elements are told by their local names, so that transitional, strict and vendor namespaces read alike.
"""

from __future__ import annotations

import io
import posixpath
import zipfile
import zlib
from collections.abc import Container, Iterable, Iterator
from datetime import datetime
from typing import Final

from spanforge.reference._extras import Untyped, load
from spanforge.reference.failures import ParseError, Translated
from spanforge.reference.parsing.base import date_of
from spanforge.reference.workers import TOO_COSTLY

DAMAGED: Final = (zipfile.BadZipFile, zlib.error, ValueError, NotImplementedError, OSError, EOFError, RuntimeError)
"""What the standard library raises over archives that are cut, encrypted or forged, each for other damage."""
_MOST_ENTRIES: Final = 10_000
_MOST_RATIO: Final = 200
"""Ordinary documents unfold to about ten times their size; what goes far beyond is made to."""
_SMALL: Final = 1 << 20
_REFUSED: Final = Translated(
    DAMAGED, lambda _: ParseError("The document is damaged, encrypted, or not of the format that its name says.")
)


class Archive:
    """The parts of a document by name.

    Raises:
        ParseError: It is no archive, or says that it unfolds to far more than its size.
    """

    def __init__(self, content: bytes) -> None:
        with _REFUSED:
            self._zip = zipfile.ZipFile(io.BytesIO(content))
        self._known = {one.filename.lower(): one for one in self._zip.infolist()}
        size = sum(one.file_size for one in self._known.values())
        if len(self._known) > _MOST_ENTRIES or size > max(_SMALL, len(content) * _MOST_RATIO):
            raise ParseError(TOO_COSTLY)

    def names(self, start: str) -> list[str]:
        """Return the names of XML parts that begin so, in the order of the numbers in them."""
        found = (name for name in self._known if name.startswith(start.lower()) and name.endswith(".xml"))
        return sorted(found, key=lambda name: (len(name), name))

    def bytes(self, name: str) -> bytes:
        """Return a part, empty where there is none of this name.

        Raises:
            ParseError: It is damaged, or longer than the archive says.
        """
        entry = self._known.get(name.lower().lstrip("/"))
        if entry is None:
            return b""
        with _REFUSED, self._zip.open(entry) as part:
            content = part.read(entry.file_size + 1)
            if len(content) > entry.file_size:
                raise EOFError
        return content

    def xml(self, name: str, unseen: Iterable[str] = ()) -> Untyped:
        """Return the root element of a part, None where there is none; nothing outside the part is ever read.

        Args:
            name: Name of the part.
            unseen: Elements that a reader does not see, as ``{*}del``; they are taken out.
        """
        etree = load("lxml.etree", "reference")
        parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True, recover=True,
                                 remove_comments=True, remove_pis=True)  # fmt: skip
        try:
            root = etree.fromstring(self.bytes(name), parser)
        except (etree.XMLSyntaxError, ValueError):
            return None
        if root is not None and unseen:
            etree.strip_elements(root, *unseen, with_tail=False)
        return root

    def relations(self, name: str = "") -> dict[str, tuple[str, str]]:
        """Return by its id the kind and the part of each relation of a part, or of the whole archive."""
        folder, base = posixpath.split(name)
        return {
            attribute(one, "Id"): (attribute(one, "Type").rpartition("/")[2], joined(folder, attribute(one, "Target")))
            for one in nearest(self.xml(posixpath.join(folder, "_rels", f"{base}.rels")), {"Relationship"})
            if attribute(one, "TargetMode") != "External"
        }

    def main(self, otherwise: str) -> str:
        """Return the name of the part that the document begins with."""
        return next((part for kind, part in self.relations().values() if kind == "officeDocument"), otherwise)


def joined(folder: str, target: str) -> str:
    """Return the name of a part that a part in a folder names."""
    return posixpath.normpath(posixpath.join("/", folder, target))[1:]


def properties(root: Untyped) -> tuple[str, datetime | None]:
    """Return the title of a document, and when it was last changed, from the part that says so."""
    said = {} if root is None else {local(one): one.text or "" for one in root.iter()}
    dates = (date_of(said.get(name, "")) for name in ("modified", "date", "created"))
    return said.get("title", ""), next(filter(None, dates), None)


def local(node: Untyped) -> str:
    """Return the name of an element without its namespace, empty for what is no element."""
    tag = node.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def attribute(node: Untyped, name: str) -> str:
    """Return an attribute, in whatever namespace, empty where there is none."""
    for key, value in node.attrib.items() if node is not None else ():
        if key.rpartition("}")[2] == name:
            return str(value)
    return ""


def parts(node: Untyped) -> dict[str, Untyped]:
    """Return the elements in an element by their names."""
    return {} if node is None else {local(one): one for one in node}


def nearest(parent: Untyped, names: Container[str]) -> Iterator[Untyped]:
    """Yield the elements of some names below another one, not those inside them; what wraps them is looked through."""
    for child in parent if parent is not None else ():
        if local(child) in names:
            yield child
        else:
            yield from nearest(child, names)
