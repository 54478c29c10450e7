"""Policies and what they come to: limits, smallest samples, and which policies make no sense."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from spanforge.analysis import Finding, Gate, GateVerdict, Policy, check
from spanforge.analysis.figures import FIGURES, Figure
from spanforge.exceptions import ConfigError


def _policy(text: str) -> Policy:
    return Policy.of(tomllib.loads(text))


def _finding(name: str, figure: Figure, text: str = "") -> Finding:
    return Finding(next(rule for rule in _policy(text).rules if rule.name == name), figure)


def test_there_is_one_rule_for_each_figure() -> None:
    assert {rule.name for rule in Policy().rules} == FIGURES.keys() - {"cost_usd"}
    assert Policy.of({}) == Policy()


@pytest.mark.parametrize(
    ("name", "passing", "failing"),
    [
        ("grounding", 0.8, 0.799),
        ("latency_s", 2.999, 3.0),
        ("helpful_rate", 17 / 20, 0.8499),
        ("citation_coverage", sum([0.1] * 8), 0.79),
        ("query_processed", 1.0, 0.999),
        ("context_relevance", 4.0, 3.9),
        ("cost_usd", 0.019, 0.02),
    ],
)
def test_a_limit_is_met_by_itself_but_time_stays_under_it(name: str, passing: float, failing: float) -> None:
    text = "[thresholds]\ncost_usd = 0.02"
    assert _finding(name, Figure(passing, 20), text).verdict is GateVerdict.PASS
    assert _finding(name, Figure(failing, 20), text).verdict is GateVerdict.FAIL


def test_too_few_samples_cannot_tell_whatever_they_say() -> None:
    for value in (0.0, 1.0):
        assert _finding("grounding", Figure(value, 19)).verdict is GateVerdict.CANNOT_TELL
        assert _finding("grounding", Figure(value, 2), "smallest_sample = 2").verdict is not GateVerdict.CANNOT_TELL
    own = "[thresholds]\ngrounding = { smallest_sample = 3 }"
    assert _finding("grounding", Figure(0.9, 3), own).verdict is GateVerdict.PASS
    assert _finding("latency_s", Figure(1.0, 3), own).verdict is GateVerdict.CANNOT_TELL


def test_what_nobody_measured_is_passed_over_unless_it_is_needed() -> None:
    nothing = Figure(None, 0)
    assert _finding("helpful_rate", nothing).verdict is GateVerdict.CANNOT_TELL
    assert _finding("answer_quality", nothing).verdict is GateVerdict.NOT_MEASURED
    assert _finding("answer_quality", nothing, "[assessments]\nanswer_quality = 4").verdict is GateVerdict.CANNOT_TELL
    assert _finding("context_ranked", Figure(None, 0, 1)).verdict is GateVerdict.CANNOT_TELL


def test_one_failure_fails_and_one_doubt_leaves_the_rest_in_doubt() -> None:
    good, bad = (_finding("grounding", Figure(value, 20)) for value in (0.9, 0.1))
    doubt, absent = _finding("helpful_rate", Figure(None, 0)), _finding("answer_quality", Figure(None, 0))
    for findings, verdict in (
        ((good, absent), GateVerdict.PASS),
        ((good, doubt), GateVerdict.CANNOT_TELL),
        ((doubt, bad, good), GateVerdict.FAIL),
        ((absent,), GateVerdict.CANNOT_TELL),
    ):
        assert Gate(20, findings).verdict is verdict


def test_no_session_cannot_tell() -> None:
    assert check([]).verdict is GateVerdict.CANNOT_TELL


def test_a_figure_never_looks_like_a_limit_it_misses() -> None:
    assert (
        _finding("grounding", Figure(0.79996, 20)).sentence
        == "grounding is 0.79996 over 20 samples, wanted at least 0.8"
    )
    assert _finding("latency_s", Figure(3.0, 20)).sentence == "latency_s is 3 s over 20 samples, wanted under 3 s"


def test_false_leaves_a_rule_out() -> None:
    left = {rule.name for rule in _policy("[checks]\ncontext_ranked = false").rules}
    assert left == set(FIGURES) - {"context_ranked", "cost_usd"}


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("groundng = 1", "groundng: there is no such key; use one of smallest_sample, thresholds"),
        ('"\\u001b[2J" = 1', "'\\x1b[2J': there is no such key"),
        ("[thresholds]\ngroundng = 1", "thresholds.groundng: there is no such key; use one of grounding, latency_s"),
        ("[thresholds]\ngrounding = { least = 1 }", "thresholds.grounding.least: there is no such key"),
        ("thresholds = 3", "thresholds: make it a table"),
        ("[thresholds]\ngrounding = 1.01", "thresholds.grounding: give a number above 0 and up to 1"),
        ("[thresholds]\ngrounding = 80", "thresholds.grounding: give a number above 0 and up to 1"),
        ("[thresholds]\ngrounding = nan", "thresholds.grounding: give a number"),
        ("[thresholds]\ngrounding = true", "thresholds.grounding: give a number"),
        ("[thresholds]\nhelpful_rate = { limit = 0 }", "thresholds.helpful_rate.limit: give a number above 0"),
        ("[thresholds]\nlatency_s = 0", "thresholds.latency_s: give a number above 0 and up to 3600"),
        (f"[thresholds]\nlatency_s = {'9' * 400}", "thresholds.latency_s: give a number"),
        ('[checks]\nquery_processed = "all"', "checks.query_processed: give a number"),
        ("[assessments]\nanswer_quality = 1", "assessments.answer_quality: give a number above 1 and up to 5"),
        ("smallest_sample = 0", "smallest_sample: give a whole number from 1"),
        ("smallest_sample = 2.5", "smallest_sample: give a whole number from 1"),
        ("[checks]\nquery_processed = { smallest_sample = true }", "checks.query_processed.smallest_sample: give"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused_by_name(text: str, field: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _policy(text)
    assert str(caught.value).startswith(field)
    assert "\x1b" not in str(caught.value)


def test_a_policy_of_no_rule_is_refused() -> None:
    groups: dict[str, dict[str, bool]] = {}
    for rule in Policy().rules:
        groups.setdefault(rule.group, {})[rule.name] = False
    with pytest.raises(ConfigError, match="every rule is left out"):
        Policy.of(groups)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"a secret = = 1", "this is no TOML: mend line 1, column 3"),
        (b"\xff\xfe", "this is no TOML, or not in UTF-8"),
        (b"a = " + b"[" * 100_000, "this is no TOML"),
    ],
)
def test_a_file_that_is_no_toml_is_said_without_quoting_it(tmp_path: Path, content: bytes, sentence: str) -> None:
    file = tmp_path / "policy.toml"
    file.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        Policy.read(file)
    assert str(caught.value).startswith(sentence)
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_mark_of_the_byte_order_is_no_part_of_a_policy(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_bytes(b"\xef\xbb\xbfsmallest_sample = 3\n")
    assert Policy.read(file).rules == tuple(replace(rule, smallest_sample=3) for rule in Policy().rules)
