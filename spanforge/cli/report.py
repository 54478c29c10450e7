"""`spanforge report`: the figures of stored sessions, for a terminal, a program or a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spanforge.analysis.figures import PERCENTILES
from spanforge.cli._baseline import changes_since, show_changes
from spanforge.cli._output import CliError, console, print_json, table, visible
from spanforge.cli._params import (
    FromOption,
    InputArgument,
    JsonOption,
    PricesOption,
    RetrieverOption,
    filled,
    one_of,
    path,
)
from spanforge.cli._settings import pricing_from
from spanforge.cli._source import figures_path
from spanforge.viewer import Filter, Overview, Report, report
from spanforge.viewer.shown import amount, dollars, duration, percent, score, stars

_MomentOption = Annotated[str | None, typer.Option(metavar="TIME", show_default=False, help="By the minute, UTC.")]


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("report", help="Count and measure stored sessions.")(_report)


def _report(  # noqa: PLR0917  typer reads options from the signature
    source: InputArgument = None,
    given: FromOption = None,
    since: _MomentOption = None,
    until: _MomentOption = None,
    retriever: RetrieverOption = None,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="Only those this model generated in.")] = None,
    tag: Annotated[str | None, typer.Option(metavar="NAME=VALUE", help="Only those with this tag.")] = None,
    group: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Group by: retriever, model, pipeline, namespace, actor, or the name of a tag."
        ),
    ] = "retriever",
    compare: Annotated[
        str | None,
        typer.Option(
            metavar="WITH",
            parser=filled("--compare"),
            show_default=False,
            help="Say what differs from a baseline: another input, SINCE..UNTIL, `before`, or NAME=VALUE of what "
            "--group takes.",
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=path("--html"),
            show_default=False,
            help="Write one page that needs no network and no server.",
        ),
    ] = None,
    prices: PricesOption = None,
    as_json: JsonOption = False,
) -> None:
    limits = {"since": since, "until": until, "retriever": retriever, "model": model, "tag": tag, "group": group}
    wanted = Filter.parse({name: text for name, text in limits.items() if text is not None})
    if wanted.problems:
        raise CliError(f"--{wanted.problems[0]}")
    store = _store(one_of(source, given), html)
    pricing = pricing_from(prices)
    made = report(store, wanted, pricing) if compare is None else changes_since(compare, store, wanted, pricing)
    if not made.progress.exists and not store.is_file():
        raise CliError(f"INPUT: nothing is stored there: {visible(made.store)}")
    if html is not None:
        html.write_text(made.html(), encoding="utf-8")
    if as_json:
        print_json(made.as_data())
    elif html is not None:
        console.print(f"{made.sessions:,} sessions in {visible(html)}")
    elif isinstance(made, Report):
        _show(made)
    else:
        show_changes(made)


def _store(given: str | None, html: Path | None) -> Path:
    store = figures_path(given)
    if html is not None and html.exists() and store.exists() and html.samefile(store):
        raise CliError("--html: the events stand there; name another file")
    return store


def _show(made: Report) -> None:
    figures, progress = made.figures, made.progress
    table(f"{amount(figures.sessions)} sessions", ["figure", "#value", "of"], _headline(figures))
    table(
        "\nTime in each stage",
        ["stage", "#sessions", *(f"#{name}" for name in PERCENTILES)],
        [
            (one.stage, amount(one.sessions), *(duration(getattr(one, name)) for name in PERCENTILES))
            for one in figures.latency
        ],
    )
    table(
        f"\nBy {visible(made.wanted.group)}",
        ["name", "#sessions", "#in error", "#±", "#empty", "#latency", "#grounding", "#tokens", "#cost", "#rating"],
        [
            (
                one.name or "none",
                amount(one.sessions),
                percent(one.error, one.sessions),
                f"{100 * one.margin:.1f}",
                percent(one.empty, one.sessions),
                duration(one.latency),
                score(one.grounding),
                amount(one.tokens),
                dollars(one.cost),
                stars(one.rating),
            )
            for one in figures.groups
        ],
    )
    if figures.failures:
        table("\nErrors by class", ["class", "#sessions"], [(name, amount(count)) for name, count in figures.failures])
    if progress.damaged:
        left = ", ".join(f"{count:,} x {reason.replace('_', ' ')}" for reason, count in progress.damaged.items())
        console.print(f"\nLeft out as damaged: {visible(left)}")
    if not progress.complete:
        console.print(
            f"\nNot whole: {progress.done:,} of {progress.total:,} {progress.unit} are added up so far; "
            "whatever writes to the store goes on with each write."
        )


def _headline(figures: Overview) -> list[tuple[str, str, str]]:
    return [
        ("in error", percent(figures.error, figures.sessions), f"{amount(figures.sessions)} sessions"),
        ("partial", percent(figures.partial, figures.sessions), f"{amount(figures.sessions)} sessions"),
        (
            "empty retrievals",
            percent(figures.empty, figures.retrieving),
            f"{amount(figures.retrieving)} that retrieved",
        ),
        (
            "top chunk changed by rerank",
            percent(figures.reordered, figures.reranked),
            f"{amount(figures.reranked)} that reranked",
        ),
        ("citation coverage", percent(figures.cited, figures.answers), f"{amount(figures.answers)} answers"),
        ("mean grounding", score(figures.grounding_mean), f"{amount(figures.measured)} measured"),
        ("mean rating, of 5", stars(figures.rating), f"{amount(figures.rated)} rated"),
        ("helpful ratings", percent(figures.helpful, figures.judged), f"{amount(figures.judged)} ratings"),
        ("escalated", percent(figures.escalated, figures.sessions), f"{amount(figures.sessions)} sessions"),
        ("tokens", amount(figures.input + figures.output), f"{amount(figures.input)} in, {amount(figures.output)} out"),
        ("cost", dollars(figures.cost), _priced(figures)),
        ("cost a session", dollars(figures.mean_cost), f"{amount(figures.priced)} sessions"),
    ]


def _priced(figures: Overview) -> str:
    unknown = figures.generating - figures.priced
    said = f"{amount(figures.priced)} of {amount(figures.generating)} sessions that asked a model"
    return f"{said}; {amount(unknown)} unknown" if unknown else said
