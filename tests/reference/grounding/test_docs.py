"""The page about grounding says what the code says."""

from __future__ import annotations

from pathlib import Path

from spanforge.reference.grounding.features import FEATURES
from spanforge.reference.grounding.model import default_model

PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "grounding.md"


def test_the_page_lists_every_feature_with_its_weight_and_meaning():
    page = PAGE.read_text(encoding="utf-8")
    model = default_model()
    for feature in FEATURES:
        assert f"| `{feature.name}` | {model.weights[feature.name]} | {feature.meaning} |" in page
    assert f"the intercept is {model.intercept} and the threshold {model.threshold}." in page


def test_no_weight_is_used_against_its_meaning():
    weights = default_model().weights
    assert all(weights[feature.name] * feature.sign > 0 for feature in FEATURES)
