"""`spanforge eval`: how good retrieval, grounding and answers are, measured on test sets of your own or public ones."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spanforge.cli._home import DEFAULT_HOME, BaseUrlOption, HomeOption, ModelOption, open_pipeline
from spanforge.cli._output import CliError, console, print_json, score, table
from spanforge.cli._params import JsonOption, filled, path
from spanforge.reference import DataSource, Document, Pipeline
from spanforge.reference.answering import open_answerer
from spanforge.reference.evaluation import (
    AnswerReport,
    AnswerSet,
    DatasetError,
    GroundingReport,
    RetrievalDataset,
    RetrievalReport,
    evaluate_answers,
    evaluate_grounding,
    evaluate_retrieval,
    read_answer_set,
    read_retrieval,
)
from spanforge.reference.failures import NoResults, RagFailure
from spanforge.reference.pipeline import DEFAULT_SOURCE
from spanforge.reference.retrieving.retriever import RetrievalSettings
from spanforge.sdk import sf_rag

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from spanforge.reference.evaluation import Estimate

_DEPTH = 4
"""Passages asked for a document wanted, since several may be of one document."""
_SEARCHES = ("pipeline", "without rerank", "words alone", "vectors alone")


def register(app: typer.Typer) -> None:
    """Add the verb and its three subjects."""
    group = typer.Typer(help="Measure quality on test sets.", no_args_is_help=True)
    group.command("retrieval", help="nDCG@10, P@5, Recall@10 and MRR on folders in BEIR layout.")(_retrieval)
    group.command("grounding", help="Accuracy, AUC and calibration on files of claims and contexts.")(_grounding)
    group.command("answers", help="Right, refused, wrong and made-up answers, and what confidence is worth.")(_answers)
    app.add_typer(group, name="eval")


def _retrieval(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR", parser=path("DIR"), help="Folders with corpus.jsonl, queries.jsonl and qrels.tsv."
        ),
    ],
    embedder: Annotated[
        str, typer.Option(metavar="NAME", parser=filled("--embedder"), help="wordllama, or onnx:DIR.")
    ] = "wordllama",
    as_json: JsonOption = False,
) -> None:
    measured = [_measure(_read(folder), embedder) for folder in folders]
    if as_json:
        print_json([{name: report.to_dict() for name, report in reports.items()} for reports in measured])
        return
    for reports in measured:
        _print_retrieval(reports)
    if len(measured) > 1:
        rows = [
            (name, f"{sum(_ndcg(reports[name]) for reports in measured) / len(measured):.4f}") for name in _SEARCHES
        ]
        table(f"mean nDCG@10 over {len(measured)} sets", ["search", "#nDCG@10"], rows)


def _read(folder: Path) -> RetrievalDataset:
    problem = ""
    try:
        return read_retrieval(folder)
    except DatasetError as error:
        problem = str(error)
    raise CliError(problem)


def _measure(dataset: RetrievalDataset, embedder: str) -> dict[str, RetrievalReport]:
    problem = ""
    try:
        documents = [
            Document(document_id=name, text=text or " ", media_type="text/plain")
            for name, text in dataset.corpus.items()
        ]
        hybrid, words = Pipeline(embedder=embedder), Pipeline(embedder=None)
        hybrid.ingest(documents)
        words.ingest(documents)
        vectors = Pipeline(index=hybrid.index, embedder=embedder, retrieval=RetrievalSettings(dense_weight=1.0))
        vectors.put_source(DataSource(data_source_id=DEFAULT_SOURCE))
        plain = (hybrid, words, vectors)
        searches = (_search(hybrid, rerank=True), *(_search(pipeline, rerank=False) for pipeline in plain))
        return {name: evaluate_retrieval(dataset, search) for name, search in zip(_SEARCHES, searches, strict=True)}
    except RagFailure as failure:
        problem = str(failure)
    raise CliError(problem)


def _search(pipeline: Pipeline, *, rerank: bool) -> Callable[[str, int], Sequence[str]]:
    def search(query: str, wanted: int) -> list[str]:
        try:
            found = pipeline.retrieve(query, top_k=wanted * _DEPTH, rerank=rerank).documents
        except NoResults:
            return []
        return list(dict.fromkeys(document.document_id for document in found))[:wanted]

    return search


def _ndcg(report: RetrievalReport) -> float:
    return report.metrics["ndcg@10"].value


def _interval(estimate: Estimate) -> str:
    if math.isnan(estimate.value):
        return "-"
    return f"{estimate.value:.4f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def _print_retrieval(reports: dict[str, RetrievalReport]) -> None:
    first = next(iter(reports.values()))
    metrics = list(first.metrics)
    table(
        f"{first.dataset}: {first.documents} documents, {first.queries} queries",
        ["search", *(f"#{name}" for name in metrics)],
        [(name, *(_interval(report.metrics[key]) for key in metrics)) for name, report in reports.items()],
    )
    pipeline, *others = _SEARCHES
    compared = ((other, reports[pipeline].compared_with(reports[other])) for other in others)
    table(
        f"{first.dataset}: the pipeline's lead, question by question",
        ["over", "#ndcg@10", "#p value"],
        [
            (other, f"{lead.difference:+.4f} [{lead.low:+.3f}, {lead.high:+.3f}]", score(lead.p_value))
            for other, lead in compared
        ],
    )
    console.print()


def _grounding(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE", parser=path("FILE"), help="Files of {claim, contexts, supported}, one a line."),
    ],
    as_json: JsonOption = False,
) -> None:
    problem = ""
    report: GroundingReport | None = None
    try:
        report = evaluate_grounding(files)
    except DatasetError as error:
        problem = str(error)
    if report is None:
        raise CliError(problem)
    if as_json:
        print_json(report.to_dict())
        return
    for part in report.parts:
        table(
            f"{part.name}: {part.pairs} pairs, {part.supported_share:.0%} supported",
            ["judge", "#balanced accuracy", "#accuracy", "#AUC", "#calibration error"],
            [
                (
                    judge.judge,
                    _interval(judge.balanced_accuracy),
                    _interval(judge.accuracy),
                    _interval(judge.auc),
                    score(judge.calibration_error),
                )
                for judge in part.judges
            ],
        )
        console.print()
    table(
        "mean over the files",
        ["judge", "#balanced accuracy", "#accuracy", "#AUC"],
        [
            (mean.judge, f"{mean.balanced_accuracy:.4f}", f"{mean.accuracy:.4f}", f"{mean.auc:.4f}")
            for mean in report.means
        ],
    )


def _answers(  # noqa: PLR0917  typer makes the options from the signature
    place: Annotated[
        Path,
        typer.Argument(
            metavar="DIR|FILE",
            parser=path("DIR|FILE"),
            help="A folder with corpus.jsonl and questions.jsonl, or queries.jsonl and qrels.tsv; or your own "
            "questions about the index in --home: CSV or JSON lines with question and answer.",
        ),
    ],
    home: HomeOption = DEFAULT_HOME,
    remove_half: Annotated[
        bool, typer.Option("--remove-half", help="Leave out every second document that answers a question.")
    ] = False,
    model: ModelOption = "",
    base_url: BaseUrlOption = None,
    as_json: JsonOption = False,
) -> None:
    sf_rag.configure(sinks=[])
    problem = ""
    report: AnswerReport | None = None
    try:
        given = read_answer_set(place)
        given = given.without_half() if remove_half else given
        with _asked_of(given, home, model, base_url) as pipeline:
            report = evaluate_answers(given, pipeline.ask)
    except (DatasetError, RagFailure) as failure:
        problem = str(failure)
    if report is None:
        raise CliError(problem)
    if as_json:
        print_json(report.to_dict())
        return
    table(
        f"{report.name}: {report.questions} questions, {report.answerable} of them answerable",
        ["measure", "#value"],
        [(name, _interval(estimate)) for name, estimate in report.metrics.items()],
    )


def _asked_of(given: AnswerSet, home: Path, model: str, base_url: str | None) -> Pipeline:
    if not given.corpus:
        return open_pipeline(home, model=model, base_url=base_url)
    pipeline = Pipeline(answerer=open_answerer(model, base_url))
    pipeline.ingest(
        [Document(document_id=name, text=text or " ", media_type="text/plain") for name, text in given.corpus.items()]
    )
    return pipeline
