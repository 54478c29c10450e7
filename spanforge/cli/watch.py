"""`spanforge watch`: asks for a human as sessions end, by rules."""

from __future__ import annotations

import shlex
import signal
import sys
import threading
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from spanforge import _clock
from spanforge.analysis import Match, Watcher
from spanforge.analysis.watching import escalate
from spanforge.cli._output import CliError, console, print_json, table, visible
from spanforge.cli._params import FromOption, InputArgument, JsonOption, PolicyOption, filled, one_of, path
from spanforge.cli._settings import policy_from, settings
from spanforge.cli._source import events_from, live_path, path_from
from spanforge.exceptions import ConfigError
from spanforge.reader import follow
from spanforge.sdk import configure, sf_rag, shutdown
from spanforge.sinks.command import CommandSink
from spanforge.sinks.webhook import WebhookSink

FIRED = UNDELIVERED = 1
_LAST_S: Final = 10.0
"""For what is under way at the end: as long as a command may take."""
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(
        "watch",
        help="Escalate sessions as they end, by rules, until interrupted. Exit code 1 where an escalation was not "
        "delivered; with --once, where a rule would have fired.",
    )(_watch)


def _watch(  # noqa: PLR0917  typer reads options from the signature
    source: InputArgument = None,
    given: FromOption = None,
    policy: PolicyOption = None,
    webhook: Annotated[
        str | None,
        typer.Option(metavar="URL", parser=filled("--webhook"), help="Send each escalation there, signed."),
    ] = None,
    secret_file: Annotated[
        Path | None,
        typer.Option(
            "--webhook-secret", metavar="FILE", parser=path("--webhook-secret"), help="File that holds its secret."
        ),
    ] = None,
    allow_private: Annotated[
        bool, typer.Option("--allow-private", help="The webhook may be in a private network, or on this host.")
    ] = False,
    command: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            parser=filled("--command"),
            help="Run this for each escalation, with the event on its standard input.",
        ),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Say what would have fired on what is there, and escalate nothing.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    watcher = Watcher(policy_from(policy).alarms)
    where = one_of(source, given)
    if once:
        _try(watcher, where, as_json=as_json)
        return
    is_new = not Path(path_from(where)).exists()
    file = live_path(where)
    configure(sinks=[*settings().sinks, *_called(webhook, secret_file, command, allow_private=allow_private)])
    try:
        _follow(watcher, file, is_new=is_new, as_json=as_json)
    finally:
        left = shutdown(_LAST_S)
    if left or any(ledger.failed for ledger in sf_rag.get_status().sinks.values()):
        raise typer.Exit(UNDELIVERED)


def _follow(watcher: Watcher, file: str, *, is_new: bool, as_json: bool) -> None:
    """Escalate until a signal says to stop, which is between two events."""
    stop = _stop_at_signals()
    # Of what was not there when it was looked for, nothing may be passed over: it may be there by now.
    for event in follow(file, from_start=is_new, stop=stop):
        for match in watcher.look(event, _clock.wall_ns()):
            escalate(match)
            _say(match, as_json=as_json)
        if stop.is_set():
            return


def _stop_at_signals() -> threading.Event:
    """Return what the first signal sets; a second one ends the process as it would have without us."""
    stop = threading.Event()

    def heard(_number: int, _frame: object) -> None:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        # Another thread, since the one that was interrupted may hold the lock of what it waits for.
        threading.Thread(target=stop.set).start()

    for number in _SIGNALS:
        signal.signal(number, heard)
    return stop


def _try(watcher: Watcher, where: str | None, *, as_json: bool) -> None:
    now = _clock.wall_ns()
    matches = [match for event in events_from(where) for match in watcher.look(event, now)]
    rows = [(name, fired, held) for name, (fired, held) in watcher.counts.items()]
    if as_json:
        print_json(
            {
                "rules": [dict(zip(("name", "fired", "held_back"), row, strict=True)) for row in rows],
                "matches": [_as_data(match) for match in matches],
            }
        )
    else:
        for match in matches:
            _say(match, as_json=False)
        table("", ["rule", "#fired", "#held back"], rows)
    if matches:
        raise typer.Exit(FIRED)


def _called(
    webhook: str | None, secret_file: Path | None, command: str | None, *, allow_private: bool
) -> list[WebhookSink | CommandSink]:
    """Return the sinks that call whoever is to be called."""
    if (webhook is None) != (secret_file is None):
        raise CliError("--webhook: needs --webhook-secret, a file with what both sides sign with, and that needs it")
    problem = ""
    try:
        sinks: list[WebhookSink | CommandSink] = []
        if webhook is not None and secret_file is not None:
            sinks.append(WebhookSink(webhook, secret_file.read_bytes().strip(), allow_private=allow_private))
        if command is not None:
            sinks.append(CommandSink(shlex.split(command)))
    except ConfigError as error:
        problem = str(error)
    except ValueError:
        problem = "command: a quotation in it does not end"
    else:
        return sinks
    raise CliError(f"--{problem.replace('url:', 'webhook:').replace('secret:', 'webhook-secret:')}")


def _say(match: Match, *, as_json: bool) -> None:
    alarm = match.alarm
    if as_json:
        print_json(_as_data(match))
        sys.stdout.flush()
        return
    share = "" if alarm.share is None else f"{match.value:.0%} of the last {alarm.window_s:g} s, each "
    value = "" if alarm.share is not None else f" ({match.value:g})"
    held = f"; {match.held_back} held back before" if match.held_back else ""
    console.print(
        f"[dim]{_clock.timestamp(match.moment_ns)[:23]}[/] [bold]{visible(alarm.name)}[/] level {alarm.level}: "
        f"{share}{alarm.field} {alarm.comparison.replace('_', ' ')} {alarm.threshold:g}{value}, "
        f"session {visible(match.session_id)}{held}",
        soft_wrap=True,
    )


def _as_data(match: Match) -> dict[str, Any]:
    return {
        "rule": match.alarm.name,
        "level": match.alarm.level,
        "field": match.alarm.field,
        "value": match.value,
        "org_id": match.org_id or None,
        "session_id": match.session_id,
        "at": _clock.timestamp(match.moment_ns),
        "held_back": match.held_back,
    }
