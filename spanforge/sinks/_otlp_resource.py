"""What a request says of its sender: the resource, as OpenTelemetry's own variables and the source have it."""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote
from uuid import uuid4

from spanforge._version import __version__
from spanforge.config import DEFAULT_SOURCE, OtlpEnvironment
from spanforge.exceptions import ConfigError

__all__ = ["Resource"]

_SDK: Final = {
    "telemetry.sdk.name": "spanforge",
    "telemetry.sdk.language": "python",
    "telemetry.sdk.version": __version__,
}


class Resource:
    """Says who sends.

    Args:
        environment: `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`.

    Raises:
        ConfigError: The attributes cannot be read; the message does not repeat them.
    """

    def __init__(self, environment: OtlpEnvironment) -> None:
        self._given = _pairs(environment.resource)
        if environment.service_name:
            self._given["service.name"] = environment.service_name
        self.renew()

    def renew(self) -> None:
        """Be another instance, in a forked child."""
        self._instance = str(uuid4())

    def of(self, source: str) -> dict[str, str]:
        """Return the attributes for what was emitted by a source.

        A source that the application named wins over the environment, which wins over the default.

        Args:
            source: `name@version`.
        """
        name, _, version = source.partition("@")
        said = {"service.instance.id": self._instance, **self._given}
        if source != DEFAULT_SOURCE or "service.name" not in self._given:
            said["service.name"] = name or "unknown_service"
            if version:
                said["service.version"] = version
        return {**said, **_SDK}


def _pairs(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in filter(None, map(str.strip, text.split(","))):
        name, separator, value = pair.partition("=")
        if not name.strip() or not separator:
            raise ConfigError("resource: OTEL_RESOURCE_ATTRIBUTES is name=value, separated by commas")
        found[unquote(name.strip())] = unquote(value.strip())
    return found
