"""Each escalation arrives once, signed; what may not be reached is not, and what fails is said."""

from __future__ import annotations

import base64
import hmac
import json
import os
import select
import socket
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from support.stored import event
from support.trickling import trickling

from spanforge.exceptions import ConfigError, SinkWriteError
from spanforge.sinks.command import CommandSink
from spanforge.sinks.webhook import WebhookSink

SECRET = b"s" * 32
STAGE = event(1)
ASKS = [event(n, event_type="llm.rag.escalated", rule="low") for n in (2, 3, 4)]


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server: Server = self.server  # type: ignore[assignment]
        body = self.rfile.read(int(self.headers["content-length"]))
        server.got.append(({**dict(self.headers), "path": self.path}, body))
        self.send_response(server.answers.pop(0) if server.answers else 204)
        self.send_header("Location", "http://127.0.0.1:1/")
        self.send_header("Retry-After", "7")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


class Server(HTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Receiver)
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.answers: list[int] = []


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def sink_to(server: Server, secret: bytes = SECRET) -> WebhookSink:
    return WebhookSink(f"http://127.0.0.1:{server.server_port}/hook", secret, allow_private=True)


@pytest.mark.parametrize("secret", [SECRET, b"whsec_" + base64.b64encode(SECRET)])
def test_escalations_alone_are_sent_and_signed(server: Server, secret: bytes) -> None:
    sink_to(server, secret).write([STAGE, *ASKS, STAGE])
    assert [json.loads(body)["event_id"] for _, body in server.got] == [one.event_id for one in ASKS]
    headers, body = server.got[0]
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.digest(SECRET, signed, "sha256")).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    assert headers["webhook-id"] == ASKS[0].event_id


@pytest.mark.parametrize(("status", "retryable"), [(503, True), (429, True), (400, False), (302, False)])
def test_what_is_not_taken_is_said_and_nothing_is_sent_on(server: Server, status: int, retryable: bool) -> None:
    server.answers = [204, status]
    with pytest.raises(SinkWriteError, match=f"http_{status}") as failed:
        sink_to(server).write([STAGE, *ASKS])
    assert (failed.value.delivered, failed.value.retryable, failed.value.retry_after_s) == (2, retryable, 7)
    assert len(server.got) == 2


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "10.0.0.1",
        "169.254.169.254",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[64:ff9b:1::7f00:1]",
        "[2002:7f00:1::]",
        "[::127.0.0.1]",
        "[::ffff:0:7f00:1]",
        "[fec0::1]",
    ],
)
def test_private_addresses_are_refused_by_what_they_resolve_to(server: Server, host: str) -> None:
    sink = WebhookSink(f"http://{host}:{server.server_port}/", SECRET)
    with pytest.raises(SinkWriteError, match="private_address") as failed:
        sink.write([STAGE, ASKS[0]])
    assert not failed.value.retryable
    assert server.got == []


@pytest.mark.parametrize("address", ["64:ff9b::808:808", "::ffff:8.8.8.8", "8.8.8.8", "2606:4700::1"])
def test_a_public_address_is_connected_to(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    connected: list[str] = []

    def connect(place: tuple[str, int], _: float) -> socket.socket:
        connected.append(place[0])
        raise ConnectionRefusedError

    monkeypatch.setattr(socket, "create_connection", connect)
    literal = f"[{address}]" if ":" in address else address
    with pytest.raises(SinkWriteError, match="ConnectionRefusedError"):
        WebhookSink(f"http://{literal}/", SECRET).write(ASKS)
    assert connected == [address]


def test_the_addresses_of_a_name_are_tried_in_turn(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    real = socket.getaddrinfo

    def look_up(host: str, *place: Any, **named: Any) -> list[Any]:
        hosts = ("127.0.0.2", "127.0.0.1") if host == "hooks.example" else (host,)
        return [found for one in hosts for found in real(one, *place, **named)]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    WebhookSink(f"http://hooks.example:{server.server_port}/hook/", SECRET, allow_private=True).write(ASKS[:1])
    [(headers, _)] = server.got
    assert (headers["Host"], headers["path"]) == (f"hooks.example:{server.server_port}", "/hook/")


@pytest.mark.parametrize(
    ("head", "rest"), [(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), (b"HTTP/1.1 200 OK\r\nserver: ", b"a")]
)
def test_an_answer_that_trickles_is_given_up(head: bytes, rest: bytes) -> None:
    """Each of its bytes is there in time, and all of it never would be."""
    with trickling(head, rest) as url, pytest.raises(SinkWriteError, match="TimeoutError") as failed:
        WebhookSink(url, SECRET, allow_private=True, timeout_s=0.3).write(ASKS)
    assert failed.value.retryable


def test_what_follows_the_head_of_an_answer_is_not_waited_for() -> None:
    with trickling(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", b"a") as url:
        WebhookSink(url, SECRET, allow_private=True, timeout_s=60).write(ASKS[:1])


def test_a_name_that_has_no_encoding_fails_as_one_that_is_not_there() -> None:
    with pytest.raises(SinkWriteError, match="UnicodeError"):
        WebhookSink(f"http://{'a' * 70}.example/", SECRET).write(ASKS)


def test_a_receiver_that_is_not_there_may_be_later() -> None:
    with pytest.raises(SinkWriteError, match="ConnectionRefusedError") as failed:
        WebhookSink("http://127.0.0.1:1/", SECRET, allow_private=True).write(ASKS)
    assert (failed.value.delivered, failed.value.retryable) == (0, True)


@pytest.mark.parametrize(
    ("url", "secret", "timeout", "says"),
    [
        ("ftp://host", SECRET, 5.0, "url: must begin with http"),
        ("http://user:canary@host", SECRET, 5.0, "url: must not carry credentials"),
        ("http://host", b"short", 5.0, "secret: give 24 bytes"),
        ("http://host", b"whsec_" + b"A" * 31, 5.0, "secret: give 24 bytes"),
        ("http://host", b"whsec_" + b"!" * 32, 5.0, "secret: give 24 bytes"),
        ("http://host", SECRET, 0.0, "timeout_s: "),
    ],
)
def test_what_cannot_be_used_is_named(url: str, secret: bytes, timeout: float, says: str) -> None:
    with pytest.raises(ConfigError) as refused:
        WebhookSink(url, secret, timeout_s=timeout)
    assert str(refused.value).startswith(says)
    assert "canary" not in str(refused.value)


def test_a_command_gets_each_escalation(tmp_path: Path) -> None:
    out = tmp_path / "out"
    CommandSink([sys.executable, "-c", f"import sys; open({str(out)!r}, 'a').write(sys.stdin.read())"]).write(
        [STAGE, *ASKS[:2]]
    )
    assert [json.loads(line)["event_id"] for line in out.read_text().splitlines()] == [one.event_id for one in ASKS[:2]]


def test_a_command_that_fails_is_said() -> None:
    for command, says in ((["false"], "exit_1"), (["/no/such/program"], "ENOENT"), (["sleep", "60"], "timeout")):
        with pytest.raises(SinkWriteError, match=says) as failed:
            CommandSink(command, timeout_s=0.2).write([STAGE, *ASKS])
        assert failed.value.delivered == 1
    for unfit in ([], ["page\0me"]):
        with pytest.raises(ConfigError, match="command: "):
            CommandSink(unfit)


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="no groups of processes")
def test_what_a_command_has_started_ends_with_it(tmp_path: Path) -> None:
    """What it leaves behind each time would pile up, for as long as there is something to escalate."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(SinkWriteError, match="timeout"):
        CommandSink(["sh", "-c", f"exec 3> {pipe}; sleep 60 & sleep 60"], timeout_s=0.3).write(ASKS)
    assert select.select([reader], [], [], 10)[0]  # its end: nobody has it open any more
    os.close(reader)
