"""`spanforge doctor`: what is configured, whether the sinks can be reached, and which versions are at work."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any

import typer
from pydantic import SecretStr

from spanforge import __version__
from spanforge.cli._output import print_json, table
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


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("doctor", help="Show settings, sinks and versions; exit code 1 where a sink cannot be reached.")(
        _doctor
    )


def _doctor(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    settings = Settings.load()
    report = {"settings": _settings(settings), "sinks": _sinks(), "versions": _versions()}
    if as_json:
        print_json(report)
    else:
        for title, rows in report.items():
            table(title, ["", ""], rows.items())
    if any(state != "ok" for state in report["sinks"].values()):
        raise typer.Exit(UNREACHABLE)


def _settings(settings: Settings) -> dict[str, Any]:
    return {name: _shown(getattr(settings, name)) for name in Settings.model_fields}


def _shown(value: object) -> Any:
    if isinstance(value, SecretStr):
        return "set, hidden"
    if isinstance(value, (tuple, frozenset)):
        return ", ".join(sorted(_sink_name(item) for item in value))  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]  sinks or words
    return value


def _sink_name(spec: object) -> str:
    """Name a sink without what may stand in its address."""
    text = spec if isinstance(spec, str) else type(spec).__name__
    kind, _, target = text.partition(":")
    return f"{kind}:hidden" if "@" in target or "://" in target else text


def _sinks() -> dict[str, str]:
    """Send one session through the configured sinks and see what they say."""
    try:
        sf_rag.configure()
    except SpanforgeError as error:
        return {"": str(error)}
    with sf_rag.session("spanforge doctor", retriever_name="spanforge doctor"):
        pass
    sf_rag.flush(_PROBE_S)
    return {
        name: "ok"
        if ledger.delivered and not ledger.lost and not ledger.last_error
        else ledger.last_error or "no answer"
        for name, ledger in sf_rag.get_status().sinks.items()
    }


def _versions() -> dict[str, str]:
    found = {"spanforge": __version__, "python": platform.python_version(), "platform": platform.platform()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
