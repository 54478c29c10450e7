"""`spanforge export`: stored sessions in the forms of other standards."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from spanforge.cli._output import CliError, console, print_json
from spanforge.cli._params import FromOption, SessionArgument, SessionsArgument, filled, path, place
from spanforge.cli._source import session_from, sessions_from
from spanforge.conventions.ocsf import datastore_events, retrieval_events
from spanforge.conventions.session import Session
from spanforge.conventions.transparency import transparency
from spanforge.exceptions import ConfigError, MissingExtraError, SinkWriteError
from spanforge.sinks.base import Receipt

_BATCH = 500
"""Events sent in one request."""


def register(app: typer.Typer) -> None:
    """Add the verb and its forms."""
    export = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    export.command("ocsf", help="Print a security event for each retrieval, as JSON lines.")(_ocsf)
    export.command("transparency", help="Print the retrieval-transparency record of a session.")(_transparency)
    export.command("tez", help="Write a Tezit bundle of a session, or add its record to one.")(_tez)
    export.command("otlp", help="Send sessions as span trees to an OpenTelemetry receiver.")(_otlp)
    app.add_typer(export, name="export", help="Give stored sessions out in the forms of other standards.")


def _sessions(source: str | None, wanted: list[str] | None) -> Iterator[Session]:
    stored = [session_from(source, one) for one in wanted] if wanted else sessions_from(source)
    return (Session(session.events) for session in stored)


def _ocsf(
    sessions: SessionsArgument = None,
    source: FromOption = None,
    aitf: Annotated[bool, typer.Option("--aitf", help="Class 7004, as AITF numbers it, in place of 6005.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Validate against OCSF 1.8.0; exit code 1 if wrong.")] = False,
) -> None:
    if aitf and check:
        raise CliError("--check: OCSF has another class under AITF's number; check without --aitf")
    problems_of = _validator() if check else None
    translate = retrieval_events if aitf else datastore_events
    wrong = False
    for session in _sessions(source, sessions):
        for event in translate(session):
            sys.stdout.write(json.dumps(event, allow_nan=False) + "\n")
            for problem in problems_of(event) if problems_of else ():
                wrong = True
                sys.stderr.write(f"{event['metadata']['uid']}: {problem}\n")
    if wrong:
        raise typer.Exit(1)


def _validator() -> Callable[[dict[str, Any]], Iterator[str]]:
    try:
        jsonschema: Any = import_module("jsonschema")
        schemas: Any = import_module("ocsf_json_schema")
        embedded: Any = import_module("ocsf_json_schema.embedded")
    except ImportError:
        raise MissingExtraError("--check", "ocsf") from None
    ocsf = embedded.OcsfJsonSchemaEmbedded(schemas.get_ocsf_schema(version="1.8.0"))
    schema = ocsf.get_class_schema("datastore_activity", ["ai_operation"])
    validator = jsonschema.Draft202012Validator(schema)
    # Where it is wrong and by which rule; the validator's own message repeats the value.
    return lambda event: (f"{error.json_path}: {error.validator}" for error in validator.iter_errors(event))


def _transparency(session_id: SessionArgument, source: FromOption = None) -> None:
    print_json(transparency(Session(session_from(source, session_id).events)))


def _tez(
    session_id: SessionArgument,
    out: Annotated[
        str,
        typer.Argument(
            metavar="OUT.tez", parser=place("OUT.tez"), help="A ZIP file, or a folder; added to if it is there."
        ),
    ],
    context: Annotated[
        Path | None,
        typer.Option("--context", metavar="DIR", parser=path("--context"), help="Folder with the sources' files."),
    ] = None,
    creator: Annotated[str, typer.Option("--creator", metavar="NAME", help="Who made the bundle.")] = "spanforge",
    source: FromOption = None,
) -> None:
    from spanforge.sinks.tez_bundle import write_bundle  # noqa: PLC0415  loads zipfile only when used

    if context is not None and not context.is_dir():
        raise CliError("--context: there is no such folder; give the one that holds the sources' files")
    session = Session(session_from(source, session_id).events)
    target = Path(out)
    if out.endswith("/"):
        target.mkdir(parents=True, exist_ok=True)
    write_bundle(session, target, context, creator)
    console.print(f"wrote {target.name}")


def _otlp(
    sessions: SessionsArgument = None,
    endpoint: Annotated[
        str | None,
        typer.Option(
            "--endpoint",
            metavar="URL",
            parser=filled("--endpoint"),
            show_default="as OTEL_EXPORTER_OTLP_ENDPOINT says",
            help="Base URL of the receiver.",
        ),
    ] = None,
    protocol: Annotated[
        str | None, typer.Option("--protocol", metavar="PROTOCOL", help="http/protobuf or grpc.")
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option("--header", metavar="NAME=VALUE", help="A header to send; may be repeated.")
    ] = None,
    source: FromOption = None,
) -> None:
    from spanforge.sinks.otlp import OtlpSink  # noqa: PLC0415  needs an extra

    headers = None if header is None else dict(_pair(one) for one in header)
    problem = ""
    sink: OtlpSink | None = None
    try:
        sink = OtlpSink(endpoint, protocol=protocol, headers=headers)
    except ConfigError as error:
        problem = str(error)
    if sink is None:
        given = {"endpoint": endpoint, "protocol": protocol}.get(problem.partition(":")[0])
        raise CliError(f"--{problem}" if given is not None else problem)
    events = [stage.event for session in _sessions(source, sessions) for stage in session.stages]
    delivered = failed = 0
    try:
        for start in range(0, len(events), _BATCH):
            batch = events[start : start + _BATCH]
            receipt = sink.write(batch) or Receipt(delivered=len(batch))
            delivered += receipt.delivered
            failed += receipt.failed
    except SinkWriteError as error:
        reason = error.reason
        delivered += error.delivered
    else:
        reason = ""
    finally:
        sink.close()
    console.print(
        f"sent {delivered} of {len(events)} events to {sink.name}" + (f", {failed} refused" if failed else "")
    )
    if reason:
        raise CliError(f"--endpoint: the receiver did not take the rest ({reason})")
    if failed:
        raise typer.Exit(1)


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator:
        raise CliError("--header: write NAME=VALUE")
    return name, value
