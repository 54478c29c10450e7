"""The public keys of a token issuer, from a file or fetched and kept (RFC 7517)."""

from __future__ import annotations

import http.client
import json
import threading
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from spanforge import _clock
from spanforge.exceptions import ConfigError
from spanforge.server.middleware.limits import is_loopback
from spanforge.server.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable

FETCH_TIMEOUT_S: Final = 5.0
FRESH_S: Final = 300.0
"""How long fetched keys are used before they are fetched again."""
KEPT_S: Final = 3_600.0
"""How long fetched keys are used where they cannot be fetched again."""
RETRY_S: Final = 10.0
"""Shortest time between two fetches: whoever invents key ids makes us ask the issuer no more often than this."""
_LEAST_RSA_BITS: Final = 2_048
_MAX_BYTES: Final = 1 << 20
_UNREADABLE: Final = (
    OSError, http.client.HTTPException, jwt.PyJWTError,
    ValueError, TypeError, LookupError, AttributeError, RecursionError,
)  # fmt: skip
"""What reading a document can end in that should hold keys, and may hold anything."""


class KeySet:
    """Keys by id. Safe for threads; while one fetches, the others wait for it.

    Args:
        read: Returns the document with the keys.
    """

    def __init__(self, read: Callable[[], bytes]) -> None:
        self._read = read
        self._keys: dict[str | None, jwt.PyJWK] = {}
        self._lock = threading.Lock()
        self._fetched_at: float | None = None
        self._tried_at: float | None = None

    def find(self, key_id: str | None) -> jwt.PyJWK | None:
        """Return a key; without an id the only one there is, None where it is not known.

        Raises:
            Problem: There are no keys, because they could not be read.
        """
        with self._lock:
            now = _clock.monotonic()
            stale = self._fetched_at is None or now - self._fetched_at > FRESH_S
            if (stale or self._known(key_id) is None) and (self._tried_at is None or now - self._tried_at > RETRY_S):
                self._tried_at = now
                if self._fetch():
                    self._fetched_at = now
            # Keys once read stay in use for a while where the issuer cannot be reached; one it has withdrawn must end.
            unread = self._fetched_at is None or now - self._fetched_at > KEPT_S
            found = self._known(key_id)
        if unread:
            raise Problem("IDENTITY_UNAVAILABLE", headers={"Retry-After": str(int(RETRY_S))})
        return found

    def _known(self, key_id: str | None) -> jwt.PyJWK | None:
        if key_id is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        return self._keys.get(key_id)

    def _fetch(self) -> bool:
        try:
            self._keys = _parsed(self._read())
        except _UNREADABLE:
            return False
        return True


def _parsed(document: bytes) -> dict[str | None, jwt.PyJWK]:
    """Return the keys that sign; kinds that are not known, and keys too short to trust, are passed over."""
    entries: Any = json.loads(document)["keys"] if document else []
    keys: dict[str | None, jwt.PyJWK] = {}
    for entry in entries:
        if entry.get("use", "sig") != "sig" or entry.get("kty") == "oct":
            continue
        try:
            key = jwt.PyJWK(entry)
        except jwt.PyJWTError:
            continue
        if not isinstance(key.key, RSAPublicKey) or key.key.key_size >= _LEAST_RSA_BITS:
            keys[entry.get("kid")] = key
    return keys


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Keys come from where the settings say, not from where that leads."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        """Refuse."""


def key_set(place: str) -> KeySet:
    """Return the keys at a URL or in a file.

    Raises:
        ConfigError: The URL is not encrypted and leads to another machine, or there is no such file.
    """
    parts = urlsplit(place)
    if parts.scheme in {"http", "https"}:
        if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
            raise ConfigError("oidc_jwks: use https; keys that come unencrypted may be anybody's")
        opener = urllib.request.build_opener(_NoRedirect)

        def fetch() -> bytes:
            with opener.open(place, timeout=FETCH_TIMEOUT_S) as answer:
                return answer.read(_MAX_BYTES)

        return KeySet(fetch)
    file = Path(place)
    if not file.is_file():
        raise ConfigError("oidc_jwks: there is no such file; give a file or an https URL")
    return KeySet(file.read_bytes)
