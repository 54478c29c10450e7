"""What one thread reads while others write: every engine answers as if they took turns."""

from __future__ import annotations

import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from reference.conftest import OpenEngine
from reference.test_index_contract import found, row

from spanforge.reference.index import Index, Selection, lance
from spanforge.reference.index.lance import LanceIndex

ROUNDS = 6


def _come_and_go(index: Index, rounds: int = ROUNDS) -> None:
    """Write, delete and settle: with a deletion to settle, the store drops the files that readers may be reading."""
    for number in range(rounds):
        # From the second vector on: the first is the keepers', whom a guest by it would rightly come before.
        guests = [row(f"g{number}-{i}", "a guest of the harbour " * 20, i, document_id="guest") for i in range(2, 42)]
        index.upsert(guests)
        index.delete(Selection("org", document_ids=("guest",)))
        index.settle()


@pytest.mark.slow
def test_what_stays_is_found_at_every_moment_while_others_come_and_go(index: Index) -> None:
    index.upsert([row(f"k{i}", "the keeper stays", 1) for i in range(500)])
    with ThreadPoolExecutor(4) as pool:
        writing = pool.submit(_come_and_go, index)

        def read() -> int:
            reads = 0
            over = False
            while not over:
                over = writing.done()
                assert found(index, "keeper", limit=500) == {f"k{i}" for i in range(500)}
                assert found(index, seed=1, limit=1) <= {f"k{i}" for i in range(500)}
                assert index.count(Selection("org", document_ids=("doc",))) == 500
                reads += 1
            return reads

        readers = [pool.submit(read) for _ in range(3)]
        writing.result()
        assert all(reader.result() for reader in readers)


@pytest.mark.slow
def test_indexes_that_settle_at_once_leave_the_process_as_it_was(open_engine: OpenEngine) -> None:
    indexes = [open_engine(8) for _ in range(3)]
    for index in indexes:
        index.upsert([row("k", "the keeper stays", 1)])
    before = list(warnings.filters)
    with ThreadPoolExecutor(len(indexes)) as pool:
        for done in [pool.submit(_come_and_go, index) for index in indexes]:
            done.result()
    assert list(warnings.filters) == before


def _dropped_but_open() -> int:
    """Files that this process holds open and that are not in any folder any more (Linux)."""
    return sum("(deleted)" in str(entry.readlink()) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink())


@pytest.mark.skipif(sys.platform != "linux", reason="open files are read from /proc")
@pytest.mark.parametrize("reads", [False, True], ids=["writer", "reader beside it"])
def test_files_that_were_dropped_are_not_held_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, reads: bool
) -> None:
    monkeypatch.setattr(lance, "RENEWED_AFTER", 5)
    writer, reader = (LanceIndex(tmp_path, 8) for _ in range(2))
    writer.upsert([row(f"k{i}", f"keeper {i} stays", 1, document_id=f"kept{i}") for i in range(100)])
    writer.settle()
    before = _dropped_but_open()
    for number in range(40):
        name = f"guest{number % 20}"
        writer.upsert([row(f"g{number}", f"guest {number} of the harbour", 1, document_id=name)])
        writer.delete(Selection("org", document_ids=(name,), excluding_chunk_ids=(f"g{number}",)))
        assert f"g{number}" in found(reader if reads else writer, f"guest {number}", limit=500)
        writer.settle()
    assert _dropped_but_open() - before <= 4 * lance.RENEWED_AFTER
