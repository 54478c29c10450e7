"""`spanforge verify FILE`: is a chained file as it was written?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spanforge.cli._output import CliError, console, print_json, visible
from spanforge.namespaces.chain import verify_lines
from spanforge.sdk import Settings

CHANGED = 1


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("verify", help="Check the hash chains of a jsonl file; exit code 1 where it was changed.")(_verify)


def _verify(
    file: Annotated[Path, typer.Argument(help="A jsonl file written with a chain.")],
    key_file: Annotated[
        Path | None, typer.Option(help="File that holds the signing key; SPANFORGE_SIGNING_KEY without it.")
    ] = None,
    expect_last: Annotated[str, typer.Option(help="Id of the event that must be the last of its chain.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    if not file.is_file():
        raise CliError("FILE: there is no such file; give a jsonl file that a sink with a chain has written")
    key = _key(key_file)
    with file.open("rb") as lines:
        verdict = verify_lines(lines, key, expect_last)
    if as_json:
        fault = verdict.first_break
        print_json(
            {
                "ok": verdict.ok,
                "events": verdict.events,
                "signatures_checked": key is not None,
                "chains": verdict.chains,
                "first_break": fault and {"line": fault.line, "fault": fault.fault, "event_id": fault.event_id},
            }
        )
    elif verdict.first_break is None:
        signed = "signatures checked" if key else "no key given: signatures were not checked"
        console.print(f"whole: {verdict.events} events in {len(verdict.chains)} chains; {signed}")
    else:
        fault = verdict.first_break
        console.print(f"line {fault.line}: {fault.fault} {visible(fault.event_id)}".rstrip())
    if not verdict.ok:
        raise typer.Exit(CHANGED)


def _key(key_file: Path | None) -> bytes | None:
    if key_file is not None:
        if not key_file.is_file():
            raise CliError("--key-file: there is no such file")
        # Editors end a file with a line; the rest of it is the key, blanks and all.
        key = key_file.read_bytes().removesuffix(b"\n").removesuffix(b"\r")
        if not key:
            raise CliError("--key-file: the file is empty; it holds the signing key")
        return key
    configured = Settings.load().signing_key
    return configured.get_secret_value().encode() if configured else None
