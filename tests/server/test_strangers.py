"""Strangers who connect and say nothing: they get little time, take nobody's place, and leave little in the log."""

from __future__ import annotations

import logging
import socket
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

import httpx
import pytest
from support.besieged import besieged
from support.serving import serving

from spanforge.cli._listening import listen
from spanforge.server.logs import Seldom

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE_S = 30.0


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with serving(tmp_path_factory.mktemp("impatient"), SPANFORGE_SERVER_HEADER_TIMEOUT_S="0.3") as port:
        yield port


def _connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)


def test_what_is_listened_on_sends_small_answers_at_once() -> None:
    with listen("127.0.0.1", 0) as listening, _connected(listening.getsockname()[1]):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.proto == socket.IPPROTO_TCP  # what asyncio asks before it sets the option itself
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize("said", [b"", b"GET /healthz HTTP/1.1\r\nHost: "])
@pytest.mark.parametrize("before", [0, 1])
def test_a_head_that_does_not_come_ends_the_connection(impatient: int, said: bytes, before: int) -> None:
    with _connected(impatient) as stranger:
        for _ in range(before):
            stranger.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            answer = b""
            while not answer.endswith(b"}"):
                answer += stranger.recv(1 << 16)
        stranger.sendall(said)
        assert stranger.recv(1 << 16) == b""


def test_the_longest_silent_connection_makes_room(tmp_path: Path) -> None:
    with serving(tmp_path, SPANFORGE_SERVER_MAX_CONNECTIONS="4") as port, ExitStack() as strangers:
        silent = [strangers.enter_context(_connected(port)) for _ in range(6)]
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S) as client:
            assert client.get("/healthz").status_code == 200
        with pytest.raises((ConnectionResetError, AssertionError)):
            assert silent[0].recv(1), "closed"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="descriptors are limited by POSIX systems")
def test_more_connections_than_descriptors(tmp_path: Path) -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (96, before[1]))
    try:
        server = ExitStack()
        running = server.enter_context(besieged(tmp_path))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    with server, ExitStack() as strangers:
        for _ in range(300):
            strangers.enter_context(_connected(running.port))
        with running.client({}) as client:
            assert client.get("/healthz").status_code == 200
        assert len(running.log) < 10_000


def test_a_library_says_the_same_once_in_a_while() -> None:
    seldom = Seldom()
    records = [logging.LogRecord("asyncio", logging.ERROR, "", 0, text, None, None) for text in ("a", "a", "b", "a")]
    assert [seldom.filter(record) for record in records] == [True, False, True, False]
