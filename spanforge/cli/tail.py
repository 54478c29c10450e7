"""`spanforge tail`: events as they arrive."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from spanforge.analysis import is_sound
from spanforge.cli._output import console, milliseconds, utc, visible
from spanforge.cli._params import FromOption
from spanforge.cli._source import events_from, last_from, live_path
from spanforge.cli._timeline import describe, latency
from spanforge.namespaces.event import Event
from spanforge.reader import follow


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("tail", help="Print events as they arrive, until interrupted.")(_tail)


def _tail(
    source: FromOption = None,
    last: Annotated[
        int | None,
        typer.Option("-n", "--last", metavar="N", show_default="all", min=1, help="Begin with the last N events."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Print what is there and stop.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print each event as a line of JSON.")] = False,
) -> None:
    if once:
        for event in events_from(source) if last is None else last_from(source, last):
            _print(event, as_json=as_json)
        return
    for event in follow(live_path(source), from_start=last is None, last=last or 0):
        _print(event, as_json=as_json)


def _print(event: Event, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(event.encode().decode("ascii") + "\n")
        sys.stdout.flush()
        return
    if not is_sound(event):
        console.print(f"{visible(event.event_id)}: damaged")
        return
    name = event.event_type.removeprefix("llm.")
    took = latency(event)
    console.print(
        f"[dim]{visible(utc(event.timestamp)[:23])}[/] {visible(event.session_id)} [bold]{visible(name)}[/] "
        f"{visible(describe(event))} [dim]{'' if took is None else f'latency {milliseconds(took)}'}[/]"
    )
