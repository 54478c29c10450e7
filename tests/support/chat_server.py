"""A chat endpoint on the loopback that speaks OpenAI's and Anthropic's protocols as their clients expect them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from support.loopback import answering

Reply = Callable[[dict[str, Any]], "str | int"]
"""From a request's body to the answer's text, or to the status of a failure."""


class ChatServer(ThreadingHTTPServer):
    """Answers by a function; keeps the bodies it was sent."""

    daemon_threads = True

    def __init__(self, reply: Reply, delay: float = 0.0) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.reply = reply
        self.delay = delay
        self.requests: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


def chat_server(reply: Reply, delay: float = 0.0) -> AbstractContextManager[ChatServer]:
    return answering(ChatServer(reply, delay))


class _Handler(BaseHTTPRequestHandler):
    server: ChatServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's own name
        """Stay silent."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(body)
        time.sleep(self.server.delay)
        reply = self.server.reply(body)
        if isinstance(reply, int):
            self._send(reply, {"error": {"message": "no: " + json.dumps(body), "type": "test"}})
        elif self.path.endswith("/embeddings"):
            texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
            data = [{"object": "embedding", "index": i, "embedding": vector(t)} for i, t in enumerate(texts)]
            usage = {"prompt_tokens": 1, "total_tokens": 1}
            self._send(200, {"object": "list", "data": data, "model": body["model"], "usage": usage})
        elif self.path.endswith("/messages"):
            self._anthropic(body, reply)
        else:
            self._openai(body, reply)

    def _openai(self, body: dict[str, Any], text: str) -> None:
        usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
        base = {"id": "c1", "created": 1, "model": body["model"]}
        if not body.get("stream"):
            message = {"role": "assistant", "content": text}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            self._send(200, {**base, "object": "chat.completion", "choices": [choice], "usage": usage})
            return
        chunks: list[dict[str, Any]] = [
            {"choices": [{"index": 0, "delta": {"content": word}, "finish_reason": None}]} for word in _words(text)
        ]
        chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        chunks.append({"choices": [], "usage": usage})
        self._events([("", {**base, "object": "chat.completion.chunk", **chunk}) for chunk in chunks], done=True)

    def _anthropic(self, body: dict[str, Any], text: str) -> None:
        usage = {"input_tokens": 11, "output_tokens": 7}
        message: dict[str, Any] = {
            "id": "m1", "type": "message", "role": "assistant", "model": body["model"], "stop_reason": "end_turn",
            "stop_sequence": None, "usage": usage, "content": [{"type": "text", "text": text}],
        }  # fmt: skip
        if not body.get("stream"):
            self._send(200, message)
            return
        start = {**message, "content": [], "stop_reason": None}
        block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
        events: list[tuple[str, dict[str, Any]]] = [
            ("message_start", {"type": "message_start", "message": start}),
            ("content_block_start", block),
        ]
        for word in _words(text):
            delta = {"type": "text_delta", "text": word}
            events.append(("content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}))
        stop = {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": usage}
        events += [("content_block_stop", {"type": "content_block_stop", "index": 0}), ("message_delta", stop)]
        events.append(("message_stop", {"type": "message_stop"}))
        self._events(events, done=False)

    def _events(self, events: list[tuple[str, dict[str, Any]]], *, done: bool) -> None:
        lines = [(f"event: {name}\n" if name else "") + f"data: {json.dumps(data)}\n\n" for name, data in events]
        payload = ("".join(lines) + ("data: [DONE]\n\n" if done else "")).encode()
        self._respond(200, "text/event-stream", payload)

    def _send(self, status: int, value: dict[str, Any]) -> None:
        self._respond(status, "application/json", json.dumps(value).encode())

    def _respond(self, status: int, kind: str, payload: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)


def _words(text: str) -> list[str]:
    return [word + " " for word in text.split(" ")[:-1]] + text.split(" ")[-1:]


def vector(text: str) -> list[float]:
    return [float(sum(ord(c) for c in text) % 7 + 1), float(len(text) % 5 + 1), 1.0, 2.0]
