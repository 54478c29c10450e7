"""What the environment configures; what of it cannot be used is named as the person who set it knows it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from spanforge.analysis import Policy
from spanforge.analysis.prices import Pricing, read_prices
from spanforge.cli._output import CliError
from spanforge.exceptions import ConfigError
from spanforge.sdk import ServerSettings, Settings

__all__ = ["policy_from", "pricing_from", "server_default", "server_settings", "settings", "signing_key"]

_PUBLIC: Final = "genai-prices"


def settings() -> Settings:
    """Return what the environment configures.

    Raises:
        CliError: A variable has a value that cannot be used; the message names the variable.
    """
    problem = ""
    try:
        return Settings.load()
    except ConfigError as error:
        problem = _named(error, "SPANFORGE_")
    raise CliError(problem)


def signing_key(key_file: Path | None) -> bytes | None:
    """Return the signing key: that of a file, else the one the environment configures, None where there is none.

    Raises:
        CliError: The file is not there, or empty.
    """
    if key_file is None:
        configured = settings().signing_key
        return configured.get_secret_value().encode() if configured else None
    if not key_file.is_file():
        raise CliError("--key-file: there is no such file")
    # Editors end a file with a line; the rest of it is the key, blanks and all.
    key = key_file.read_bytes().removesuffix(b"\n").removesuffix(b"\r")
    if not key:
        raise CliError("--key-file: the file is empty; it holds the signing key")
    return key


def policy_from(file: Path | None) -> Policy:
    """Return what a file asks, or the service levels without one."""
    problem = ""
    try:
        return Policy() if file is None else Policy.read(file)
    except ConfigError as error:
        problem = str(error)
    raise CliError(f"--policy: {problem}")


def pricing_from(given: str | None) -> Pricing | None:
    """Return the prices of a file, or of the public lists; None without either."""
    if given is None:
        return None
    if given == _PUBLIC:
        return _listed
    problem = ""
    try:
        return read_prices(Path(given))
    except FileNotFoundError:
        problem = f"there is no such file; name one, or {_PUBLIC} for the public lists"
    except OSError as error:
        problem = f"it cannot be read: {error.strerror}"
    except ConfigError as error:
        problem = str(error)
    raise CliError(f"--prices: {problem}")


def _listed(payload: Mapping[str, Any]) -> float | None:
    from spanforge.integrations.prices import estimate  # noqa: PLC0415  needs the extra

    prompt, output = payload.get("prompt_tokens"), payload.get("output_tokens")
    if prompt is None or output is None:
        return None
    found = estimate(
        payload.get("response_model") or payload.get("model", ""),
        prompt_tokens=prompt,
        output_tokens=output,
        provider=payload.get("provider"),
        cached_tokens=payload.get("cached_tokens"),
        cache_write_tokens=payload.get("cache_write_tokens"),
    )
    return found.get("cost_usd")


def server_settings(options: Mapping[str, object]) -> ServerSettings:
    """Return what a server is told by options and, where they are silent, by the environment.

    Raises:
        CliError: A value cannot be used; the message names the option or the variable.
    """
    given = {name: value for name, value in options.items() if value is not None}
    problem = ""
    try:
        return ServerSettings.load(given)
    except ConfigError as error:
        field, _, remedy = str(error).partition(": ")
        problem = f"--{field}: {remedy}" if field in given else _named(error, "SPANFORGE_SERVER_")
    raise CliError(problem)


def server_default(setting: str) -> str:
    """Say what a setting of the server is where its option is left out."""
    return f"SPANFORGE_SERVER_{setting.upper()}, else {ServerSettings.model_fields[setting].default}"


def _named(error: ConfigError, prefix: str) -> str:
    field, _, remedy = str(error).partition(": ")
    return f"{field} ({prefix}{field.upper()}): {remedy}"
