"""What a gate found, for the machines that run it: JUnit, and annotations of GitHub."""

from __future__ import annotations

from typing import Final
from xml.etree.ElementTree import Element, SubElement, tostring

from spanforge.analysis import Gate, GateVerdict

__all__ = ["junit", "workflow_commands"]

_TITLE: Final = "spanforge check"
_ELEMENTS: Final = {GateVerdict.FAIL: "failure", GateVerdict.CANNOT_TELL: "error", GateVerdict.NOT_MEASURED: "skipped"}
_LEVELS: Final = {GateVerdict.FAIL: "error", GateVerdict.CANNOT_TELL: "warning"}


def junit(gate: Gate) -> bytes:
    """Return a JUnit document: a case for each rule, an error where it cannot tell."""
    counts = {f"{name}{'s' * (name != 'skipped')}": _count(gate, verdict) for verdict, name in _ELEMENTS.items()}
    said = {"name": _TITLE, "tests": str(len(gate.findings)), **counts}
    root = Element("testsuites", said)
    suite = SubElement(root, "testsuite", said)
    for finding in gate.findings:
        case = SubElement(suite, "testcase", classname=f"spanforge.{finding.rule.group}", name=finding.rule.name)
        if name := _ELEMENTS.get(finding.verdict):
            SubElement(case, name, message=finding.sentence)
    return tostring(root, encoding="utf-8", xml_declaration=True)


def workflow_commands(gate: Gate) -> str:
    """Return workflow commands of GitHub, one a line: for each rule that does not pass, and for the whole."""
    found = [(level, finding) for finding in gate.findings if (level := _LEVELS.get(finding.verdict))]
    lines = [_command(level, finding.sentence) for level, finding in found]
    if not lines:
        lines = [_command("notice", f"{gate.verdict} over {gate.sessions} sessions")]
    return "".join(lines)


def _count(gate: Gate, verdict: GateVerdict) -> str:
    return str(sum(finding.verdict is verdict for finding in gate.findings))


def _command(level: str, message: str) -> str:
    return f"::{level} title={_TITLE}::{message}\n"
