"""Contradictions written for this package and used for nothing but this measurement."""

from __future__ import annotations

from collections import Counter

import pytest

from spanforge.reference.evaluation import evaluate_grounding, read_grounding
from spanforge.reference.grounding import ground_claims

KINDS = ("negation", "number", "unit", "date", "entity", "antonym")


@pytest.fixture(scope="module")
def judged(contradictions):
    pairs = read_grounding(contradictions)
    return [(pair, ground_claims([pair.claim], pair.contexts)[0]) for pair in pairs]


def test_the_set_has_twins_of_every_kind(contradictions):
    pairs = read_grounding(contradictions)
    assert len(pairs) >= 300
    assert Counter(pair.subset for pair in pairs) == dict.fromkeys(KINDS, len(pairs) // len(KINDS))
    by_contexts = Counter((pair.contexts, pair.supported) for pair in pairs)
    assert all(by_contexts[contexts, not supported] for contexts, supported in by_contexts)
    assert len({pair.claim for pair in pairs}) == len(pairs)


def test_supported_is_told_from_contradicted(contradictions):
    grounder = evaluate_grounding([contradictions]).means[0]
    assert grounder.judge == "grounder"
    assert grounder.accuracy >= 0.75


@pytest.mark.parametrize("kind", KINDS)
def test_no_kind_is_left_out(judged, kind: str):
    right = [(verdict.verdict == "supported") == pair.supported for pair, verdict in judged if pair.subset == kind]
    assert sum(right) / len(right) >= 0.7


def test_most_contradictions_are_called_so(judged):
    verdicts = Counter(verdict.verdict for pair, verdict in judged if not pair.supported)
    assert verdicts["contradicted"] > 3 * verdicts["not_found"]
