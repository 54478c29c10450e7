from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys

import pytest

from spanforge.reference.evaluation import read_grounding
from spanforge.reference.grounding import ground_claims, verify_answer
from spanforge.reference.grounding.contexts import sentences_of
from spanforge.reference.grounding.features import FEATURE_NAMES

FRANCE = "France is a country in Europe. Paris is the capital of France and its largest city."
BRIDGE = "The bridge was opened in 1932. It carries eight lanes of traffic and two railway tracks."


def test_the_protocols_first_scenario_is_fully_grounded():
    grounding = verify_answer("Paris [1]", [FRANCE, BRIDGE], "What is the capital of France?")
    assert (grounding.score, grounding.status, grounding.claims_total) == (1.0, "grounded", 1)
    verdict = grounding.verdicts[0]
    assert verdict.context_index == 0
    assert verdict.evidence is not None
    assert FRANCE[slice(*verdict.evidence)] == "Paris is the capital of France and its largest city."


def test_a_wrong_short_answer_is_not_supported():
    assert verify_answer("Lyon", [FRANCE, BRIDGE], "What is the capital of France?").score == 0.0


def test_a_bare_yes_claims_what_was_asked():
    assert verify_answer("Yes [1].", [FRANCE], "Is Paris the capital of France?").score == 1.0
    assert verify_answer("Yes.", [BRIDGE], "Is Paris the capital of France?").score == 0.0


def test_each_claim_has_its_verdict_and_the_context_that_decides_it():
    claims = [
        "The bridge carries eight lanes of traffic.",
        "The bridge was opened in 1923.",
        "Penguins breed in colonies on the ice.",
    ]
    verdicts = ground_claims(claims, [FRANCE, BRIDGE])
    assert [verdict.verdict for verdict in verdicts] == ["supported", "contradicted", "not_found"]
    assert [verdict.context_index for verdict in verdicts] == [1, 1, None]
    assert [verdict.claim_index for verdict in verdicts] == [0, 1, 2]


@pytest.mark.parametrize(
    ("answer", "status", "score"),
    [
        ("I don't have information on that.", "no_claims", None),
        ("", "no_claims", None),
        ("The bridge was opened in 1932.", "grounded", 1.0),
        ("The bridge was opened in 1932. Penguins breed in colonies.", "partially_grounded", 0.5),
        ("Penguins breed in colonies.", "ungrounded", 0.0),
    ],
)
def test_the_status_follows_the_share_of_supported_claims(answer: str, status: str, score: float | None):
    grounding = verify_answer(answer, [BRIDGE])
    assert (grounding.status, grounding.score) == (status, score)


def test_without_contexts_nothing_is_supported():
    grounding = verify_answer("The bridge was opened in 1932.", [])
    assert grounding.score == 0.0
    assert grounding.verdicts[0].verdict == "not_found"


def test_what_stands_in_a_context_is_supported_by_it(contradictions):
    contexts = [context for pair in read_grounding(contradictions) for context in pair.contexts]
    sentences = [(context, sentence.text) for context in dict.fromkeys(contexts) for sentence in sentences_of(context)]
    unsupported = [text for context, text in sentences if ground_claims([text], [context])[0].verdict != "supported"]
    assert not unsupported


def test_verdicts_do_not_depend_on_the_order_of_contexts():
    claim = "The bridge carries eight lanes of traffic."
    forward, backward = (ground_claims([claim], contexts)[0] for contexts in ([FRANCE, BRIDGE], [BRIDGE, FRANCE]))
    assert forward.probability == backward.probability
    assert (forward.context_index, backward.context_index) == (1, 0)


def test_features_are_named_and_between_zero_and_one():
    features = ground_claims(["The bridge was not opened in 1923 by Sydney."], [BRIDGE])[0].features
    assert tuple(features) == FEATURE_NAMES
    assert all(0.0 <= value <= 1.0 for value in features.values())


def test_no_text_is_in_the_representation():
    grounding = verify_answer("The zanzibar canary sings [1].", ["The zanzibar canary sings."], "What of the canary?")
    shown = repr(grounding) + json.dumps([dict(verdict.features) for verdict in grounding.verdicts])
    assert "canary" not in shown.lower()
    assert "zanzibar" not in shown.lower()


def test_verdicts_are_frozen():
    verdict = ground_claims(["A bridge."], [BRIDGE])[0]
    with pytest.raises(dataclasses.FrozenInstanceError):
        verdict.probability = 1.0  # type: ignore[misc]
    with pytest.raises(TypeError):
        verdict.features["recall"] = 1.0  # type: ignore[index]


_PROGRAM = """
import sys
from spanforge.reference.evaluation import read_grounding
from spanforge.reference.grounding import ground_claims
for pair in read_grounding(sys.argv[1])[:80]:
    print(repr(ground_claims([pair.claim], pair.contexts)))
"""


def test_the_same_input_gives_the_same_bits_in_every_process(contradictions):
    outputs = {
        subprocess.run(
            [sys.executable, "-c", _PROGRAM, str(contradictions)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
