from __future__ import annotations

from collections.abc import Mapping

import pytest

from spanforge.reference.grounding.alignment import align
from spanforge.reference.grounding.contexts import PreparedContexts, sentences_of
from spanforge.reference.grounding.contradiction import conflicts
from spanforge.reference.grounding.features import WordWeights, examine


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
        ("unit", "The plan costs $600 a year.", "The plan costs $600/month."),
        ("unit", "The rope is one metre long.", "The rope is one kilometre long."),
        ("number", "The house has two bedrooms.", "The house has three bedrooms and two bathrooms."),
        ("number", "It is the second largest lake.", "It is the third largest lake."),
        ("number", "It was used for seasons eleven and twelve.", "Seasons thirteen and fourteen used it."),
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
        ("The plan costs $600 a month.", "The plan costs $600/month."),
        ("The plan costs $600.", "The plan costs $600/month."),
        ("The hazards were 1.56 to 5.69 times higher.", "The hazards were 1\u00b756-5\u00b769 times higher."),
        ("The level was 90 versus 3.6 micrograms/ml.", "The level was 90 micrograms/ml v 3.6 micrograms/ml."),
        ("The house has three bedrooms.", "The house has three bedrooms and two bathrooms."),
        ("The pump stopped a second later.", "The pump stopped one second later."),
        ("Additionally, hot water flushes the pipes.", "Text: hot water flushes the pipes."),
        ("Aspirin is an effective treatment.", "CONCLUSIONS Our trial finds it is an effective treatment."),
        ("The harbour opened on 5 May 1931.", "The harbour opened on May 5, 1931."),
        ("Sweden was defeated by Norway in the final.", "Norway defeated Sweden in the final."),
        ("Sweden and Norway share a border.", "Norway and Sweden share a border."),
        ("Not only the pump but also the fan runs.", "The pump and the fan run."),
        ("The pump runs.", "The pump runs, but the fan does not."),
    ],
)
def test_agreement_is_left_alone(claim: str, evidence: str):
    assert found(claim, evidence) == set()


def features(claim: str, evidence: str) -> Mapping[str, float]:
    return examine(sentences_of(claim), PreparedContexts.of([evidence]), WordWeights()).features


def test_neighbouring_words_that_stay_together_are_adjacent():
    text = "The chief engineer of the old bridge met the young mayor of Bonn."
    assert features("The chief engineer met the mayor of Bonn.", text)["adjacent"] == 0.75
    assert features("The young engineer met the chief mayor.", text)["adjacent"] == 0.0


@pytest.mark.parametrize(
    ("claim", "quarters"),
    [("The pumps run at night.", 0), ("All pumps run at night.", 1), ("All pumps may run only at night.", 3)],
)
def test_each_word_of_quantity_or_certainty_that_the_evidence_lacks_counts(claim: str, quarters: int):
    assert features(claim, "The pumps run at night.")["qualified"] == quarters / 4


def test_a_contrary_beside_the_evidence_counts_where_the_word_is_not():
    text = "The water was warm in June. The lake lies in Bavaria."
    assert features("The lake in Bavaria had cold water.", text)["contrary"] == 1.0
    assert features("The lake in Bavaria had warm water.", text)["contrary"] == 0.0
