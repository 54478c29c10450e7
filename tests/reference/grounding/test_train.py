from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from tools import train_grounder as train
from tools.fitting import Cases, fit_signed
from tools.perturbations import statements

from spanforge.reference.evaluation import DatasetError
from spanforge.reference.grounding.features import FEATURES
from spanforge.reference.grounding.model import Model, default_model

CLAIMS = Path(__file__).parents[1] / "evaluation" / "data" / "garden-claims.jsonl"
TEXT = (
    "The ferry from Bergen to Stavanger was not running in March 1998, because the harbour was frozen. "
    "It usually carries 240 passengers, and the crossing takes 5 hours when the weather is good. "
    "Captain Olsen said that the old ferry was slower than the new one, which Captain Berg commands."
)
OTHER = "In Lisbon the tram climbs the hill of Graca every ten minutes. Visitors buy tickets from Teresa at the kiosk."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = CLAIMS.read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "one-train.jsonl").write_text("".join(lines[::2] + lines[1:12:2]), encoding="utf-8")
    (tmp_path / "two-train.jsonl").write_text("".join(lines[1::2] + lines[:12:2]), encoding="utf-8")
    return tmp_path


def test_the_same_files_give_the_same_coefficients(folder: Path, capsys: pytest.CaptureFixture[str]):
    for name in ("first.json", "second.json"):
        assert train.main([str(folder), str(folder / name)]) == 0
    first = (folder / "first.json").read_text(encoding="utf-8")
    assert first == (folder / "second.json").read_text(encoding="utf-8")
    model = Model.from_dict(json.loads(first))
    assert all(model.weights[feature.name] * feature.sign >= 0 for feature in FEATURES)
    assert "left out one: balanced accuracy" in capsys.readouterr().out


def test_wrong_arguments_are_answered_with_the_usage(capsys: pytest.CaptureFixture[str]):
    assert train.main([]) == train.main(["a", "b", "c"]) == 2
    assert "usage:" in capsys.readouterr().err


def test_a_folder_without_training_files_says_so(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match="-train"):
        train.train(tmp_path)
    (tmp_path / "bad-train.jsonl").write_text("{}")
    with pytest.raises(DatasetError):
        train.train(tmp_path)


def test_a_feature_of_the_wrong_sign_gets_no_weight():
    rows = [[float(place % 2), float(place % 3 == 0)] for place in range(60)]
    truths = [place % 2 == 1 for place in range(60)]
    _, (helps, unused) = fit_signed(Cases(rows, truths, [1.0] * 60), [1, 0], 0.01)
    assert helps > 1
    assert abs(unused) < 0.5
    _, (refused, _) = fit_signed(Cases(rows, truths, [1.0] * 60), [-1, 0], 0.01)
    assert refused == 0.0


def test_made_statements_are_repeatable_and_of_every_kind():
    made = [list(statements(TEXT, OTHER, random.Random(seed))) for seed in (1, 1, 2, 3)]  # noqa: S311 - repeatable
    assert made[0] == made[1]
    kinds = {statement.kind: statement.supported for one in made for statement in one}
    assert {kind for kind, supported in kinds.items() if supported} == {"verbatim", "cut", "synonym"}
    assert {kind for kind, supported in kinds.items() if not supported} == {
        "negation", "opposite", "number", "unit", "date", "name", "roles", "stranger",
    }  # fmt: skip
    texts = [(statement.text in TEXT, statement) for one in made for statement in one]
    assert all(there for there, statement in texts if statement.kind == "verbatim")
    assert not any(there for there, statement in texts if not statement.supported)


def test_a_text_without_a_fit_sentence_gives_no_statements():
    assert not list(statements("Too short.", OTHER, random.Random(1)))  # noqa: S311 - repeatable


def test_coefficients_of_other_features_are_refused():
    data = default_model().to_dict()
    assert Model.from_dict(data).to_dict() == data
    with pytest.raises(ValueError, match="training"):
        Model.from_dict({**data, "weights": {"recall": 1.0}})
