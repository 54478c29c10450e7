"""`spanforge doctor`: what is configured, whether the sinks can be reached, and what else decides about delivery.

It leaves nothing behind: sinks are made, and what they write to is looked at. Only `--send` sends a session.
"""

from __future__ import annotations

import os
import platform
import re
import socket
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import SplitResult, urlsplit

import typer
from pydantic import SecretStr

from spanforge import __version__
from spanforge.cli._output import print_json, table
from spanforge.cli._params import JsonOption
from spanforge.cli._settings import settings
from spanforge.config import otlp_environment
from spanforge.exceptions import SpanforgeError
from spanforge.sdk import Settings, sf_rag
from spanforge.sinks import from_spec

UNREACHABLE = 1
_TAG: Final = "spanforge_doctor"
_OTLP: Final = "http://localhost:4318"
_ON_DISK: Final = frozenset({"jsonl", "sqlite", "spool", "ocsf", "ocsf-aitf"})
_HOSTS: Final = {
    "eventlet": "call eventlet.monkey_patch() before the first event; patched after it, events are lost",
    "gevent": "patch early; patched after the import is fine",
    "joblib": "its multiprocessing backend kills its workers: flush() at the end of each task, or use loky",
}
"""Packages that change how a process ends, or what a thread is."""
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
        "doctor",
        help="Show settings, sinks, hosts and versions. Nothing is written without --send. "
        "Exit code 1 where a sink cannot be made or reached.",
    )(_doctor)


def _doctor(
    send: Annotated[
        bool, typer.Option("--send", help=f"Send a session through the sinks, marked with the tag {_TAG}=true.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    configured = settings()
    report = {
        "settings": _settings(configured),
        "sinks": _sent(configured) if send else _looked_at(configured),
        "hosts": _hosts(configured),
        "versions": _versions(),
    }
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


def _sent(configured: Settings) -> dict[str, str]:
    """Send one session through the configured sinks and see what they say."""
    try:
        sf_rag.configure()
    except SpanforgeError as error:
        return {_variable(str(error), configured): str(error)}
    with sf_rag.bind(**{_TAG: "true"}), sf_rag.session("spanforge doctor", retriever_name="spanforge doctor"):
        pass
    sf_rag.flush(_PROBE_S)
    return {
        name: "ok"
        if ledger.delivered and not ledger.lost and not ledger.last_error
        else ledger.last_error or "no answer"
        for name, ledger in sf_rag.get_status().sinks.items()
    }


def _looked_at(configured: Settings) -> dict[str, str]:
    """Make each sink, look at what it would write to, and close it."""
    found: dict[str, str] = {}
    for spec in ("memory",) if configured.sandbox else configured.sinks:
        try:
            sink = from_spec(spec, signing_key=configured.signing_key)
            found[sink.name] = _target(str(spec))
            sink.close()
        except SpanforgeError as error:
            found[_variable(str(error), configured)] = str(error)
    return found


def _target(spec: str) -> str:
    """Say whether what a sink writes to is there: a file that can be written, somebody who listens."""
    kind, _, rest = spec.partition(":")
    path, _, receiver = rest.partition("+")
    if kind in _ON_DISK and (state := _writable(Path(path))) != "ok":
        return state
    if kind == "kafka":
        return _listening(urlsplit(f"//{rest}"), 9092)
    if "otlp" in {kind, receiver.partition(":")[0]}:
        written = _ADDRESS.search(rest)
        said = otlp_environment()
        return _listening(urlsplit(written[0] if written else said.traces_endpoint or said.endpoint or _OTLP), 4318)
    return "ok"


def _listening(address: SplitResult, port: int) -> str:
    ports = {"http": 80, "https": 443}
    try:
        place = address.hostname or "localhost", address.port or ports.get(address.scheme, port)
        with socket.create_connection(place, _PROBE_S):
            return "ok"
    except (OSError, ValueError) as error:
        return type(error).__name__


def _writable(path: Path) -> str:
    """Tell whether a file could be written, without making it or its folders."""
    there = next(each for each in (path.absolute(), *path.absolute().parents) if each.exists())
    if there != path.absolute() and not there.is_dir():
        return "NotADirectoryError"
    return "ok" if os.access(there, os.W_OK) else "PermissionError"


def _hosts(configured: Settings) -> dict[str, str]:
    """Say what of the process that runs the SDK decides about delivery."""
    found = {
        "SIGTERM": "delivers first (handle_sigterm)"
        if configured.handle_sigterm
        else "not handled: it ends a process without delivery; set handle_sigterm, or call shutdown()"
    }
    return found | {name: advice for name, advice in _HOSTS.items() if find_spec(name) is not None}


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
