"""`spanforge demo`: ask documents, and see the answer, its sources, every stage, and where each event went."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TextIO

import structlog
import typer

from spanforge.analysis import StoredSession, stored_sessions
from spanforge.cli._output import (
    CliError,
    console,
    grounding,
    milliseconds,
    passage,
    print_json,
    print_ledger,
    score,
    visible,
)
from spanforge.cli._params import JsonOption, filled, folder, path
from spanforge.cli._timeline import print_timeline
from spanforge.reader import read_events
from spanforge.reference import Pipeline, RagFailure, RagResult
from spanforge.sdk import sf_rag

_QUESTIONS = (
    "What is the capital of France?",
    "How is a trip booked?",
    "What is the daily allowance for Lisbon?",
    "How tall is the Eiffel Tower?",
)
_FLUSH_S = 10.0


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("demo", help="Ask the bundled documents, or your own, and trace every step.")(_demo)


def _demo(
    docs: Annotated[
        Path | None, typer.Option(metavar="PATH", parser=path("--docs"), help="A file or folder of your own to ask.")
    ] = None,
    ask: Annotated[
        list[str] | None,
        typer.Option(metavar="QUESTION", parser=filled("--ask"), help="A question; may be given more than once."),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", parser=path("--out"), help="Folder the events are written to.")
    ] = Path("spanforge-demo"),
    as_json: JsonOption = False,
) -> None:
    if docs is not None and not docs.exists():
        raise CliError("--docs: there is no such file or folder")
    if docs is not None and not ask:
        raise CliError('--ask: say what to ask your documents, for example --ask "What is this about?"')
    folder("--out", out)
    files = {"events": out / "events.jsonl", "database": out / "events.db", "application log": out / "app.log"}
    out.mkdir(parents=True, exist_ok=True)
    with files["application log"].open("a", encoding="utf-8", buffering=1) as log:
        _configure_logging(log)
        _run(docs, ask or _QUESTIONS, files, as_json=as_json)


def _run(docs: Path | None, questions: Sequence[str], files: dict[str, Path], *, as_json: bool) -> None:
    sf_rag.configure(sinks=[f"jsonl:{files['events']}", f"sqlite:{files['database']}", "structlog"])
    pipeline = Pipeline()
    job = pipeline.ingest(docs) if docs else pipeline.ingest_bundled_corpus()
    if not job.chunks:
        raise CliError("--docs: nothing in there could be read; `spanforge ingest` shows why for each file")
    results = [(question, _answer(pipeline, question)) for question in questions]
    left = sf_rag.shutdown(_FLUSH_S)
    sessions = {session.session_id: session for session in stored_sessions(read_events(files["events"]))}
    if as_json:
        print_json(
            {
                "documents": job.indexed,
                "chunks": job.chunks,
                "answers": [_as_data(question, result, sessions) for question, result in results],
                "ledger": {name: ledger.to_dict() for name, ledger in sf_rag.get_status().sinks.items()},
                "files": {name: str(file) for name, file in files.items()},
            }
        )
        return
    console.print(f"{job.indexed} documents, {job.chunks} passages\n")
    for question, result in results:
        _print_answer(question, result, sessions)
    print_ledger(sf_rag.get_status().sinks, left)
    console.print("\n[bold]where the events are[/]")
    for name, file in files.items():
        console.print(f"  {name}: {visible(file)}")
    console.print(f"  next: spanforge sessions --from {visible(files['events'])}")


def _configure_logging(log: TextIO) -> None:
    """Set structlog up as an application would: what spanforge reports goes where its log goes."""
    structlog.configure(
        processors=[structlog.processors.add_log_level, structlog.processors.JSONRenderer()],
        logger_factory=structlog.WriteLoggerFactory(log),
    )


def _answer(pipeline: Pipeline, question: str) -> RagResult:
    problem = ""
    try:
        return pipeline.ask(question)
    except RagFailure as failure:
        problem = f"--ask: {failure}"
    raise CliError(problem)


def _print_answer(question: str, result: RagResult, sessions: dict[str, StoredSession]) -> None:
    console.rule(f"[bold]{visible(question)}", align="left")
    console.print(f"[bold green]{passage(result.answer)}[/]")
    status = result.status.value.replace("_", " ")
    console.print(
        f"[dim]{status} · grounding {grounding(result)} · {result.claims_supported} of {result.claims_total} claims"
        f" supported · confidence {score(result.confidence)}[/]"
    )
    for citation in result.citations_used:
        page = f", page {citation.page}" if citation.page else ""
        console.print(f"  \\[{citation.number}] {visible(citation.source)}{page}")
    session = sessions.get(result.session_id)
    if session is not None:
        console.print()
        print_timeline(session)
    console.print()


def _as_data(question: str, result: RagResult, sessions: dict[str, StoredSession]) -> dict[str, object]:
    session = sessions.get(result.session_id)
    return {
        "question": question,
        **result.model_dump(mode="json"),
        "summary": session.summary.to_dict() if session else None,
        "stages": [
            {"stage": event.event_type, "latency": milliseconds(event.payload.get("latency_ms"))}
            for event in (session.events if session else ())
        ],
    }
