"""The index is in step with the folder, and what was not read of a document is said wherever it is used."""

from __future__ import annotations

import json
import os
import stat
from datetime import UTC, datetime
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from support.documents import notes

from spanforge.cli import main
from spanforge.reference import Pipeline


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return notes(tmp_path)


def _sources(pipeline: Pipeline, question: str) -> set[str]:
    return {one.source for one in pipeline.retrieve(question).documents}


def test_what_is_gone_from_a_folder_is_gone_from_the_index(folder: Path) -> None:
    other = folder.parent / "other.md"
    other.write_text("The lift of hall two is new.", encoding="utf-8")
    with Pipeline(embedder=None) as pipeline:
        pipeline.ingest([folder, other])
        (folder / "deep" / "lift.md").rename(folder / "moved.md")
        job = pipeline.ingest(folder)
        assert (job.total, job.indexed, job.removed) == (2, 2, 1)
        assert _sources(pipeline, "lift") == {"moved.md", "other.md"}
        (folder / "moved.md").unlink()
        assert pipeline.ingest(folder, keep_missing=True).removed == 0
        # Naming a part of a folder says nothing of the rest.
        assert pipeline.ingest(folder / "gate.md").removed == 0
        assert len(pipeline.documents()) == 3
        assert pipeline.ingest(folder).removed == 1


def test_documents_have_the_dates_they_say_or_those_of_their_files(folder: Path) -> None:
    message = EmailMessage()
    message["Date"] = "Mon, 02 Mar 2026 10:00:00 +0000"
    message.set_content("The crane was tested.")
    (folder / "test.eml").write_bytes(bytes(message))
    with Pipeline(embedder=None) as pipeline:
        pipeline.ingest(folder)
        (crane,) = pipeline.retrieve("crane tested").documents
        (gate,) = pipeline.retrieve("gate closes").documents
    assert crane.timestamp == datetime(2026, 3, 2, 10, tzinfo=UTC)
    assert gate.timestamp is not None
    assert gate.timestamp.timestamp() == pytest.approx((folder / "gate.md").stat().st_mtime)


@pytest.mark.parametrize("said", ["9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+14:00"])
def test_a_date_at_the_end_of_all_years_spoils_no_answer(folder: Path, said: str) -> None:
    page = (
        f"<html><head><meta name='date' content='{said}'></head><body><p>The crane lifts nine tonnes.</p></body></html>"
    )
    (folder / "crane.html").write_text(page, encoding="utf-8")
    with Pipeline(embedder=None) as pipeline:
        pipeline.ingest(folder)
        (crane,) = pipeline.retrieve("crane nine tonnes").documents
    assert crane.timestamp is not None
    assert crane.timestamp.year == int(said[:4])


def test_a_file_with_a_time_beyond_all_years_has_no_date(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    look = Path.stat

    def late(self: Path, **how: Any) -> os.stat_result:
        told = list(look(self, **how))
        told[stat.ST_MTIME] = 10**12
        return os.stat_result(told)

    monkeypatch.setattr(Path, "stat", late)
    with Pipeline(embedder=None) as pipeline:
        assert pipeline.ingest(folder).indexed == 2
        (gate,) = pipeline.retrieve("gate closes").documents
    assert gate.timestamp is None


def test_an_answer_from_a_document_read_in_part_says_so(folder: Path) -> None:
    message = EmailMessage()
    message.set_content("The crane in hall two may lift nine tonnes.")
    message.add_attachment(b"\0", maintype="application", subtype="zip", filename="x.zip")
    (folder / "crane.eml").write_bytes(bytes(message))
    with Pipeline(embedder=None) as pipeline:
        for _ in ("first", "unchanged"):
            job = pipeline.ingest(folder)
            assert [(one.code, one.message) for one in job.warnings] == [
                ("PARTLY_READ", "Attachments that were not read: 1.")
            ]
        assert "PARTLY_READ" in pipeline.ask("How much may the crane in hall two lift?").warnings
        assert "PARTLY_READ" not in pipeline.ask("When does the gate close?").warnings


def test_the_command_line_lists_and_forgets(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = str(tmp_path / "home")
    assert main(["ingest", str(folder), "--home", home]) == 0
    capsys.readouterr()
    assert main(["documents", "--home", home, "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [one["document_id"].rpartition("/")[2] for one in listed] == ["lift.md", "gate.md"]
    assert main(["sources", "--home", home, "--json"]) == 0
    assert [(one["data_source_id"], one["documents"]) for one in json.loads(capsys.readouterr().out)] == [
        ("default", 2)
    ]
    assert main(["forget", str(folder / "deep"), "--home", home]) == 0
    assert "1 documents" in capsys.readouterr().out
    assert main(["forget", "nothing", "--home", home]) == 2
    assert main(["forget", "--home", home]) == 2
    assert main(["documents", "--home", home, "--source", "none"]) == 2
    assert main(["forget", "--all", "--home", home]) == 0
    assert main(["documents", "--home", home]) == 2
