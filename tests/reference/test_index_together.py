"""What one thread reads while others write: every engine answers as if they took turns."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor

from reference.conftest import OpenEngine
from reference.test_index_contract import found, row

from spanforge.reference.index import Index, Selection

ROUNDS = 6


def _come_and_go(index: Index, rounds: int = ROUNDS) -> None:
    """Write, delete and settle: with a deletion to settle, the store drops the files that readers may be reading."""
    for number in range(rounds):
        index.upsert([row(f"g{number}-{i}", "a guest of the harbour " * 20, i, document_id="guest") for i in range(40)])
        index.delete(Selection("org", document_ids=("guest",)))
        index.settle()


def test_what_stays_is_found_at_every_moment_while_others_come_and_go(index: Index) -> None:
    index.upsert([row(f"k{i}", "the keeper stays", 1) for i in range(500)])
    with ThreadPoolExecutor(4) as pool:
        writing = pool.submit(_come_and_go, index)

        def read() -> int:
            reads = 0
            while not writing.done():
                assert found(index, "keeper", limit=500) == {f"k{i}" for i in range(500)}
                assert found(index, seed=1, limit=1) <= {f"k{i}" for i in range(500)}
                assert index.count(Selection("org", document_ids=("doc",))) == 500
                reads += 1
            return reads

        readers = [pool.submit(read) for _ in range(3)]
        writing.result()
        assert all(reader.result() for reader in readers)


def test_indexes_that_settle_at_once_leave_the_process_as_it_was(open_engine: OpenEngine) -> None:
    indexes = [open_engine(8) for _ in range(3)]
    for index in indexes:
        index.upsert([row("k", "the keeper stays", 1)])
    before = list(warnings.filters)
    with ThreadPoolExecutor(len(indexes)) as pool:
        for done in [pool.submit(_come_and_go, index) for index in indexes]:
            done.result()
    assert list(warnings.filters) == before
