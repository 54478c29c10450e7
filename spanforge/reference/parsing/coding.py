"""From bytes to characters: what a file says of its encoding, and where it says nothing, what it must be."""

from __future__ import annotations

import codecs
import re
import unicodedata
from typing import Final

from spanforge.reference._extras import load
from spanforge.reference.failures import ParseError

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DECLARED: Final = re.compile(rb"(?:charset|coding|encoding)\s*[=:]\s*[\"']?\s*([A-Za-z0-9_.:-]{2,40})", re.IGNORECASE)
_HEAD: Final = 4_096
_SAMPLE: Final = 1 << 16
_MOST_DAMAGE: Final = 0.5
"""Share of the characters beyond ASCII that may be damaged in a text that is UTF-8 all the same."""
_ALIASES: Final = {
    **dict.fromkeys(("iso-8859-1", "latin-1", "latin1", "us-ascii", "ascii"), "cp1252"),
    **dict.fromkeys(("shift_jis", "shift-jis", "x-sjis", "sjis"), "cp932"),
    **dict.fromkeys(("gb2312", "gbk", "x-gbk"), "gb18030"),
    **dict.fromkeys(("euc-kr", "ks_c_5601-1987"), "cp949"),
    "big5": "big5hkscs",
}
"""What browsers read for these names: the larger set that files of that name are really in."""
_LIKELY: Final = (
    "cp1252", "cp1251", "cp1250", "cp1253", "cp1254", "cp1255", "cp1256", "cp932", "euc_jp", "gb18030", "big5", "cp949",
    "koi8_r", "iso8859_2", "mac_roman", "cp437", "cp850", "cp866", "iso2022_jp",
)  # fmt: skip
_BEYOND: Final = bytes(range(128, 256))
_TOO_FEW: Final = 32
"""Bytes beyond ASCII that say too little of an encoding; among enough Latin letters they are Western."""
_LATIN: Final = 0.15
_WESTERN: Final = ("cp1252", "cp1250", "iso8859_2", "cp850")
_ODD: Final = re.compile(r"[^\W\d_](?:[^\w\x00-\x7f\u2010-\u201d]|[\u00b2\u00b3\u00b9\u00bc-\u00be])[^\W\d_]")
"""A sign or a control within a word: the text is in another encoding."""
_CONTROLS: Final = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1b"))
_FOLDED: Final[dict[int, str | None]] = {
    **{ord(c): None for c in "\x00\u00ad\u200b\u2060\ufeff"},
    **{0xFB00 + i: plain for i, plain in enumerate(["ff", "fi", "fl", "ffi", "ffl", "st", "st"])},
}
"""Characters that nobody sees, and ligatures of Latin letters."""
_LINE_ENDS: Final = re.compile("\r\n|[\r\x0b\x85\u2028]")


def decode(content: bytes, charset: str = "") -> str:
    """Decode text: byte-order mark first, then UTF-8, the charset it declares, UTF-8 with damage, and detection.

    Args:
        content: The file.
        charset: What somebody else says of it, such as the head of a message.

    Raises:
        ParseError: The bytes are not text (many NUL or control bytes).
    """
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return normal(content.decode(encoding, errors="replace"))
    if wide := _wide(content):
        return normal(content.decode(wide, errors="replace"))
    if _has_controls(content[:_SAMPLE]):
        raise ParseError("The file holds binary data, not text; check its suffix.")
    declared = _DECLARED.search(content[:_HEAD])
    names = (charset, declared[1].decode() if declared else "")
    return normal(_decoded(content, [_ALIASES.get(name.lower(), name) for name in names if name]))


def is_text(head: bytes) -> bool:
    """Tell whether a file that begins so is text."""
    return head.startswith(tuple(mark for mark, _ in _MARKS)) or not (0 in head or _has_controls(head))


def _has_controls(sample: bytes) -> bool:
    """Tell whether over a tenth of some bytes are controls that no text has."""
    return len(sample) - len(sample.translate(None, _CONTROLS)) > len(sample) // 10


def _decoded(content: bytes, declared: list[str]) -> str:
    # What is said to be seven-bit (ISO-2022) is valid UTF-8 as well.
    first = [name for name in declared if name.lower().startswith("iso-2022")]
    first += ["iso2022_jp"] if b"\x1b$" in content[:_SAMPLE] else []
    for encoding in [*first, "utf-8", *declared]:
        try:
            return content.decode(encoding)
        except (UnicodeDecodeError, LookupError):
            continue
    damaged = content.decode("utf-8", errors="surrogateescape")
    beyond = [c for c in damaged if c >= "\x80"]
    if sum("\udc80" <= c <= "\udcff" for c in beyond) <= _MOST_DAMAGE * len(beyond):
        # A stray byte is from the code page that the rest was once in.
        return "".join(_stray(c) if "\udc80" <= c <= "\udcff" else c for c in damaged)
    for encoding in declared:
        try:
            return content.decode(encoding, errors="replace")
        except LookupError:
            continue
    return content.decode(_detected(content), errors="replace")


def _stray(escaped: str) -> str:
    return bytes([ord(escaped) - 0xDC00]).decode("cp1252", errors="replace")


def _detected(content: bytes) -> str:
    beyond = len(content[:_SAMPLE]) - len(content[:_SAMPLE].translate(None, _BEYOND))
    if beyond < _TOO_FEW and beyond < _LATIN * len(content):
        fits = (one for one in _WESTERN if not _ODD.search(content.decode(one, errors="replace")))
        return next(fits, "cp1252")
    found = load("charset_normalizer", "reference").from_bytes(content[:_SAMPLE], cp_isolation=list(_LIKELY)).best()
    return "cp1252" if found is None else str(found.encoding)


def _wide(content: bytes) -> str:
    """Return UTF-16 without its mark, told by where the zeros of Latin letters stand."""
    sample = content[:_HEAD]
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    if max(even, odd) <= len(sample) // 5 or min(even, odd) > len(sample) // 50:
        return ""
    return "utf-16-le" if odd > even else "utf-16-be"


def normal(text: str) -> str:
    r"""Return a text in one form of each letter (NFC), with ``\n`` at line ends and without invisible characters."""
    text = _LINE_ENDS.sub("\n", text.translate(_FOLDED)).replace("\u2029", "\n\n")
    text = text.encode("utf-8", "replace").decode() if any("\ud800" <= c <= "\udfff" for c in text) else text
    return unicodedata.normalize("NFC", text)
