"""What a TOML file asks of sessions, stored ones and those that end: without it, what P-KNOW-RAG asks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeAlias, cast

from spanforge.analysis.alarms import ALARMS, Alarm
from spanforge.analysis.tables import read_toml, refuse_unknown
from spanforge.exceptions import ConfigError

__all__ = ["Group", "Policy", "Rule"]

Group: TypeAlias = Literal["thresholds", "checks", "assessments"]

_SAMPLE: Final = "smallest_sample"
_WATCH: Final = "watch"
_FEWEST: Final = 20
_MOST: Final = 1_000_000_000
_HIGHEST: Final[Mapping[str, float]] = {"": 1.0, "s": 3_600.0, "of 5": 5.0, "USD": 1e9}
_CEILINGS: Final = ("s", "USD")
_LOWEST: Final[Mapping[str, float]] = {"of 5": 1.0}


@dataclass(frozen=True, slots=True)
class Rule:
    """What one figure must reach.

    Attributes:
        name: The figure, one of `spanforge.analysis.figures.FIGURES`.
        group: Which part of the policy it belongs to.
        limit: The lowest that passes; for seconds and US dollars, the least that fails.
        unit: Empty for a share or score in [0, 1]; `s` for seconds; `of 5` on the scale of 1 to 5; `USD`.
        needed: That nobody measured it leaves the policy undecided; else it is passed over.
        smallest_sample: With fewer samples nothing can be told.
    """

    name: str
    group: Group
    limit: float
    unit: str = ""
    needed: bool = False
    smallest_sample: int = _FEWEST

    def passes(self, value: float) -> bool:
        """Tell whether a figure is good enough. What floating point adds beyond nine places decides nothing."""
        value, limit = round(value, 9), round(self.limit, 9)
        return value < limit if self.is_ceiling else value >= limit

    @property
    def is_ceiling(self) -> bool:
        """True where less is better."""
        return self.unit in _CEILINGS


_RULES: Final = (
    Rule("grounding", "thresholds", 0.8, needed=True),
    Rule("latency_s", "thresholds", 3.0, "s", needed=True),
    Rule("helpful_rate", "thresholds", 0.85, needed=True),
    Rule("citation_coverage", "thresholds", 0.8, needed=True),
    Rule("query_processed", "checks", 1.0),
    Rule("documents_retrieved", "checks", 1.0),
    Rule("context_ranked", "checks", 1.0),
    Rule("response_generated", "checks", 1.0),
    Rule("grounding_verified", "checks", 1.0),
    Rule("sources_attributed", "checks", 1.0),
    Rule("answer_quality", "assessments", 4.0, "of 5"),
    Rule("context_relevance", "assessments", 4.0, "of 5"),
)
# What a session may cost nobody else can say: a policy asks for it, or nobody does.
_ASKED_FOR: Final = (Rule("cost_usd", "thresholds", math.inf, "USD"),)


@dataclass(frozen=True, slots=True)
class Policy:
    """What is asked.

    Attributes:
        rules: What stored sessions are all to reach.
        alarms: When a human is asked for.
    """

    rules: tuple[Rule, ...] = _RULES
    alarms: tuple[Alarm, ...] = ALARMS

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a policy from a TOML file; what it does not name keeps its default.

        Raises:
            ConfigError: It is not TOML, has an unknown key, or a limit that nothing or everything would meet; the
                message names the field and what would do.
            OSError: The file cannot be read.
        """
        return cls.of(read_toml(path))

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Return the policy that a parsed TOML document describes.

        Raises:
            ConfigError: As for `read`.
        """
        groups = list(dict.fromkeys(rule.group for rule in _RULES))
        refuse_unknown(given, (_SAMPLE, *groups, _WATCH))
        fewest = _sample(given.get(_SAMPLE, _FEWEST), _SAMPLE)
        rules: list[Rule] = []
        for group in groups:
            table, defaults = given.get(group, {}), [rule for rule in (*_RULES, *_ASKED_FOR) if rule.group == group]
            if not isinstance(table, dict):
                raise ConfigError(f"{group}: make it a table, [{group}]")
            limits = cast("dict[str, Any]", table)
            refuse_unknown(limits, [rule.name for rule in defaults], group)
            changed = (_changed(replace(rule, smallest_sample=fewest), limits.get(rule.name)) for rule in defaults)
            rules += [rule for rule in changed if rule is not None]
        if not rules:
            raise ConfigError("every rule is left out; ask for one at least")
        return cls(tuple(rules), _alarms(given[_WATCH]) if _WATCH in given else ALARMS)


def _alarms(given: object) -> tuple[Alarm, ...]:
    if not isinstance(given, list) or not given:
        raise ConfigError(f"{_WATCH}: make it tables, [[{_WATCH}]]")
    tables = cast("list[object]", given)
    alarms = tuple(Alarm.of(table, f"{_WATCH}[{number}]") for number, table in enumerate(tables))
    names = [alarm.name for alarm in alarms]
    if twice := next((number for number, name in enumerate(names) if name in names[:number]), None):
        raise ConfigError(f"{_WATCH}[{twice}].name: there is one of this name; give each another")
    return alarms


def _changed(rule: Rule, given: Any) -> Rule | None:
    """Return a rule as a policy wants it, None where it is left out. What is asked for by name is needed."""
    field = f"{rule.group}.{rule.name}"
    if given is None or given is False:
        return rule if given is None and math.isfinite(rule.limit) else None
    if not isinstance(given, dict):
        return replace(rule, limit=_limit(rule, given, field), needed=True)
    parts = cast("dict[str, Any]", given)
    refuse_unknown(parts, ("limit", _SAMPLE), field)
    return replace(
        rule,
        limit=_limit(rule, parts.get("limit", rule.limit), f"{field}.limit"),
        smallest_sample=_sample(parts.get(_SAMPLE, rule.smallest_sample), f"{field}.{_SAMPLE}"),
        needed=True,
    )


def _limit(rule: Rule, given: Any, field: str) -> float:
    low, high = _LOWEST.get(rule.unit, 0.0), _HIGHEST[rule.unit]
    # Compared before it is a float: TOML's whole numbers have no bound.
    if isinstance(given, bool) or not isinstance(given, int | float) or not low < given <= high:
        raise ConfigError(f"{field}: give a number above {low:g} and up to {high:g}; false leaves the rule out")
    return float(given)


def _sample(given: Any, field: str) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= _MOST:
        raise ConfigError(f"{field}: give a whole number from 1 to {_MOST}")
    return given
