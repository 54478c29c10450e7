"""Bearer tokens of an OpenID Connect issuer: signature, issuer, audience and time are checked, then claims are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import jwt
from pydantic import ValidationError

from spanforge.reference import User
from spanforge.server.auth.permissions import OPERATORS

if TYPE_CHECKING:
    from spanforge.sdk import ServerSettings
    from spanforge.server.auth.jwks import KeySet

LEEWAY_S: Final = 30
"""Seconds that the issuer's clock and ours may differ."""
_MAX_NAMES: Final = 1_000
_UNUSABLE: Final = (jwt.PyJWTError, ValueError, TypeError, RecursionError)
"""What reading a token that anybody may have written can end in."""


class TokenVerifier:
    """Judges the tokens of the issuer in the settings.

    Args:
        settings: Issuer, audience, algorithms, and which claim says what.
        keys: The issuer's public keys.
    """

    def __init__(self, settings: ServerSettings, keys: KeySet) -> None:
        self._settings = settings
        self._keys = keys

    def verify(self, token: str) -> User | None:
        """Return whom a token stands for, None where it is not valid.

        Raises:
            Problem: The issuer's keys cannot be read.
        """
        claims = self._claims(token)
        if claims is None:
            return None
        settings = self._settings
        try:
            return User(
                org_id=_text(claims, settings.oidc_org_claim),
                user_id=_text(claims, settings.oidc_user_claim),
                # Figures of the whole server are its operator's to show: what a tenant's issuer says is no reason.
                roles=_names(claims, settings.oidc_roles_claim) - OPERATORS,
                teams=_names(claims, settings.oidc_teams_claim),
            )
        except ValidationError:
            # No organisation, or no user: nobody this server could know.
            return None

    def _claims(self, token: str) -> dict[str, Any] | None:
        """Return the claims of a valid token, None for any other."""
        settings = self._settings
        try:
            header = jwt.get_unverified_header(token)
        except _UNUSABLE:
            return None
        key_id, algorithm = header.get("kid"), header.get("alg")
        if not isinstance(key_id, str | None) or not isinstance(algorithm, str):
            return None
        if algorithm not in settings.oidc_algorithms:
            return None
        key = self._keys.find(key_id)
        if key is None:
            return None
        try:
            return jwt.decode(
                token,
                key,
                algorithms=sorted(settings.oidc_algorithms),
                issuer=settings.oidc_issuer,
                audience=settings.oidc_audience,
                leeway=LEEWAY_S,
                options={"require": ["exp", "iss", "aud"]},
            )
        except _UNUSABLE:
            return None


def _claim(claims: dict[str, Any], path: str) -> Any:
    """Return a claim: by its whole name, which may be an address with dots in it, else by steps into nested claims."""
    if path in claims:
        return claims[path]
    found: Any = claims
    for step in path.split("."):
        found = cast("dict[str, Any]", found).get(step) if isinstance(found, dict) else None
    return found


def _text(claims: dict[str, Any], path: str) -> str:
    value = _claim(claims, path)
    return value if isinstance(value, str) else ""


def _names(claims: dict[str, Any], path: str) -> frozenset[str]:
    """Return the names in a claim: a list of them, or one text with blanks between them."""
    value = _claim(claims, path)
    if isinstance(value, str):
        return frozenset(value.split()[:_MAX_NAMES])
    if isinstance(value, list):
        return frozenset(item for item in cast("list[object]", value)[:_MAX_NAMES] if isinstance(item, str))
    return frozenset()
