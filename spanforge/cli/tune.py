"""`spanforge tune`: fusion weight, rerank and top_k of the reference RAG, by what people said of its answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final

import typer

from spanforge._hashing import Hasher, utf8
from spanforge.analysis import SessionFilter, StoredSession
from spanforge.cli._home import DEFAULT_HOME, HomeOption, UserOption, open_pipeline, parse_user
from spanforge.cli._output import CliError, console, print_json, table, visible
from spanforge.cli._params import FromOption, InputArgument, JsonOption, one_of, path
from spanforge.cli._settings import settings
from spanforge.cli._source import sessions_from
from spanforge.namespaces.stages import QUERY
from spanforge.reference import Pipeline, RagFailure, User
from spanforge.reference.evaluation import (
    FEWEST,
    Choice,
    DatasetError,
    Judged,
    TuningReport,
    judged_question,
    judgements_of,
    read_judgements,
    read_queries,
    tune,
)

_BIAS: Final = (
    "Feedback judges only passages that were shown, and the settings in use chose those. What nobody judged is left "
    "out of nDCG, neither relevant nor irrelevant; of a question that --qrels judges it is irrelevant."
)


@dataclass(slots=True)
class _Asked:
    """A question in every way it is written, what is known of its passages, and whether the rest is irrelevant."""

    texts: list[str] = field(default_factory=list[str], repr=False)
    grades: dict[str, int] = field(default_factory=dict[str, int])
    complete: bool = False


def _share(given: object) -> float:
    with suppress(ValueError):
        if 0 <= (share := float(str(given))) <= 1:
            return share
    raise CliError("--weight: a share from 0 (words alone) to 1 (vectors alone)")


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(
        "tune",
        help="Choose retrieval settings by judged passages. Fusion weight, rerank and top_k of the reference RAG are "
        "chosen and their gain is measured by cross-validation. Exit code 2 where too few are judged to tell.",
    )(_tune)


def _tune(  # noqa: PLR0917  typer makes the options from the signature
    questions: Annotated[
        Path,
        typer.Option(metavar="FILE", parser=path("--questions"), help="What was asked: JSON lines with text, and _id."),
    ],
    source: InputArgument = None,
    given: FromOption = None,
    qrels: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=path("--qrels"),
            show_default=False,
            help="Judgements made directly: _id of a question, chunk or document, and grade, parted by tabs. With "
            "them, events are read only where INPUT names some.",
        ),
    ] = None,
    home: HomeOption = DEFAULT_HOME,
    user: UserOption = "local",
    weight: Annotated[
        float | None,
        typer.Option(metavar="SHARE", parser=_share, show_default="the embedder's", help="Fusion weight in use."),
    ] = None,
    top_k: Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="top_k in use.")] = 10,
    rerank: Annotated[bool, typer.Option(help="Whether a rerank is in use.")] = True,
    as_json: JsonOption = False,
) -> None:
    asker, events = parse_user(user), one_of(source, given)
    asked = _questions(questions, qrels)
    if events is not None or qrels is None:
        _add_feedback(asked, sessions_from(events, SessionFilter(rated=True)))
    known = [one for one in asked if one.grades]
    with open_pipeline(home) as pipeline:
        present = Choice(pipeline.retriever.dense_weight if weight is None else weight, rerank, top_k)
        telling = _telling(pipeline, known, present, asker)
    if len(telling) < FEWEST:
        raise CliError(
            f"--questions: {len(telling)} of {len(known)} judged questions tell one order of passages from another, "
            f"and {FEWEST} are needed, each with a passage that helped and one that did not, both in the index: rate "
            "passages, by metadata={'relevance': {chunk_id: grade}} of sf_feedback.submit, or judge them by --qrels"
        )
    report = tune(telling, present)
    if as_json:
        print_json({"given": len(asked), "judged": len(known), **report.to_dict()})
    else:
        _show(report, f"of {len(known)} judged and {len(asked)} given", home)


def _questions(file: Path, qrels: Path | None) -> list[_Asked]:
    """Return each question once, however it is written, with the judgements that were made directly."""
    asked: dict[str, _Asked] = {}
    option, problem = "--questions", ""
    try:
        queries = read_queries(file)
        option = "--qrels"
        grades = {} if qrels is None else read_judgements(qrels, queries)
        for name, text in queries.items():
            one = asked.setdefault(" ".join(text.split()).casefold(), _Asked())
            one.texts.append(text)
            one.grades |= grades.get(name, {})
            one.complete |= name in grades
    except DatasetError as error:
        problem = str(error)
    if problem:
        raise CliError(f"{option}: {problem}")
    return list(asked.values())


def _add_feedback(asked: Iterable[_Asked], sessions: Sequence[StoredSession]) -> None:
    """Add what feedback says of passages that nobody judged directly."""
    if not sessions:
        raise CliError("--from: nobody rated a run there; sf_feedback.submit records what people think of an answer")
    key = settings().hash_key
    hashers = [Hasher(), *([Hasher(utf8(key.get_secret_value()))] if key else [])]
    queries = [event.payload for one in sessions for event in one.events if event.event_type == QUERY]
    rated, said, known = {query["query_hash"] for query in queries}, judgements_of(sessions, hashers), False
    for one in asked:
        for digest in rated & {by.digest(text) for text in one.texts for by in hashers}:
            one.grades = said.get(digest, {}) | one.grades
            known = True
    if not known:
        keys = {str(query.get("query_hash_key_id") or "") for query in queries} - {by.key_id for by in hashers}
        remedy = f", and set SPANFORGE_HASH_KEY to the key whose id is {' or '.join(sorted(keys))}" if keys else ""
        raise CliError(
            f"--questions: none of them has the digest of one of the {len(rated)} questions that were rated; write "
            f"each exactly as it was asked{remedy}"
        )


def _telling(pipeline: Pipeline, known: Iterable[_Asked], present: Choice, user: User) -> list[Judged]:
    problem = ""
    try:
        found = [
            judged_question(pipeline, one.texts[0], one.grades, present, user, complete=one.complete) for one in known
        ]
        return [one for one in found if one is not None]
    except RagFailure as failure:
        problem = str(failure)
    raise CliError(problem)


def _show(report: TuningReport, counted: str, home: Path) -> None:
    rows = (("in use", report.present, report.before), ("chosen", report.chosen, report.after))
    table(
        "settings, measured on the fold held out",
        ["", "#fusion weight", "rerank", "#top_k", *(f"#{name}" for name in report.gain)],
        [
            (
                name,
                f"{one.dense_weight:g}",
                "yes" if one.rerank else "no",
                one.top_k,
                *map("{:.4f}".format, of.values()),
            )
            for name, one, of in rows
        ],
    )
    agreeing, folds = sum(choice == report.chosen for choice in report.folds), len(report.folds)
    gain = (f"{name} {lead.difference:+.4f} [{lead.low:+.3f}, {lead.high:+.3f}]" for name, lead in report.gain.items())
    recall = (f"{value:.3f} at {top_k}" for top_k, value in report.recall_by_top_k.items())
    console.print(
        f"\nGain: {visible(', '.join(gain))}\n"
        f"Questions: {report.questions} tell one order of passages from another, {counted}\n"
        f"Folds: {folds}, each measured by what the others chose, which was what all together choose in {agreeing}\n"
        f"Recall of that by top_k, nothing held out: {', '.join(recall)}\n\n"
        f"[bold]{visible(_verdict(report, home))}[/]\n\n{visible(_BIAS)}",
        soft_wrap=True,
    )


def _verdict(report: TuningReport, home: Path) -> str:
    new = report.chosen
    if not report.is_gain:
        return "No gain that this many questions could show: keep what is in use."
    return (
        f"A gain. In Python: Pipeline({str(home)!r}, retrieval=RetrievalSettings(dense_weight={new.dense_weight:g})) "
        f"and ask(question, top_k={new.top_k}, rerank={new.rerank}), with RetrievalSettings from "
        "spanforge.reference.retrieving.retriever. A server takes such a pipeline by create_app(make_pipeline=…), and "
        f'"topK": {new.top_k}, "rerank": {str(new.rerank).lower()} in requests. `spanforge ask` takes --top-k alone.'
    )
