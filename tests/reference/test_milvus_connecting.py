"""The embedded server is slow to answer, as on a machine whose cores are taken: opening waits for it, within bounds."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from spanforge.reference.failures import IndexUnavailable
from spanforge.reference.index import Selection, milvus


def test_an_index_opens_after_waits_that_were_too_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A twentieth of a millisecond is too short for any server; the sixteenth attempt waits for a second and a half.
    monkeypatch.setattr(milvus, "CONNECT_SECONDS", 5e-5)
    monkeypatch.setattr(milvus, "EMBEDDED_ATTEMPTS", 16)
    index = milvus.MilvusIndex(str(tmp_path / "slow.db"), 8)
    try:
        assert index.count(Selection("org")) == 0
    finally:
        index.close()


def test_a_server_that_never_answers_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(milvus, "CONNECT_SECONDS", 0.2)
    # Ten attempts, each twice as long as the one before, would outlast this test's own limit.
    monkeypatch.setattr(milvus, "EMBEDDED_ATTEMPTS", 10)
    with socket.create_server(("127.0.0.1", 0)) as mute, pytest.raises(IndexUnavailable):
        milvus.MilvusIndex(f"http://127.0.0.1:{mute.getsockname()[1]}", 8)
