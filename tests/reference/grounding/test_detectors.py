from __future__ import annotations

import pytest

from spanforge.reference.grounding.alignment import align
from spanforge.reference.grounding.contexts import PreparedContexts, sentences_of
from spanforge.reference.grounding.contradiction import conflicts
from spanforge.reference.grounding.features import WordWeights


def found(claim: str, evidence: str) -> set[str]:
    (unit,) = sentences_of(claim)
    best = align(unit, PreparedContexts.of([evidence]), WordWeights())[0]
    return {conflict.kind for conflict in conflicts(best)}


@pytest.mark.parametrize(
    ("kind", "claim", "evidence"),
    [
        ("negation", "The pump runs at night.", "The pump does not run at night."),
        ("negation", "The pump never runs at night.", "The pump runs at night."),
        ("negation", "The juice contains sugar.", "The juice is free of sugar."),
        ("opposite", "Sales of bicycles rose in spring.", "Sales of bicycles fell in spring."),
        ("opposite", "The witness was reliable in court.", "The witness was unreliable in court."),
        ("opposite", "The spider is harmless to people.", "The spider is harmful to people."),
        ("opposite", "Radiation causes a reduction of thyroid volume.", "Radiation causes increased thyroid volume."),
        ("number", "The choir has 40 singers.", "The choir has 14 singers."),
        ("unit", "The bridge is 40 miles long.", "The bridge is 40 kilometres long."),
        ("unit", "The dose is 20 grams.", "The dose is 20 mg."),
        ("date", "The harbour opened in 1931.", "The harbour opened in 1913."),
        ("date", "The fair takes place in March.", "The fair takes place in April."),
        ("name", "The office moved to Madrid last year.", "The office moved to Lisbon last year."),
        ("roles", "Norway defeated Sweden in the final.", "Sweden defeated Norway in the final."),
        ("roles", "The train runs from Kiel to Bonn.", "The train runs from Bonn to Kiel."),
    ],
)
def test_a_contradiction_is_named(kind: str, claim: str, evidence: str):
    assert kind in found(claim, evidence)


@pytest.mark.parametrize(
    ("claim", "evidence"),
    [
        ("The pump runs at night.", "The pump runs at night."),
        ("At night the pump is not running.", "The pump does not run at night."),
        ("Sales of bicycles rose in spring.", "Sales of bicycles increased in spring."),
        ("Sales did not fall in spring.", "Sales rose in spring."),
        ("The choir has 40 singers.", "The choir has forty singers."),
        ("The bridge is 40 km long.", "The bridge is 40,000 metres long."),
        ("The harbour opened on 5 May 1931.", "The harbour opened on May 5, 1931."),
        ("Sweden was defeated by Norway in the final.", "Norway defeated Sweden in the final."),
        ("Sweden and Norway share a border.", "Norway and Sweden share a border."),
        ("Not only the pump but also the fan runs.", "The pump and the fan run."),
        ("The pump runs.", "The pump runs, but the fan does not."),
    ],
)
def test_agreement_is_left_alone(claim: str, evidence: str):
    assert found(claim, evidence) == set()
