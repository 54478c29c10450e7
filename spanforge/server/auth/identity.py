"""Who asks: read from the credential alone, never from the rest of the request."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Protocol

from spanforge.server.auth.keys import PREFIX

if TYPE_CHECKING:
    from spanforge.reference import User
    from spanforge.server.auth.keys import KeyStore

MAX_CREDENTIAL: Final = 8_192
"""Longest credential that is looked at, in characters."""


class Verifier(Protocol):
    """Judges the tokens of one issuer."""

    def verify(self, token: str) -> User | None:
        """Return whom a token stands for, None where it is not valid; may block."""
        ...


class Authenticator:
    """Tells API keys and tokens apart by their prefix, and judges them.

    Args:
        keys: The API keys.
        verifier: Judges tokens; absent, there are only keys.
    """

    def __init__(self, keys: KeyStore, verifier: Verifier | None = None) -> None:
        self._keys = keys
        self._verifier = verifier

    async def judge(self, credential: str) -> User | None:
        """Return whom a credential stands for, None where it is not valid.

        Raises:
            Problem: The issuer's keys cannot be read.
        """
        if len(credential) > MAX_CREDENTIAL:
            return None
        if credential.startswith(PREFIX):
            return self._keys.find(credential)
        if self._verifier is None:
            return None
        # The issuer's keys may have to be fetched first.
        return await asyncio.to_thread(self._verifier.verify, credential)


def bearer(header: str | None) -> str | None:
    """Return the credential in an `Authorization` header, None where there is none."""
    scheme, _, credential = (header or "").partition(" ")
    return credential.strip() or None if scheme.lower() == "bearer" else None
