"""What the environment configures; what of it cannot be used is named as the person who set it knows it."""

from __future__ import annotations

from collections.abc import Mapping

from spanforge.cli._output import CliError
from spanforge.exceptions import ConfigError
from spanforge.sdk import ServerSettings, Settings

__all__ = ["server_default", "server_settings", "settings"]


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
