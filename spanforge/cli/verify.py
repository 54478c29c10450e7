"""`spanforge verify FILE`: is a chained file as it was written?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from spanforge.cli._output import CliError, console, print_json, visible
from spanforge.cli._params import JsonOption, filled, path
from spanforge.cli._settings import settings
from spanforge.namespaces.chain import Break, Verdict, verify_lines
from spanforge.reader import read_events

CHANGED = 1
_HEAD_BYTES: Final = 16
_KINDS: Final[Mapping[bytes, str]] = {
    b"SQLite format 3\0": "a database, and databases have no chain; give a jsonl file that was written with one",
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
        help="Check the hash chains of a jsonl file. Exit code 1 where it was changed, 2 where nothing can be checked.",
    )(_verify)


def _verify(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", parser=path("FILE"), help="A jsonl file written with a chain.")
    ],
    key_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=path("--key-file"),
            show_default="the key in SPANFORGE_SIGNING_KEY",
            help="File that holds the signing key.",
        ),
    ] = None,
    expect_last: Annotated[
        str | None,
        typer.Option(
            metavar="ID", parser=filled("--expect-last"), help="Id of the event that must be the last of its chain."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    if not file.is_file():
        raise CliError("FILE: there is no such file; give a jsonl file that a sink with a chain has written")
    with file.open("rb") as lines:
        head = lines.read(_HEAD_BYTES)
        for magic, kind in _KINDS.items():
            if head.startswith(magic):
                raise CliError(f"FILE: this is {kind}")
        key = _key(key_file)
        lines.seek(0)
        verdict = verify_lines(lines, key, expect_last or "")
    nothing = "" if verdict.chains else _nothing_to_check(file)
    # Whoever names a key or a last event knows that there was a chain: to them, its absence is a change.
    if nothing and (verdict.ok or (key is None and expect_last is None)):
        raise CliError(f"FILE: {nothing}")
    if as_json:
        print_json(_as_data(verdict, key))
    elif verdict.first_break is None:
        signed = "signatures checked" if key else "no key given: signatures were not checked"
        console.print(f"whole: {verdict.events} events in {len(verdict.chains)} chains; {signed}")
    else:
        _print(verdict.first_break, nothing)
    if not verdict.ok:
        raise typer.Exit(CHANGED)


def _nothing_to_check(file: Path) -> str:
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
        "signatures_checked": key is not None,
        "chains": verdict.chains,
        "first_break": fault and {"line": fault.line, "fault": fault.fault, "event_id": fault.event_id},
    }


def _print(fault: Break, nothing: str) -> None:
    console.print(f"line {fault.line}: {fault.fault} {visible(fault.event_id)}".rstrip())
    console.print(f"[dim]{visible(nothing or _MEANING[fault.fault])}[/]", soft_wrap=True)


def _key(key_file: Path | None) -> bytes | None:
    if key_file is not None:
        if not key_file.is_file():
            raise CliError("--key-file: there is no such file")
        # Editors end a file with a line; the rest of it is the key, blanks and all.
        key = key_file.read_bytes().removesuffix(b"\n").removesuffix(b"\r")
        if not key:
            raise CliError("--key-file: the file is empty; it holds the signing key")
        return key
    configured = settings().signing_key
    return configured.get_secret_value().encode() if configured else None
