"""What an endpoint may look like. Refusals never repeat the value: it may hold a password."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from spanforge.exceptions import ConfigError

__all__ = ["Endpoint", "check_header", "parse_endpoint", "parse_headers"]

_PORTS: Final = {"http": 80, "https": 443}
_UNFIT: Final = re.compile(r"[\s\x00-\x1f\\]")
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An http(s) URL without credentials.

    Attributes:
        secure: True for https.
        host: Host name or address, without brackets.
        port: Port, the scheme's own where none was given.
        path: Path without a slash at its end; empty for the root.
    """

    secure: bool
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """Host and port, as a gRPC target and as what a log may say."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_endpoint(value: str, setting: str, *, default_port: int | None = None) -> Endpoint:
    """Read an endpoint.

    Args:
        value: The URL.
        setting: What to call it in a refusal.
        default_port: Port where the URL has none, in place of the scheme's own.

    Raises:
        ConfigError: It is not an http(s) URL, or it carries credentials, a query or a fragment.
    """
    problem = ""
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        problem = "not a URL that can be read; write http(s)://HOST:PORT"
    else:
        problem = _problem(value, parts)
        if not problem:
            chosen = port or default_port or _PORTS[parts.scheme]
            return Endpoint(parts.scheme == "https", parts.hostname or "", chosen, parts.path.rstrip("/"))
    raise ConfigError(f"{setting}: {problem}")


def _problem(value: str, parts: SplitResult) -> str:
    if _UNFIT.search(value):
        return "must not contain spaces, backslashes or control characters"
    if parts.scheme not in _PORTS:
        return "must begin with http:// or https://"
    if parts.username is not None or parts.password is not None or "@" in parts.netloc:
        return "must not carry credentials; give them as headers"
    if parts.query or parts.fragment:
        return "must not carry a query or fragment; give keys and tokens as headers"
    return "" if parts.hostname else "has no host"


def parse_headers(value: str, setting: str) -> dict[str, str]:
    """Read `name=value,name=value` with URL-encoded values, as OpenTelemetry writes headers.

    Raises:
        ConfigError: A pair cannot be read; the message does not repeat it.
    """
    headers: dict[str, str] = {}
    for pair in value.split(","):
        if not pair.strip():
            continue
        name, separator, raw = pair.partition("=")
        headers[check_header(name.strip(), unquote(raw.strip()), setting) if separator else ""] = unquote(raw.strip())
    if "" in headers:
        raise ConfigError(f"{setting}: write name=value, separated by commas")
    return headers


def check_header(name: str, value: str, setting: str) -> str:
    """Return the header's name in lower case.

    Raises:
        ConfigError: Name or value cannot stand in a header.
    """
    if not _HEADER_NAME.fullmatch(name) or not value.isprintable():
        raise ConfigError(f"{setting}: a header's name or value has characters that no header may have")
    return name.lower()
