"""`spanforge sessions`: the sessions of a file or store."""

from __future__ import annotations

from typing import Annotated

import typer

from spanforge.analysis import SessionFilter
from spanforge.cli._output import CliError, milliseconds, print_json, score, table, utc
from spanforge.cli._params import FromOption, JsonOption, RetrieverOption, SinceOption, StatusOption, UntilOption
from spanforge.cli._source import latest_from


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("sessions", help="List stored sessions, latest last.")(_sessions)


def _sessions(  # noqa: PLR0917  typer reads options from the signature
    source: FromOption = None,
    limit: Annotated[int, typer.Option(metavar="N", help="How many of the latest to show; 0 for all.", min=0)] = 50,
    status: StatusOption = None,
    retriever: RetrieverOption = None,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="Only those this model generated in.")] = None,
    tag: Annotated[str | None, typer.Option(metavar="NAME=VALUE", help="Only those with this tag.")] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    grounding_below: Annotated[
        float | None, typer.Option(metavar="SCORE", help="Only those whose mean grounding is lower.", min=0, max=1)
    ] = None,
    rated: Annotated[
        bool | None, typer.Option("--rated/--unrated", help="Only those with a rating, or without one.")
    ] = None,
    escalated: Annotated[
        bool | None, typer.Option("--escalated/--not-escalated", help="Only those a human was asked for, or not.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    wanted = SessionFilter(
        status=status,
        retriever=retriever,
        model=model,
        tag=_pair(tag),
        since=since,
        until=until,
        grounding_below=grounding_below,
        rated=rated,
        escalated=escalated,
    )
    count, shown = latest_from(source, limit, wanted)
    if as_json:
        print_json([session.summary.to_dict() for session in shown])
        return
    table(
        f"{count} session{'' if count == 1 else 's'}" + (f", the latest {len(shown)}" if len(shown) < count else ""),
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
                utc(session.started_at)[:19],
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


def _pair(tag: str | None) -> tuple[str, str] | None:
    if tag is None:
        return None
    name, equals, value = tag.partition("=")
    if not equals:
        raise CliError("--tag: write NAME=VALUE")
    return name, value
