"""`spanforge check`: do stored sessions reach what a policy asks? A gate for CI."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from spanforge.analysis import Finding, Gate, GateVerdict, SessionFilter, check
from spanforge.analysis.prices import priced
from spanforge.cli._output import CliError, print_json, table
from spanforge.cli._params import FromOption, InputArgument, JsonOption, PolicyOption, PricesOption, one_of, path
from spanforge.cli._settings import policy_from, pricing_from
from spanforge.cli._source import sessions_from
from spanforge.cli._verdicts import junit, workflow_commands

_CODES: Final[Mapping[GateVerdict, int]] = {GateVerdict.PASS: 0, GateVerdict.FAIL: 1, GateVerdict.CANNOT_TELL: 2}
_XML: Final = b"<?xml"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(
        "check",
        help="Hold stored sessions to a policy. Exit code 0 where they pass, 1 where they fail, 2 where none can tell.",
    )(_check)


def _check(  # noqa: PLR0917  typer reads options from the signature
    source: InputArgument = None,
    given: FromOption = None,
    policy: PolicyOption = None,
    junit_file: Annotated[
        Path | None,
        typer.Option("--junit", metavar="FILE", parser=path("--junit"), help="Write what was found as JUnit XML."),
    ] = None,
    github: Annotated[bool, typer.Option("--github", help="Print annotations of GitHub too.")] = False,
    prices: PricesOption = None,
    as_json: JsonOption = False,
) -> None:
    if github and as_json:
        raise CliError("--github: annotations are no JSON; leave --json out")
    if junit_file is not None:
        _only_over_xml(junit_file)
    asked, pricing = policy_from(policy), pricing_from(prices)
    sessions = sessions_from(one_of(source, given), SessionFilter())
    gate = check([priced(session, pricing) for session in sessions], asked)
    if junit_file is not None:
        junit_file.write_bytes(junit(gate))
    if as_json:
        print_json(_as_data(gate))
    else:
        _show(gate)
    if github:
        sys.stdout.write(workflow_commands(gate))
    raise typer.Exit(_CODES[gate.verdict])


def _only_over_xml(file: Path) -> None:
    """Refuse a file whose contents somebody may want to keep: events, above all."""
    if file.is_file():
        with file.open("rb") as opened:
            head = opened.read(len(_XML))
        if head not in {b"", _XML}:
            raise CliError("--junit: a file that is no XML stands there; name another one")


def _show(gate: Gate) -> None:
    table(
        f"{gate.verdict}: {gate.sessions:,} session{'' if gate.sessions == 1 else 's'}",
        ["rule", "verdict", "#found", "wanted", "#samples", "#smallest", "#left out"],
        [
            (
                finding.rule.name,
                finding.verdict,
                finding.value,
                finding.wanted,
                finding.figure.samples,
                finding.rule.smallest_sample,
                finding.figure.left_out or "",
            )
            for finding in gate.findings
        ],
    )


def _as_data(gate: Gate) -> dict[str, Any]:
    return {
        "verdict": gate.verdict,
        "sessions": gate.sessions,
        "rules": [_rule(finding) for finding in gate.findings],
    }


def _rule(finding: Finding) -> dict[str, Any]:
    rule, figure = finding.rule, finding.figure
    return {
        "group": rule.group,
        "name": rule.name,
        "verdict": finding.verdict,
        "value": figure.value,
        "limit": rule.limit,
        "unit": rule.unit,
        "samples": figure.samples,
        "smallest_sample": rule.smallest_sample,
        "left_out": figure.left_out,
    }
