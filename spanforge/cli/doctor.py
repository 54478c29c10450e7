"""`spanforge doctor`: what is configured, whether the sinks can be reached, and which versions are at work."""

from __future__ import annotations

import platform
import re
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final
from urllib.parse import urlsplit

import typer
from pydantic import SecretStr

from spanforge import __version__
from spanforge.cli._output import print_json, table
from spanforge.cli._params import JsonOption
from spanforge.cli._settings import settings
from spanforge.exceptions import SpanforgeError
from spanforge.sdk import Settings, sf_rag

UNREACHABLE = 1
_PACKAGES = (
    "pydantic",
    "structlog",
    "python-ulid",
    "typer",
    "rich",
    "bm25s",
    "lancedb",
    "wordllama",
    "opentelemetry-sdk",
)
_PROBE_S = 5.0
_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9.+-]*://.*", re.DOTALL)
_OF_OTLP: Final = frozenset({"endpoint", "headers", "protocol", "compression", "timeout", "certificate"})


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(
        "doctor", help="Show settings, sinks and versions. Exit code 1 where a sink cannot be made or reached."
    )(_doctor)


def _doctor(as_json: JsonOption = False) -> None:
    configured = settings()
    report = {"settings": _settings(configured), "sinks": _sinks(configured), "versions": _versions()}
    if as_json:
        print_json(report)
    else:
        for title, rows in report.items():
            table(title, ["", ""], rows.items())
    if any(state != "ok" for state in report["sinks"].values()):
        raise typer.Exit(UNREACHABLE)


def _settings(configured: Settings) -> dict[str, Any]:
    return {name: _shown(getattr(configured, name)) for name in Settings.model_fields}


def _shown(value: object) -> Any:
    if isinstance(value, SecretStr):
        return "set, hidden"
    if isinstance(value, (tuple, frozenset)):
        return ", ".join(sorted(_sink_name(item) for item in value))  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]  sinks or words
    return value


def _sink_name(spec: object) -> str:
    """Name a sink with the host of its address, and without what else may stand in one: credentials, paths, queries."""
    text = spec if isinstance(spec, str) else type(spec).__name__
    shown = _ADDRESS.sub(lambda address: _host(address[0]), text)
    kind, colon, _ = text.partition(":")
    return shown if "@" not in shown else f"{kind}:hidden" if colon and "@" not in kind else "hidden"


def _host(address: str) -> str:
    """Return scheme, host and port of an address; an `@` marks what it cannot be cut at with certainty."""
    try:
        parts = urlsplit(address)
        port = "" if parts.port is None else f":{parts.port}"
    except ValueError:
        return "@"
    if not parts.hostname or "@" in parts.path + parts.query + parts.fragment:
        return "@"
    return f"{parts.scheme}://{f'[{parts.hostname}]' if ':' in parts.hostname else parts.hostname}{port}"


def _sinks(configured: Settings) -> dict[str, str]:
    """Send one session through the configured sinks and see what they say."""
    try:
        sf_rag.configure()
    except SpanforgeError as error:
        return {_variable(str(error), configured): str(error)}
    with sf_rag.session("spanforge doctor", retriever_name="spanforge doctor"):
        pass
    sf_rag.flush(_PROBE_S)
    return {
        name: "ok"
        if ledger.delivered and not ledger.lost and not ledger.last_error
        else ledger.last_error or "no answer"
        for name, ledger in sf_rag.get_status().sinks.items()
    }


def _variable(problem: str, configured: Settings) -> str:
    """Return the variable to look at for a sink that could not be made."""
    field = problem.partition(":")[0]
    own_address = any(isinstance(spec, str) and "://" in spec for spec in configured.sinks)
    if field not in _OF_OTLP or (field == "endpoint" and own_address):
        return "SPANFORGE_SINKS"
    return f"SPANFORGE_OTLP_{field.upper()} or OTEL_EXPORTER_OTLP_{field.upper()}"


def _versions() -> dict[str, str]:
    found = {"spanforge": __version__, "python": platform.python_version(), "platform": platform.platform()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
