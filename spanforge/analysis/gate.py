"""Whether sessions reach what a policy asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from spanforge.analysis.figures import Figure, figures
from spanforge.analysis.policy import Policy, Rule
from spanforge.sdk import StoredSession

__all__ = ["Finding", "Gate", "GateVerdict", "check"]


class GateVerdict(StrEnum):
    """What a rule, or all of them, came to."""

    PASS = "pass"  # noqa: S105  a verdict and no password
    FAIL = "fail"
    CANNOT_TELL = "cannot tell"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule, and what was found."""

    rule: Rule
    figure: Figure

    @property
    def verdict(self) -> GateVerdict:
        """What it came to."""
        value, samples, left_out = self.figure
        if not samples + left_out and not self.rule.needed:
            return GateVerdict.NOT_MEASURED
        if value is None or samples < self.rule.smallest_sample:
            return GateVerdict.CANNOT_TELL
        return GateVerdict.PASS if self.rule.passes(value) else GateVerdict.FAIL

    @property
    def value(self) -> str:
        """The figure with as many digits as keep it from looking like the limit; `-` where there is none."""
        value, limit = self.figure.value, self.rule.limit
        if value is None:
            return "-"
        shown = [f"{value:.{digits}g}" for digits in range(3, 11)]
        return self._with_unit(next((text for text in shown if float(text) != limit), shown[0]))

    @property
    def wanted(self) -> str:
        """The limit in words."""
        return f"{'under' if self.rule.is_ceiling else 'at least'} {self._with_unit(f'{self.rule.limit:g}')}"

    @property
    def sentence(self) -> str:
        """All of it in one sentence."""
        said = f"{self.rule.name} is {self.value} over {self.figure.samples} samples, wanted {self.wanted}"
        if self.verdict is GateVerdict.CANNOT_TELL:
            said += f" over {self.rule.smallest_sample} or more"
        return f"{said}; {self.figure.left_out} left out" if self.figure.left_out else said

    def _with_unit(self, number: str) -> str:
        return f"{number} {self.rule.unit}".rstrip()


@dataclass(frozen=True, slots=True)
class Gate:
    """What a policy came to over some sessions."""

    sessions: int
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> GateVerdict:
        """Fail where one rule fails; else what one rule cannot tell, all together cannot; nor can no rule at all."""
        found = {finding.verdict for finding in self.findings}
        order = (GateVerdict.FAIL, GateVerdict.CANNOT_TELL, GateVerdict.PASS)
        return next((verdict for verdict in order if verdict in found), GateVerdict.CANNOT_TELL)


def check(sessions: Sequence[StoredSession], policy: Policy | None = None) -> Gate:
    """Hold sessions to a policy.

    Args:
        sessions: As `stored_sessions` returns them.
        policy: What is asked; the defaults without one.
    """
    found = figures(sessions)
    rules = (policy or Policy()).rules
    return Gate(len(sessions), tuple(Finding(rule, found[rule.name]) for rule in rules))
