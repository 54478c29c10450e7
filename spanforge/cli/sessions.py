"""`spanforge sessions`: the sessions of a file or store."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from spanforge.cli._output import CliError, milliseconds, print_json, score, table
from spanforge.cli._params import FromOption, JsonOption
from spanforge.cli._source import sessions_from

_STATUSES: Final = ("ok", "partial", "error")


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("sessions", help="List stored sessions, latest last.")(_sessions)


def _sessions(
    source: FromOption = None,
    limit: Annotated[int, typer.Option(metavar="N", help="How many of the latest to show; 0 for all.", min=0)] = 50,
    status: Annotated[
        str | None, typer.Option(metavar="STATUS", help="Only those that are ok, partial or error.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    if status not in {None, *_STATUSES}:
        raise CliError(f"--status: use one of {', '.join(_STATUSES)}")
    found = [session for session in sessions_from(source) if status in {None, session.summary.status}]
    shown = found[-limit:] if limit else found
    if as_json:
        print_json([session.summary.to_dict() for session in shown])
        return
    table(
        f"{len(found)} session{'' if len(found) == 1 else 's'}"
        + (f", the latest {len(shown)}" if len(shown) < len(found) else ""),
        [
            "session",
            "started",
            "status",
            "retriever",
            "#queries",
            "#chunks",
            "#used",
            "#tokens",
            "#grounding",
            "#duration",
            "#latency",
        ],
        [
            (
                session.session_id,
                session.started_at[:19].replace("T", " "),
                session.summary.status if session.ended else f"{session.summary.status}, open",
                session.summary.retriever_name,
                session.summary.total_queries,
                session.summary.total_chunks_retrieved,
                session.summary.total_chunks_used,
                session.summary.total_input_tokens + session.summary.total_output_tokens,
                score(session.summary.avg_grounding_score),
                milliseconds(session.summary.duration_ms),
                milliseconds(session.summary.total_latency_ms),
            )
            for session in shown
        ],
    )
