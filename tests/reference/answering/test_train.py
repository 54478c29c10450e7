"""The recipe of the answerer's coefficients: the same files give the same models."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools import train_answers

from spanforge import sf_rag
from spanforge.reference.answering.choice import Models

TOWNS = ("Aarhus", "Brno", "Cadiz", "Delft", "Evora", "Fulda")


@pytest.fixture(autouse=True)
def _sinks_as_before() -> Iterator[None]:
    """The command traces nothing; what runs after it in this process does again."""
    yield
    sf_rag.configure()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    texts = {
        town: f"{town} has a mill. The mill of {town} was built in {1500 + n}. Its keeper in {town} is Ann Lee{n}."
        for n, town in enumerate(TOWNS)
    }
    rows = [{"_id": town, "title": town, "text": text} for town, text in texts.items()]
    asked = [
        {"text": f"When was the mill of {town} built?", "doc": town, "answers": [str(1500 + n)]}
        for n, town in enumerate(TOWNS)
    ]
    asked += [{"text": f"Why was the mill of {town} never sold?", "doc": town, "answers": []} for town in TOWNS]
    for name, lines in (("corpus", rows), ("questions", asked)):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return tmp_path


def test_the_same_files_give_the_same_models_and_figures(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = [folder / "first.json", folder / "second.json"]
    for path in written:
        assert train_answers.main([str(folder), str(path)]) == 0
    first, second = (path.read_text(encoding="utf-8") for path in written)
    assert first == second
    Models.from_dict(json.loads(first))
    figures = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in figures[:2]] == ["right", "certain and right"]
    assert figures[0] == "right: 1.000"


def test_wrong_arguments_are_answered_with_the_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert train_answers.main([]) == train_answers.main(["a", "b", "c"]) == 2
    assert "usage:" in capsys.readouterr().err
