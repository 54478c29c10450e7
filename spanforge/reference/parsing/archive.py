"""Documents that are archives of XML: Word, slides, OpenDocument, books."""

from __future__ import annotations

import io
import posixpath
import zipfile
import zlib
from collections.abc import Container, Iterator
from datetime import datetime
from typing import Final

from spanforge.reference._extras import Untyped, load
from spanforge.reference.failures import ParseError, Translated
from spanforge.reference.parsing.dates import date_of
from spanforge.reference.workers import TOO_COSTLY

DAMAGED: Final = (zipfile.BadZipFile, zlib.error, ValueError, NotImplementedError, OSError, EOFError, RuntimeError)
"""What the standard library raises over archives that are cut, encrypted or forged, each for other damage."""
_MOST_ENTRIES: Final = 10_000
_MOST_RATIO: Final = 200
"""Ordinary documents unfold to about ten times their size; what goes far beyond is made to."""
_SMALL: Final = 1 << 20
_REFUSED: Final = "The document is damaged, encrypted, or not of the format that its name says."


class Archive:
    """The parts of a document by name.

    Raises:
        ParseError: It is no archive, or says that it unfolds to far more than its size.
    """

    def __init__(self, content: bytes) -> None:
        with _damage_refused():
            self._zip = zipfile.ZipFile(io.BytesIO(content))
        self._known = {one.filename.lower(): one for one in self._zip.infolist()}
        size = sum(one.file_size for one in self._known.values())
        if len(self._known) > _MOST_ENTRIES or size > max(_SMALL, len(content) * _MOST_RATIO):
            raise ParseError(TOO_COSTLY)

    def names(self, start: str, end: str = ".xml") -> list[str]:
        """Return the names of parts that begin and end so, in the order of the numbers in them."""
        found = [
            one.filename for name, one in self._known.items() if name.startswith(start.lower()) and name.endswith(end)
        ]
        return sorted(found, key=lambda name: (len(name), name))

    def bytes(self, name: str) -> bytes | None:
        """Return a part, None where there is none of this name.

        Raises:
            ParseError: It is damaged, or longer than the archive says.
        """
        entry = self._known.get(name.lower().lstrip("/"))
        if entry is None:
            return None
        with _damage_refused(), self._zip.open(entry) as part:
            content = part.read(entry.file_size + 1)
        if len(content) > entry.file_size:
            raise ParseError(_REFUSED)
        return content

    def xml(self, name: str) -> Untyped:
        """Return the root element of a part, None where the part is missing or holds no XML."""
        content = self.bytes(name)
        return None if content is None else xml(content)

    def relations(self, name: str = "") -> dict[str, tuple[str, str]]:
        """Return by its id the kind and the part of each relation of a part, or of the whole archive."""
        folder, base = posixpath.split(name)
        root = self.xml(posixpath.join(folder, "_rels", f"{base}.rels"))
        return {
            attribute(one, "Id"): (attribute(one, "Type").rpartition("/")[2], _path(folder, attribute(one, "Target")))
            for one in (root if root is not None else ())
            if attribute(one, "TargetMode") != "External"
        }

    def target(self, kind: str) -> str:
        """Return the part that the archive names for a kind of relation, empty where it names none."""
        return next((part for named, part in self.relations().values() if named == kind), "")

    def properties(self) -> tuple[str, datetime | None]:
        """Return the title of an Office document, and when it was last changed."""
        root = self.xml("docProps/core.xml")
        said = {} if root is None else {local(one): one.text or "" for one in root}
        return said.get("title", ""), date_of(said.get("modified", "")) or date_of(said.get("created", ""))


def _damage_refused() -> Translated:
    return Translated(DAMAGED, lambda _: ParseError(_REFUSED))


def _path(folder: str, target: str) -> str:
    return posixpath.normpath(posixpath.join(folder, target) if not target.startswith("/") else target[1:])


def xml(content: bytes) -> Untyped:
    """Return the root element of a piece of XML, None where it holds none; nothing outside it is ever read."""
    etree = load("lxml.etree", "reference")
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True, recover=True,
                             remove_comments=True, remove_pis=True)  # fmt: skip
    try:
        return etree.fromstring(content, parser)
    except (etree.XMLSyntaxError, ValueError):
        return None


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


def nearest(parent: Untyped, name: str, unseen: Container[str]) -> Iterator[Untyped]:
    """Yield the elements of a name below another one, but not those inside them; what wraps them is looked through."""
    for child in parent:
        if local(child) == name:
            yield child
        elif local(child) not in unseen:
            yield from nearest(child, name, unseen)


def texts(root: Untyped, unseen: Container[str], *, within: str = "") -> Iterator[str]:
    """Yield the text nodes of a part that a reader sees.

    Args:
        root: Its root element, or None.
        unseen: Local names of elements that nobody sees.
        within: The only elements that hold text, where there is but one kind of them.
    """
    for child in root if root is not None else ():
        name = local(child)
        if name and name not in unseen:
            if child.text and within in {"", name}:
                yield child.text
            yield from texts(child, unseen, within=within)
        if child.tail and not within:
            yield child.tail
