"""`spanforge ingest`: files and folders into the index, with a report of every file that could not be read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from spanforge.cli._home import DEFAULT_HOME, HomeOption, UserOption, open_pipeline, parse_user
from spanforge.cli._output import CliError, console, print_json, table, visible
from spanforge.cli._params import JsonOption, filled, path
from spanforge.reference import RagFailure
from spanforge.reference.models import JobStatus
from spanforge.reference.pipeline import DEFAULT_SOURCE

if TYPE_CHECKING:
    from spanforge.reference import Pipeline, User
    from spanforge.reference.models import IngestionOutput

_NAMED = 5
"""Missing paths that an error names."""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("ingest", help="Read files and folders into the index. Unchanged files cost nothing.")(_ingest)


def _ingest(  # noqa: PLR0917  typer makes the options from the signature
    paths: Annotated[list[Path], typer.Argument(metavar="PATH", parser=path("PATH"), help="Files and folders.")],
    source: Annotated[
        str, typer.Option(metavar="NAME", parser=filled("--source"), help="Data source they belong to.")
    ] = DEFAULT_SOURCE,
    home: HomeOption = DEFAULT_HOME,
    chunk_size: Annotated[int, typer.Option(metavar="N", min=1, help="Greatest length of a passage in tokens.")] = 512,
    chunk_overlap: Annotated[
        int, typer.Option(metavar="N", min=0, help="Tokens that neighbouring passages may share.")
    ] = 50,
    keep_missing: Annotated[
        bool, typer.Option("--keep-missing", help="Keep what is gone from the folders in the index.")
    ] = False,
    user: UserOption = "local",
    as_json: JsonOption = False,
) -> None:
    missing = [one for one in paths if not one.exists()]
    if missing:
        raise CliError(f"PATH: no such file or folder: {', '.join(visible(one) for one in missing[:_NAMED])}")
    if 2 * chunk_overlap > chunk_size:
        raise CliError("--chunk-overlap: must be at most half of --chunk-size")
    pipeline = open_pipeline(home, create=True)
    who = parse_user(user)
    resumed = pipeline.jobs.resume(who)
    problem = ""
    job: IngestionOutput | None = None
    try:
        job = _run(pipeline, paths, source, who, (chunk_size, chunk_overlap), keep=keep_missing, quiet=as_json)
    except RagFailure as failure:
        problem = str(failure)
    if job is None:
        raise CliError(problem)
    if as_json:
        print_json({**job.model_dump(mode="json"), "resumed": [done.job_id for done in resumed]})
    else:
        _print(job, resumed)
    if job.status is JobStatus.FAILED or not (job.indexed or job.removed):
        raise typer.Exit(1)


def _run(
    pipeline: Pipeline, paths: list[Path], source: str, user: User, cut: tuple[int, int], *, keep: bool, quiet: bool
) -> IngestionOutput:
    columns = (TextColumn("ingesting"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as bar:
        task = bar.add_task("ingesting", total=None)

        def report(job: IngestionOutput) -> None:
            bar.update(task, total=job.total, completed=job.indexed + len(job.failures))

        return pipeline.ingest(
            paths, source, chunk_size=cut[0], chunk_overlap=cut[1], keep_missing=keep, user=user, report=report
        )


def _print(job: IngestionOutput, resumed: list[IngestionOutput]) -> None:
    for done in resumed:
        console.print(f"finished an interrupted job: {done.indexed} of {done.total} documents")
    console.print(
        f"{job.indexed} of {job.total} documents found are in the index ({job.unchanged} unchanged),"
        f" with {job.chunks} passages"
    )
    if job.removed:
        console.print(f"{job.removed} that are gone from the folders were forgotten")
    if job.reason:
        console.print(f"[red]the job ended early: {job.reason}[/]")
    if job.failures:
        rows = [(Path(failure.document_id).name, failure.code, failure.message) for failure in job.failures]
        table(f"{len(rows)} could not be read", ["file", "code", "what to do"], rows)
    if job.warnings:
        rows = [(Path(warning.document_id).name, warning.message) for warning in job.warnings]
        table(f"{len(rows)} not read whole", ["file", "what is missing"], rows)
