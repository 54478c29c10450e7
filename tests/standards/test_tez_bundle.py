from __future__ import annotations

import json
import os
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from support.golden import VARIANTS, Recorder, chunk, retrieved

from spanforge.namespaces.retrieval import RetrievedChunk
from spanforge.standards import tez
from spanforge.standards.tez_bundle import read_record, write_bundle
from spanforge.standards.transparency import TransparencyError, problems
from spanforge.standards.tree.session import Session

HERE = Path(__file__).parents[1]
MANIFEST = Draft202012Validator(json.loads((HERE / "support" / "tez_manifest.schema.json").read_text()))
RECORD = Draft202012Validator(json.loads((HERE / "standards" / "transparency.schema.json").read_text()))
VENDOR = "extensions/com.ragu.retrieval-transparency"
STANDARD = "extensions/tezit-retrieval-transparency"


@pytest.fixture
def session() -> Session:
    return Session(VARIANTS["rerank"]())


def contents(bundle: Path) -> dict[str, bytes]:
    if bundle.is_dir():
        return {str(f.relative_to(bundle)): f.read_bytes() for f in sorted(bundle.rglob("*")) if f.is_file()}
    with zipfile.ZipFile(bundle) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def existing(path: Path, extension: str = "", sources: tuple[str, ...] = (), **context: object) -> Path:
    """Make somebody else's bundle, as a ZIP file."""
    items = [{"id": f"doc-{n}", "type": "document", "title": s, "file": s} for n, s in enumerate(sources)]
    files = {
        "manifest.json": json.dumps({"tezit_version": "1.2", "context": {"items": items, **context}}),
        "synthesis.md": "# Theirs",
        "context/handbook-1.md": "text",
    }
    if extension:
        files[f"{extension}/manifest.json"] = "{}"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content, zipfile.ZIP_STORED)
    return path


def test_a_bundle_is_whole_and_valid(session: Session, tmp_path: Path):
    out = tmp_path / "out.tez"
    write_bundle(session, out)
    files = contents(out)
    assert set(files) == {
        "manifest.json",
        "tez.md",
        f"{VENDOR}/manifest.json",
        f"{VENDOR}/retrieval-transparency.json",
        f"{VENDOR}/content-hashes.json",
    }
    assert json.loads(files[f"{VENDOR}/content-hashes.json"]) == {f"chunk-{n}": f"sha256:{n:064x}" for n in (1, 2, 3)}
    manifest = json.loads(files["manifest.json"])
    assert list(MANIFEST.iter_errors(manifest)) == []
    assert manifest["id"] == "golden-rerank"
    assert json.loads(files[f"{VENDOR}/manifest.json"])["extension_id"] == "com.ragu.retrieval-transparency"
    extension_id, record = read_record(out)
    assert extension_id == "com.ragu.retrieval-transparency"
    assert list(RECORD.iter_errors(record)) == []
    assert problems(record, {item["id"] for item in manifest["context"]["items"]}) == []
    assert "[[docs-handbook-1.md-" in files["tez.md"].decode()


def test_the_same_session_makes_the_same_bytes_as_a_file_and_the_same_files_as_a_folder(session, tmp_path: Path):
    write_bundle(session, tmp_path / "a.tez")
    write_bundle(session, tmp_path / "b.tez")
    assert (tmp_path / "a.tez").read_bytes() == (tmp_path / "b.tez").read_bytes()
    (tmp_path / "c.tez").mkdir()
    write_bundle(session, tmp_path / "c.tez")
    assert contents(tmp_path / "c.tez") == contents(tmp_path / "a.tez")


def test_files_of_the_context_folder_come_along_with_their_digest(session: Session, tmp_path: Path):
    (tmp_path / "context" / "docs").mkdir(parents=True)
    (tmp_path / "context" / "docs" / "handbook-1.md").write_text("one")
    (tmp_path / "context" / "handbook-2.md").write_text("two")
    write_bundle(session, tmp_path / "out.tez", tmp_path / "context")
    files = contents(tmp_path / "out.tez")
    items = {i["source"]: i for i in json.loads(files["manifest.json"])["context"]["items"]}
    first, second, third = (items[f"docs/handbook-{n}.md"] for n in (1, 2, 3))
    assert files[first["file"]] == b"one"
    assert files[second["file"]] == b"two"
    assert third["file"] is None
    assert first["hash"].startswith("sha256:")
    assert list(MANIFEST.iter_errors(json.loads(files["manifest.json"]))) == []


def test_a_file_is_named_by_its_items_id_and_an_extension(tmp_path: Path):
    """Ids may hold dots: what looks like an extension in one is a part of the id (protocol, section 5.2)."""
    run = Recorder("s")
    for name in ("leave.md", "notes", "v1.2-rules.TXT", "Mixed Case.pdf"):
        (tmp_path / name).write_text(name)
    names = ("leave.md", "notes", "v1.2-rules.TXT", "Mixed Case.pdf")
    run.add(1, retrieved("s", chunks=tuple(chunk(n, 0.5, source) for n, source in enumerate(names, 1))))
    write_bundle(Session(run.events), tmp_path / "out.tez", tmp_path)
    manifest = json.loads(contents(tmp_path / "out.tez")["manifest.json"])
    for item in manifest["context"]["items"]:
        folder, _, name = item["file"].partition("/")
        item_id, _, extension = name.rpartition(".")
        assert (folder, item_id) == ("context", item["id"])
        assert extension in {"md", "txt", "pdf", "bin"}
        assert contents(tmp_path / "out.tez")[item["file"]] == item["source"].encode()


def test_a_file_written_after_it_was_read_is_named_unless_it_reads_as_it_did(tmp_path: Path):
    whole = RetrievedChunk(chunk_id="c", content_hash=sha256(b"whole").hexdigest(), score=0.5, source="whole.md")
    run = Recorder("s")
    run.add(1, retrieved("s", chunks=(whole, chunk(2, 0.4, "part.md"), chunk(3, 0.3, "old.md"))))
    for name in ("whole", "part", "old"):
        (tmp_path / f"{name}.md").write_text(name)
    os.utime(tmp_path / "old.md", (1_700_000_000, 1_700_000_000))
    assert write_bundle(Session(run.events), tmp_path / "out.tez", tmp_path) == ["part.md"]
    manifest = json.loads(contents(tmp_path / "out.tez")["manifest.json"])
    assert [item.get("metadata") for item in manifest["context"]["items"]] == [
        None,
        {"changed_after_retrieval": True},
        None,
    ]
    assert list(MANIFEST.iter_errors(manifest)) == []


def test_a_zip_keeps_its_comment(session: Session, tmp_path: Path):
    out = existing(tmp_path / "out.tez", sources=tuple(f"docs/handbook-{n}.md" for n in (1, 2, 3)))
    with zipfile.ZipFile(out, "a") as archive:
        archive.comment = b"theirs"
    write_bundle(session, out)
    with zipfile.ZipFile(out) as archive:
        assert archive.comment == b"theirs"


def test_no_file_outside_the_context_folder_comes_along(tmp_path: Path):
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "context").mkdir()
    (tmp_path / "context" / "link.txt").symlink_to(tmp_path / "secret.txt")
    run = Recorder("s")
    sources = [
        "../secret.txt",
        str(tmp_path / "secret.txt"),
        "link.txt",
        "nul\0",
        "https://example.com/a.pdf",
        "x" * 5000,
    ]
    run.add(1, retrieved("s", chunks=tuple(chunk(n, 0.5, source) for n, source in enumerate(sources, 1))))
    write_bundle(Session(run.events), tmp_path / "out.tez", tmp_path / "context")
    files = contents(tmp_path / "out.tez")
    assert not any(content == b"secret" for content in files.values())
    manifest = json.loads(files["manifest.json"])
    assert {item["file"] for item in manifest["context"]["items"]} == {None}
    assert list(MANIFEST.iter_errors(manifest)) == []


def test_an_existing_bundle_gains_the_extension_and_nothing_else_changes(session: Session, tmp_path: Path):
    sources = ("docs/handbook-1.md", "context/docs/handbook-2.md", "docs/handbook-3.md")
    out = existing(tmp_path / "out.tez", sources=sources)
    out.chmod(0o640)
    before = contents(out)
    write_bundle(session, out)
    after = contents(out)
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) == {
        f"{VENDOR}/{name}" for name in ("manifest.json", "retrieval-transparency.json", "content-hashes.json")
    }
    assert [entry["source_item_id"] for entry in read_record(out)[1]["similarity_scores"]] == [
        "doc-0",
        "doc-1",
        "doc-2",
    ]
    assert out.stat().st_mode & 0o777 == 0o640
    write_bundle(session, out)
    assert contents(out) == after


def test_the_standard_id_is_kept_where_it_is_and_never_both_are_there(session: Session, tmp_path: Path):
    out = existing(tmp_path / "out.tez", STANDARD, sources=tuple(f"docs/handbook-{n}.md" for n in (1, 2, 3)))
    write_bundle(session, out)
    files = contents(out)
    assert files[f"{STANDARD}/manifest.json"] == b"{}"
    assert f"{STANDARD}/retrieval-transparency.json" in files
    assert not any(name.startswith(VENDOR) for name in files)
    extension_id, record = read_record(out)
    assert (extension_id, record["chunks_retrieved"]) == ("tezit-retrieval-transparency", 3)


def test_an_existing_folder_is_a_bundle_too(session: Session, tmp_path: Path):
    archive = existing(tmp_path / "z", sources=tuple(f"docs/handbook-{n}.md" for n in (1, 2, 3)))
    folder = tmp_path / "out.tez"
    with zipfile.ZipFile(archive) as source:
        source.extractall(folder)
    (folder / STANDARD).mkdir(parents=True)
    before = contents(folder)
    write_bundle(session, folder)
    after = contents(folder)
    assert {name: after[name] for name in before} == before
    assert f"{STANDARD}/retrieval-transparency.json" in after


def test_a_source_that_is_not_in_the_bundle_refuses_and_leaves_it_as_it_was(session: Session, tmp_path: Path):
    out = existing(tmp_path / "out.tez", sources=("docs/handbook-1.md",))
    before = out.read_bytes()
    with pytest.raises(TransparencyError, match="not among the bundle's context items"):
        write_bundle(session, out)
    assert out.read_bytes() == before
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"text", "is not a bundle"), (None, "has no manifest.json")],
)
def test_a_file_that_is_something_else_is_left_alone(session: Session, tmp_path: Path, content, reason):
    out = tmp_path / "out.tez"
    if content is None:
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr("other", "x")
    else:
        out.write_bytes(content)
    before = out.read_bytes()
    with pytest.raises(TransparencyError, match=reason):
        write_bundle(session, out)
    assert out.read_bytes() == before


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        ("nonsense", "is not a JSON object"),
        ("[]", "is not a JSON object"),
        ("{}", "names no context items"),
        ('{"context": {"items": [{}]}}', "names no context items"),
        ('{"context": {"items": [{"id": 1}]}}', "names no context items"),
        ('{"context": []}', "names no context items"),
    ],
)
def test_a_manifest_of_some_other_shape_refuses(session: Session, tmp_path: Path, manifest: str, reason: str):
    (tmp_path / "manifest.json").write_text(manifest)
    with pytest.raises(TransparencyError, match=reason):
        write_bundle(session, tmp_path)


def test_a_failed_write_leaves_no_half_bundle(session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", full)
    with pytest.raises(OSError, match="space"):
        write_bundle(session, tmp_path / "out.tez")
    assert list(tmp_path.iterdir()) == []


def test_reading_says_what_is_missing(tmp_path: Path):
    with pytest.raises(TransparencyError, match="no bundle"):
        read_record(tmp_path / "none.tez")
    with pytest.raises(TransparencyError, match="no transparency extension"):
        read_record(existing(tmp_path / "out.tez"))


def test_a_source_may_be_called_by_anything_its_item_says():
    items = [
        {"id": "a", "file": "context/a.md", "source": "wiki", "title": "The A", "external_uri": "https://a"},
        {"id": "b", "file": None},
    ]
    ids = tez.source_ids(items)
    assert {ids[name] for name in ("a", "context/a.md", "a.md", "wiki", "The A", "https://a")} == {"a"}
    assert ids["b"] == "b"


@given(st.text(min_size=1, max_size=200))
def test_every_source_has_an_id_of_the_protocols_form_and_its_own(source: str):
    made = tez.item_id(source)
    schema = MANIFEST.schema["properties"]["context"]["properties"]["items"]["items"]["properties"]["id"]
    assert Draft202012Validator(schema).is_valid(made)
    assert tez.item_id(made) == made or len(made) > 100
    assert tez.item_id(source.swapcase()) != made or source.swapcase() == source


@given(st.text(min_size=1, max_size=200))
def test_every_session_has_a_bundle_id_of_the_protocols_form(session_id: str):
    assert Draft202012Validator(MANIFEST.schema["properties"]["id"]).is_valid(tez.bundle_id(session_id))
