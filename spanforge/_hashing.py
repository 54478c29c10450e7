"""Digests in place of text: SHA-256, or HMAC-SHA-256 where a key is configured (adr/0005)."""

from __future__ import annotations

import hashlib
import hmac

_ALGORITHMS = ("sha256", "hmac-sha256")
_HEX_LENGTH = 64
MIN_KEY_BYTES = 32


def utf8(text: str) -> bytes:
    """Encode exactly as `text.encode("utf-8")` does, and lone surrogates, which that refuses, by surrogatepass."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def is_digest(text: str) -> bool:
    """Tell whether `text` already is a SHA-256 digest: 64 hex digits, with or without a prefix that says so."""
    if len(text) != _HEX_LENGTH:
        prefix, _, text = text.rpartition(":")
        if prefix not in _ALGORITHMS or len(text) != _HEX_LENGTH:
            return False
    try:
        # By far the fastest check there is; blanks, which it skips, would leave fewer bytes.
        return len(bytes.fromhex(text)) == _HEX_LENGTH // 2
    except ValueError:
        return False


class Hasher:
    """Turns text into digests, all keyed or all plain: never both digests of one text.

    Attributes:
        algorithm: `sha256` or `hmac-sha256`.
        key_id: Eight hex digits that name the key without revealing it; empty without one.
    """

    __slots__ = ("_key", "algorithm", "key_id")

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key
        self.algorithm = "sha256" if key is None else "hmac-sha256"
        self.key_id = "" if key is None else hmac.digest(key, b"spanforge key id", "sha256").hex()[:8]

    def digest(self, text: str | bytes) -> str:
        """Return the 64 hex digits that stand for `text`."""
        data = text if isinstance(text, bytes) else utf8(text)
        if self._key is None:
            return hashlib.sha256(data).hexdigest()
        return hmac.digest(self._key, data, "sha256").hex()

    def labelled(self, kind: str, text: str | bytes) -> str:
        """Return `kind:algorithm:digest`: what is kept of free text."""
        return f"{kind}:{self.algorithm}:{self.digest(text)}"
