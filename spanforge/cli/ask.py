"""`spanforge ask`: a question to the documents in the index, answered with its sources, or honestly not at all."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from spanforge.cli._home import (
    DEFAULT_HOME,
    BaseUrlOption,
    HomeOption,
    ModelOption,
    UserOption,
    open_pipeline,
    parse_user,
)
from spanforge.cli._output import CliError, console, grounding, milliseconds, passage, print_json, score, table, visible
from spanforge.cli._params import JsonOption, filled
from spanforge.exceptions import ConfigError
from spanforge.reference import RagFailure, RagResult
from spanforge.sdk import sf_rag

if TYPE_CHECKING:
    from collections.abc import Iterator

_FLUSH_S = 5.0


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("ask", help="Ask the documents in the index.")(_ask)


def _ask(  # noqa: PLR0917  typer makes the options from the signature
    question: Annotated[
        str, typer.Argument(metavar="QUESTION", parser=filled("QUESTION"), help="What you want to know.")
    ],
    home: HomeOption = DEFAULT_HOME,
    source: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", parser=filled("--source"), help="Narrow to a data source; may be repeated."),
    ] = None,
    top_k: Annotated[int, typer.Option(metavar="N", min=1, help="Passages to retrieve.")] = 10,
    user: UserOption = "local",
    trace: Annotated[
        str | None,
        typer.Option(
            metavar="SINK",
            parser=filled("--trace"),
            show_default="jsonl:events.jsonl in --home",
            help="Where the events go, such as sqlite:events.db.",
        ),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse rather than answer beyond the documents.")] = False,
    stream: Annotated[bool, typer.Option("--stream", help="Show the answer as it is written.")] = False,
    model: ModelOption = "",
    base_url: BaseUrlOption = None,
    history: Annotated[
        list[str] | None,
        typer.Option(
            metavar="QUESTION",
            parser=filled("--history"),
            help="What was asked before, so that a follow-up is understood; may be repeated.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    with open_pipeline(home, model=model, base_url=base_url) as pipeline:
        _send_to(trace or f"jsonl:{home / 'events.jsonl'}")
        problem = ""
        result: RagResult | None = None
        try:
            pieces = pipeline.stream(
                question,
                data_sources=source or None,
                top_k=top_k,
                strict=strict,
                user=parse_user(user),
                history=history or (),
            )
            result = _shown(pieces, show=stream and not as_json)
        except RagFailure as failure:
            problem = str(failure)
    sf_rag.flush(_FLUSH_S)
    if result is None:
        raise CliError(problem)
    if as_json:
        print_json(result.model_dump(mode="json"))
    else:
        _print(result, answer=not stream or strict)


def _send_to(sink: str) -> None:
    problem = ""
    try:
        sf_rag.configure(sinks=[sink])
    except ConfigError as error:
        problem = str(error)
    if problem:
        raise CliError(f"--trace: {problem}")


def _shown(pieces: Iterator[str | RagResult], *, show: bool) -> RagResult | None:
    """Read to the end, showing the pieces as they come."""
    result: RagResult | None = None
    for piece in pieces:
        if isinstance(piece, RagResult):
            result = piece
        elif show:
            sys.stdout.write("".join(c for c in piece if c.isprintable() or c in "\n\t"))
            sys.stdout.flush()
    return result


def _print(result: RagResult, *, answer: bool) -> None:
    console.print(f"[bold]{passage(result.answer)}[/]" if answer else "")
    for citation in result.citations_used:
        page = f", page {citation.page}" if citation.page else ""
        console.print(f"  \\[{citation.number}] {visible(citation.source)}{page}")
    console.print(
        f"[dim]{result.status.value.replace('_', ' ')} · grounding {grounding(result)} · confidence "
        f"{score(result.confidence)} · {milliseconds(result.latencies_ms.get('total'))} · session "
        f"{result.session_id}[/]"
    )
    for claim in result.ungrounded_claims:
        console.print(f"[yellow]not supported:[/] {passage(claim)}")
    if result.gaps and not result.citations_used:
        console.print(f"[dim]not in these documents: {visible(', '.join(result.gaps))}[/]")
    if result.warnings:
        table("warnings", ["code"], [(code,) for code in result.warnings])
