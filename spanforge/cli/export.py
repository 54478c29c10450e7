"""`spanforge export`: stored sessions in the forms of other standards."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spanforge.analysis import SessionFilter
from spanforge.cli._output import CliError, console, print_json, visible
from spanforge.cli._params import (
    FromOption,
    RetrieverOption,
    SessionArgument,
    SessionsArgument,
    SinceOption,
    StatusOption,
    UntilOption,
    filled,
    path,
    place,
)
from spanforge.cli._source import session_from, sessions_from
from spanforge.exceptions import ConfigError, MissingExtraError, SinkWriteError
from spanforge.namespaces.event import Event
from spanforge.sinks.base import Receipt
from spanforge.standards.ocsf import security_events
from spanforge.standards.ocsf_aitf import retrieval_events
from spanforge.standards.transparency import transparency
from spanforge.standards.tree.session import Session

if TYPE_CHECKING:
    from spanforge.sinks.otlp import OtlpSink

_BATCH = 500
"""Events sent in one request."""


def register(app: typer.Typer) -> None:
    """Add the verb and its forms."""
    export = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    export.command("ocsf", help="Print the security events of sessions, as JSON lines.")(_ocsf)
    export.command("transparency", help="Print the retrieval-transparency record of a session.")(_transparency)
    export.command("tez", help="Write a Tezit bundle of a session, or add its record to one.")(_tez)
    export.command("otlp", help="Send sessions as span trees to an OpenTelemetry receiver.")(_otlp)
    app.add_typer(export, name="export", help="Give stored sessions out in the forms of other standards.")


def _sessions(source: str | None, named: list[str] | None, wanted: SessionFilter) -> Iterator[Session]:
    if named and wanted != SessionFilter():
        raise CliError("SESSION: name sessions or narrow all of them, not both")
    stored = [session_from(source, one) for one in named] if named else sessions_from(source, wanted)
    return (Session(session.events) for session in stored)


def _ocsf(
    sessions: SessionsArgument = None,
    source: FromOption = None,
    aitf: Annotated[bool, typer.Option("--aitf", help="Class 7004, as AITF numbers it, in place of 6005.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Validate against OCSF 1.8.0; exit code 1 if wrong.")] = False,
    *,
    status: StatusOption = None,
    retriever: RetrieverOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
) -> None:
    if aitf and check:
        raise CliError("--check: OCSF has another class under AITF's number; check without --aitf")
    problems_of = _validator() if check else None
    translate = retrieval_events if aitf else security_events
    wrong = False
    wanted = SessionFilter(status=status, retriever=retriever, since=since, until=until)
    for session in _sessions(source, sessions, wanted):
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

    @cache
    def validator(class_uid: int, profiles: tuple[str, ...]) -> Any:
        schema = ocsf.get_class_schema(ocsf.lookup_class_name_from_uid(class_uid), list(profiles))
        return jsonschema.Draft202012Validator(schema)

    def problems(event: dict[str, Any]) -> Iterator[str]:
        profiles = tuple(event["metadata"].get("profiles", ()))
        try:
            found = validator(event["class_uid"], profiles).iter_errors(event)
        except ValueError:
            return iter(("$.class_uid: no such class",))
        # Where it is wrong and by which rule; the validator's own message repeats the value.
        return (f"{error.json_path}: {error.validator}" for error in found)

    return problems


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
    from spanforge.standards.tez_bundle import write_bundle  # noqa: PLC0415  loads zipfile only when used

    if context is not None and not context.is_dir():
        raise CliError("--context: there is no such folder; give the one that holds the sources' files")
    session = Session(session_from(source, session_id).events)
    target = Path(out)
    if out.endswith("/"):
        target.mkdir(parents=True, exist_ok=True)
    changed = write_bundle(session, target, context, creator)
    console.print(f"wrote {visible(target.name)}")
    for name in changed:
        console.print(f"changed since it was retrieved: {visible(name)}")


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
    *,
    signals: Annotated[
        str,
        typer.Option(
            "--signals",
            metavar="SIGNALS",
            help="What to send beside spans: logs, metrics or both with a comma. Metrics that were sent already, "
            "or are sent again, count twice.",
        ),
    ] = "",
    source: FromOption = None,
    status: StatusOption = None,
    retriever: RetrieverOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
) -> None:
    from spanforge.sinks.otlp import OtlpSink  # noqa: PLC0415  needs an extra

    headers = None if header is None else dict(_pair(one) for one in header)
    problem = ""
    sink: OtlpSink | None = None
    try:
        sink = OtlpSink(endpoint, protocol=protocol, headers=headers, signals=_signals(signals))
    except ConfigError as error:
        problem = str(error)
    if sink is None:
        given = {"endpoint": endpoint, "protocol": protocol, "signals": signals or None}.get(problem.partition(":")[0])
        raise CliError(f"--{problem}" if given is not None else problem)
    wanted = SessionFilter(status=status, retriever=retriever, since=since, until=until)
    events = [stage.event for session in _sessions(source, sessions, wanted) for stage in session.stages]
    sent, reason = _send(sink, events)
    said = f"sent {sent.delivered} of {len(events)} events to {sink.name}"
    if sent.dropped:
        said += f", {sum(sent.dropped.values())} kept back ({', '.join(sorted(sent.dropped))})"
    console.print(said + (f", {sent.failed} refused" if sent.failed else ""))
    if reason:
        raise CliError(f"--endpoint: the receiver did not take the rest ({reason})")
    points = sink.metric_points
    if points is not None and points.lost:
        raise CliError(f"--signals: the receiver did not take the metrics ({points.last_error})")
    if sent.failed:
        raise typer.Exit(1)


def _send(sink: OtlpSink, events: list[Event]) -> tuple[Receipt, str]:
    """Send the events; return what became of them, and why not all were taken."""
    totals: Counter[str] = Counter()
    dropped: Counter[str] = Counter()
    reason = ""
    try:
        for start in range(0, len(events), _BATCH):
            batch = events[start : start + _BATCH]
            if (meter := sink.meter) is not None:
                for event in batch:
                    meter.record(event.event_type, event.payload)
            receipt = sink.write(batch) or Receipt(delivered=len(batch))
            totals.update(delivered=receipt.delivered, failed=receipt.failed)
            dropped.update(receipt.dropped)
    except SinkWriteError as error:
        reason = error.reason
        totals["delivered"] += error.delivered
        dropped.update(error.dropped)
    finally:
        sink.close()
    return Receipt(delivered=totals["delivered"], failed=totals["failed"], dropped=dropped), reason


def _signals(text: str) -> set[str]:
    return {name.strip() for name in text.split(",") if name.strip()} - {"traces"}


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator:
        raise CliError("--header: write NAME=VALUE")
    return name, value
