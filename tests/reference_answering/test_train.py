from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from spanforge import sf_rag
from spanforge.reference.answering import measure, train
from spanforge.reference.answering.answerability import FEATURE_NAMES
from spanforge.reference.answering.trials import TrialSet, read_sets
from spanforge.reference.grounding.model import Model

GARDEN = Path(__file__).parents[1] / "reference_evaluation" / "data" / "garden"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(GARDEN, tmp_path / "sets" / "halved")
    shutil.copytree(GARDEN, tmp_path / "sets" / "whole")
    questions = ("Who bred the first climbing roses?", "How heavy is a hedgehog?", "What do owls eat in July?")
    lines = [json.dumps({"_id": f"u{number}", "text": text}) for number, text in enumerate(questions)]
    (tmp_path / "sets" / "whole" / "unanswerable.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path / "sets"


def sizes(one: TrialSet) -> tuple[int, int]:
    answerable = sum(trial.answerable for trial in one.trials)
    return answerable, len(one.trials) - answerable


def test_every_question_is_asked_with_and_without_its_document_unless_a_set_brings_its_own(folder: Path) -> None:
    halved, whole = read_sets(folder, answering=True)
    queries = len((GARDEN / "queries.jsonl").read_text(encoding="utf-8").splitlines())
    assert (halved.name, whole.name) == ("halved", "whole")
    assert len(halved.trials) == 2 * queries
    assert sizes(whole) == (queries, 3)
    assert all(trial.answerable for trial in halved.trials if trial.right)
    assert any(trial.right for trial in whole.trials)


def test_no_model_is_asked_while_one_is_fitted(folder: Path) -> None:
    assert not any(trial.right for one in read_sets(folder, answering=False) for trial in one.trials)


def test_the_same_files_give_the_same_coefficients_and_refuse_no_more_than_allowed(folder: Path) -> None:
    for name in ("first.json", "second.json"):
        assert train.main([str(folder), str(folder.parent / name)]) == 0
    first = (folder.parent / "first.json").read_text(encoding="utf-8")
    assert first == (folder.parent / "second.json").read_text(encoding="utf-8")
    model = Model.from_dict(json.loads(first), FEATURE_NAMES)
    for one in read_sets(folder, answering=False):
        answerable = [trial for trial in one.trials if trial.answerable and trial.features]
        chances = [model.probability(trial.features) for trial in answerable]
        for threshold, most in (
            (model.threshold, train.MOST_REFUSED),
            (model.strict_threshold, train.MOST_REFUSED_STRICTLY),
        ):
            assert sum(chance < threshold for chance in chances) <= most * len(chances)


def test_measuring_prints_a_row_a_set_and_one_for_all(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert measure.main([str(folder)]) == 0
    rows = [line.split(" | ")[0] for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    assert [row.split(" (")[0] for row in rows[:4]] == ["| questions", "| halved", "| whole", "| all"]
    assert "| confidence" in rows


@pytest.mark.parametrize("command", [train.main, measure.main])
def test_wrong_arguments_are_answered_with_the_usage(command, capsys: pytest.CaptureFixture[str]) -> None:  # type: ignore[no-untyped-def]
    assert command([]) == command(["a", "b", "c"]) == 2
    assert "usage:" in capsys.readouterr().err


def test_a_folder_without_sets_says_so(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="test set"):
        list(read_sets(tmp_path, answering=False))


@pytest.fixture(autouse=True)
def _sinks_as_before():  # type: ignore[no-untyped-def]
    """The commands trace nothing; what runs after them in this process does again."""
    yield
    sf_rag.configure()
