"""`spanforge verify FILE`: are chained files as they were written?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from spanforge.cli._output import CliError, console, print_json, visible
from spanforge.cli._params import JsonOption, KeyFileOption, filled
from spanforge.cli._params import source as any_source
from spanforge.cli._settings import signing_key
from spanforge.namespaces.chain import Break, Verdict, verify_lines
from spanforge.reader import File, RemoteFile, expand, read_events, stored_lines

CHANGED = 1
_HEAD_BYTES: Final = 16
_LINE_BYTES: Final = 1 << 30
_STORE: Final = "a database, and databases have no chain; give a jsonl file that was written with one"
_TABLE: Final = "a table, and tables have no chain; give a jsonl file that was written with one"
_KINDS: Final[Mapping[bytes, str]] = {
    b"PAR1": _TABLE,
    b"SQLite format 3\0": _STORE,
    b"\x1f\x8b": "compressed, and the chain is over the lines as written; unpack it with `gzip -dk FILE`",
    b"\x28\xb5\x2f\xfd": "compressed, and the chain is over the lines as written; unpack it with `zstd -dk FILE`",
}
"""What begins with these bytes cannot be checked, and why."""
_MEANING: Final[Mapping[str, str]] = {
    "unreadable": "no JSON: somebody's doing, or torn by a crash or a full disk",
    "unsealed": "this line carries no seal: it was put in, or written before the file had a chain",
    "edited": "a field of this line was changed, added or taken away",
    "unsigned": "this line carries no signature: it was written without the key",
    "forged or wrong key": "this line was signed with another key than the one given",
    "removed or reordered": "this line does not follow the last one of its chain: one between them is missing or moved",
    "repeated": "the same line stands there twice",
    "tail cut": "no chain ends where --expect-last says",
}


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(
        "verify",
        help="Check the hash chains of jsonl files. Exit code 1 where it was changed, 2 where nothing can be checked.",
    )(_verify)


def _verify(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            parser=any_source("FILE"),
            help="A jsonl file written with a chain, or a folder or glob of such, here or behind a URL.",
        ),
    ],
    key_file: KeyFileOption = None,
    expect_last: Annotated[
        str | None,
        typer.Option(
            metavar="ID", parser=filled("--expect-last"), help="Id of the event that must be the last of its chain."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    files = _files(source)
    if Path(source).is_file() or (isinstance(files[0], RemoteFile) and len(files) == 1):
        whole = _verify_one(files[0], key_file, expect_last, as_json=as_json)
    else:
        whole = _verify_all(files, signing_key(key_file), expect_last, as_json=as_json)
    if not whole:
        raise typer.Exit(CHANGED)


def _files(source: str) -> list[File]:
    files: list[File] = []
    with suppress(FileNotFoundError):
        files = expand(source)
    if not files:
        raise CliError("FILE: there is no such file; give a jsonl file that a sink with a chain has written")
    return files


def _verify_all(files: list[File], key: bytes | None, expect_last: str | None, *, as_json: bool) -> bool:
    """Check the files of a set, rotated and compressed ones too; each has chains of its own."""
    verdicts = {file: verify_lines(_lines(file), key) for file in files if _kind(file) not in {_STORE, _TABLE}}
    last = {event_id for verdict in verdicts.values() for event_id in verdict.chains.values()}
    cut = expect_last is not None and expect_last not in last
    if not any(verdict.chains or verdict.first_break for verdict in verdicts.values()):
        raise CliError("FILE: no chain begins in these files; give jsonl files that a sink with a chain has written")
    if as_json:
        print_json([{"file": file.name, **_as_data(verdict, key)} for file, verdict in verdicts.items()])
    else:
        for file, verdict in verdicts.items():
            console.print(f"{visible(file.name)}: {_said(verdict)}", soft_wrap=True)
    if cut and not as_json:
        console.print(_MEANING["tail cut"])
    return not cut and all(verdict.ok for verdict in verdicts.values())


def _whole(verdict: Verdict) -> str:
    pruned = f", and tombstones of {verdict.pruned} more" if verdict.pruned else ""
    return f"whole: {verdict.events} events in {len(verdict.chains)} chains{pruned}"


def _said(verdict: Verdict) -> str:
    fault = verdict.first_break
    if fault is None:
        return _whole(verdict)
    return f"line {fault.line}: {fault.fault} {visible(fault.event_id)}".rstrip()


def _lines(file: File) -> Iterator[bytes]:
    # A line that is too long, or behind a cut of the compression, is missing, and the chain says so.
    return (line.data for line in stored_lines(file, _LINE_BYTES, Counter()))


def _kind(file: File) -> str:
    with file.open("rb") as lines:
        head = lines.read(_HEAD_BYTES)
    return next((kind for magic, kind in _KINDS.items() if head.startswith(magic)), "")


def _verify_one(file: File, key_file: Path | None, expect_last: str | None, *, as_json: bool) -> bool:
    if kind := _kind(file):
        raise CliError(f"FILE: this is {kind}")
    key = signing_key(key_file)
    with file.open("rb") as lines:
        verdict = verify_lines(lines, key, expect_last or "")
    nothing = "" if verdict.chains else _nothing_to_check(file)
    # Whoever names a key or a last event knows that there was a chain: to them, its absence is a change.
    if nothing and (verdict.ok or (key is None and expect_last is None)):
        raise CliError(f"FILE: {nothing}")
    if as_json:
        print_json(_as_data(verdict, key))
    elif verdict.first_break is None:
        signed = "signatures checked" if key else "no key given: signatures were not checked"
        console.print(f"{_whole(verdict)}; {signed}")
    else:
        _print(verdict.first_break, nothing)
    return verdict.ok


def _nothing_to_check(file: File) -> str:
    """Say why a file in which no chain begins has none, empty where some line of it carries a seal all the same."""
    events = read_events(file)
    if any(event.chain_id or event.checksum or event.signature or event.prev_id for event in events):
        return ""
    if events.read:
        return (
            "no line of it carries a seal: it was written without a chain, or every seal was taken out. "
            "JsonlSink(path, chain=True), or a signing key, writes one"
        )
    return "there is no event in it; give a jsonl file that a sink with a chain has written"


def _as_data(verdict: Verdict, key: bytes | None) -> dict[str, Any]:
    fault = verdict.first_break
    return {
        "ok": verdict.ok,
        "events": verdict.events,
        "pruned": verdict.pruned,
        "signatures_checked": key is not None,
        "chains": verdict.chains,
        "first_break": fault and {"line": fault.line, "fault": fault.fault, "event_id": fault.event_id},
    }


def _print(fault: Break, nothing: str) -> None:
    console.print(f"line {fault.line}: {fault.fault} {visible(fault.event_id)}".rstrip())
    console.print(f"[dim]{visible(nothing or _MEANING[fault.fault])}[/]", soft_wrap=True)
