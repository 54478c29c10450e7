"""Who is signed in: a bounded table in memory, behind a cookie that says nothing."""

from __future__ import annotations

import secrets
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final, TypeAlias

from spanforge import _clock

__all__ = ["COOKIE", "Guest", "SignIn", "Visit", "Visits"]


@dataclass(frozen=True, slots=True)
class Guest:
    """What a credential is good for.

    Attributes:
        org: The organisation it belongs to.
        looks: Whether it may look at what was traced.
        asks: Whether it may ask the documents.
    """

    org: str
    looks: bool = True
    asks: bool = False


SignIn: TypeAlias = Callable[[str], Awaitable[Guest | None]]
"""Takes a credential, and gives what it is good for; None for nothing."""

COOKIE: Final = "spanforge_viewer"

_MOST: Final = 1_000
_IDLE_S: Final = 3_600.0
_LONGEST_S: Final = 43_200.0


@dataclass(slots=True)
class Visit:
    """One signed-in browser.

    Attributes:
        guest: What its credential is good for.
        form_token: Stands in every form of its pages; a post without it is not one of theirs.
        credential: Asked about again with each request, so that one that is revoked ends the visit at once.
    """

    guest: Guest
    credential: str = field(repr=False)
    form_token: str = field(repr=False)
    began: float
    seen: float

    @property
    def org(self) -> str:
        """The organisation that is seen."""
        return self.guest.org


class Visits:
    """The table of visits.

    Args:
        sign_in: Asked with each request.
        most: Visits kept; of the credential with the most of them, the one not seen for the longest time makes room.
    """

    def __init__(self, sign_in: SignIn, *, most: int = _MOST) -> None:
        self._sign_in, self._most = sign_in, most
        self._visits: OrderedDict[bytes, Visit] = OrderedDict()

    def __len__(self) -> int:
        return len(self._visits)

    async def begin(self, credential: str) -> str | None:
        """Sign in; returns the value of the cookie, None where the credential is good for nothing."""
        guest = await self._sign_in(credential)
        if guest is None:
            return None
        token, now = secrets.token_urlsafe(32), _clock.monotonic()
        self._visits[_digest(token)] = Visit(guest, credential, secrets.token_urlsafe(32), now, now)
        if len(self._visits) > self._most:
            # Whoever signs in again and again signs out himself, and nobody else.
            greedy, _ = Counter(visit.credential for visit in self._visits.values()).most_common(1)[0]
            del self._visits[next(key for key, visit in self._visits.items() if visit.credential == greedy)]
        return token

    async def find(self, token: str | None) -> Visit | None:
        """Return the visit of a cookie, if it is signed in still."""
        key = _digest(token or "")
        visit = self._visits.get(key)
        if visit is None:
            return None
        now = _clock.monotonic()
        expired = now - visit.seen > _IDLE_S or now - visit.began > _LONGEST_S
        if expired or await self._sign_in(visit.credential) != visit.guest:
            self._visits.pop(key, None)
            return None
        visit.seen = now
        if key in self._visits:
            self._visits.move_to_end(key)
        return visit

    def end(self, token: str | None) -> None:
        """Sign out."""
        self._visits.pop(_digest(token or ""), None)


def _digest(token: str) -> bytes:
    # Looked up by digest, so that the time a lookup takes tells nothing of the tokens there are.
    return sha256(token.encode("utf-8", "surrogatepass")).digest()
