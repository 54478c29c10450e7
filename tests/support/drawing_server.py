"""A server of OpenAI's and Anthropic's APIs that draws what it answers at random, and keeps its own account of it."""

from __future__ import annotations

import hashlib
import json
import random
import threading
import time
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from support.chat_server import vector
from support.loopback import answering

Fields = dict[str, Any]
_UNSAID = ("text", "tool")


class DrawingServer(ThreadingHTTPServer):
    """Draws tokens, models, ids, reasons and words.

    Attributes:
        account: What an event must say of each call, in order; None stands for what was not said.
        asked: Set once a call has come.
        bodies: The requests, byte for byte.
        fail: The status of the next failure; None where calls succeed.
        tool_arguments: Of the call that is answered to a request with tools, before a tool has said anything.
        delay: Seconds before each word.
    """

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, seed: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.draw = random.Random(seed)  # noqa: S311  no secret
        self.lock = threading.Lock()
        self.account: list[Fields] = []
        self.asked = threading.Event()
        self.bodies: list[bytes] = []
        self.fail: int | None = None
        self.delay = 0.0
        self.tool_arguments = "{}"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def drawn(self, body: Fields) -> Fields:
        with self.lock:
            draw = self.draw
            return {
                "response_id": f"id-{draw.getrandbits(64):x}",
                "response_model": f"{body.get('model')}-{draw.randrange(1000)}",
                "prompt_tokens": draw.randrange(500, 900),
                "output_tokens": draw.randrange(50, 90),
                "cached_tokens": draw.randrange(1, 90),
                "reasoning_tokens": draw.randrange(1, 40),
                "finish_reason": draw.choice(["stop", "length"]),
                "tool": _tool(body, self.tool_arguments),
                "text": " ".join(f"w{draw.getrandbits(30):x}" for _ in range(draw.randrange(2, 7))),
            }


def drawing_server(seed: int) -> AbstractContextManager[DrawingServer]:
    return answering(DrawingServer(seed))


class _Handler(BaseHTTPRequestHandler):
    server: DrawingServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's own name
        """Stay silent."""

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        body = json.loads(raw)
        if self.path.endswith("/embeddings"):
            texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
            data = [{"object": "embedding", "index": i, "embedding": vector(str(t))} for i, t in enumerate(texts)]
            self._send(
                200,
                {
                    "object": "list",
                    "data": data,
                    "model": body["model"],
                    "usage": {"prompt_tokens": 1, "total_tokens": 1},
                },
            )
            return
        if self.server.fail is not None:
            self.server.bodies.append(raw)
            self._send(self.server.fail, {"error": {"message": f"no: {raw.decode()}", "type": "test"}})
            return
        drawn = self.server.drawn(body)
        answer = _anthropic if self.path.endswith("/messages") else _responses if "/responses" in self.path else _chat
        whole, pieces, said = answer(drawn, body)
        said |= {"model": body["model"], "asked": hashlib.sha256(raw).hexdigest()}
        with self.server.lock:
            self.server.bodies.append(raw)
            self.server.account.append(said)
        self.server.asked.set()
        if body.get("stream"):
            self._stream(pieces, done=not self.path.endswith("/messages"))
        else:
            time.sleep(self.server.delay)
            self._send(200, whole)

    def _stream(self, pieces: list[Fields], *, done: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        try:
            for piece in pieces:
                time.sleep(self.server.delay)
                name = f"event: {piece['type']}\n" if "type" in piece else ""
                self.wfile.write(f"{name}data: {json.dumps(piece)}\n\n".encode())
                self.wfile.flush()
            if done:
                self.wfile.write(b"data: [DONE]\n\n")
        except OSError:
            pass
        self.close_connection = True

    def _send(self, status: int, value: Fields) -> None:
        payload = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)


def _chat(drawn: Fields, body: Fields) -> tuple[Fields, list[Fields], Fields]:
    usage = {
        "prompt_tokens": drawn["prompt_tokens"],
        "completion_tokens": drawn["output_tokens"],
        "total_tokens": drawn["prompt_tokens"] + drawn["output_tokens"],
        "prompt_tokens_details": {"cached_tokens": drawn["cached_tokens"]},
        "completion_tokens_details": {"reasoning_tokens": drawn["reasoning_tokens"]},
    }
    base = {"id": drawn["response_id"], "created": 1, "model": drawn["response_model"]}
    message = {"role": "assistant", "content": drawn["text"]}
    if drawn["tool"] is not None:
        drawn["finish_reason"], message["tool_calls"] = "tool_calls", [drawn["tool"]]
    choice = {"index": 0, "message": message, "finish_reason": drawn["finish_reason"]}
    whole = {**base, "object": "chat.completion", "choices": [choice], "usage": usage}
    deltas: list[Fields] = [
        {"role": "assistant", "content": ""},
        *({"content": word} for word in drawn["text"].split()),
    ]
    pieces: list[Fields] = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    pieces.append({"choices": [{"index": 0, "delta": {}, "finish_reason": drawn["finish_reason"]}]})
    wants_usage = bool((body.get("stream_options") or {}).get("include_usage"))
    if wants_usage:
        pieces.append({"choices": [], "usage": usage})
    return (
        whole,
        [{**base, "object": "chat.completion.chunk", **piece} for piece in pieces],
        _said(drawn, body, wants_usage),
    )


def _tool(body: Fields, arguments: str) -> Fields | None:
    """Return a call of the first tool, once."""
    if not body.get("tools") or any(message.get("role") == "tool" for message in body.get("messages", ())):
        return None
    name = body["tools"][0].get("function", {}).get("name")
    return {"id": "call-1", "type": "function", "function": {"name": name, "arguments": arguments}}


def _said(drawn: Fields, body: Fields, wants_usage: bool) -> Fields:
    counts = ("prompt_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")
    unsaid = () if wants_usage or not body.get("stream") else counts
    return {name: None if name in unsaid else value for name, value in drawn.items() if name not in _UNSAID}


def _responses(drawn: Fields, body: Fields) -> tuple[Fields, list[Fields], Fields]:
    usage = {
        "input_tokens": drawn["prompt_tokens"],
        "output_tokens": drawn["output_tokens"],
        "total_tokens": drawn["prompt_tokens"] + drawn["output_tokens"],
        "input_tokens_details": {"cached_tokens": drawn["cached_tokens"]},
        "output_tokens_details": {"reasoning_tokens": drawn["reasoning_tokens"]},
    }
    content = [{"type": "output_text", "text": drawn["text"], "annotations": []}]
    message = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": content}
    whole = {
        "id": drawn["response_id"], "object": "response", "created_at": 1, "model": drawn["response_model"],
        "status": "completed", "output": [message], "usage": usage, "parallel_tool_calls": True, "tool_choice": "auto",
        "tools": [],
    }  # fmt: skip
    place = {"item_id": "m", "output_index": 0, "content_index": 0, "logprobs": []}
    started = {**whole, "status": "in_progress", "output": [], "usage": None}
    empty = {**message, "status": "in_progress", "content": []}
    part = {"type": "output_text", "text": "", "annotations": []}
    pieces: list[Fields] = [
        {"type": "response.created", "response": started},
        {"type": "response.output_item.added", "output_index": 0, "item": empty},
        {"type": "response.content_part.added", **place, "part": part},
    ]
    pieces += [{"type": "response.output_text.delta", "delta": word, **place} for word in drawn["text"].split()]
    pieces.append({"type": "response.completed", "response": whole})
    said = {**drawn, "finish_reason": "completed"}
    del said["text"], said["tool"]
    return whole, [{**piece, "sequence_number": n} for n, piece in enumerate(pieces)], said


def _anthropic(drawn: Fields, body: Fields) -> tuple[Fields, list[Fields], Fields]:
    reason = {"stop": "end_turn", "length": "max_tokens"}[drawn["finish_reason"]]
    written = drawn["reasoning_tokens"]
    usage = {
        "input_tokens": drawn["prompt_tokens"] - drawn["cached_tokens"] - written,
        "output_tokens": drawn["output_tokens"],
        "cache_read_input_tokens": drawn["cached_tokens"],
        "cache_creation_input_tokens": written,
    }
    whole = {
        "id": drawn["response_id"], "type": "message", "role": "assistant", "model": drawn["response_model"],
        "content": [{"type": "text", "text": drawn["text"]}], "stop_reason": reason, "stop_sequence": None,
        "usage": usage,
    }  # fmt: skip
    start = {**whole, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    text, last = {"type": "text", "text": ""}, {"output_tokens": drawn["output_tokens"]}
    pieces: list[Fields] = [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": text},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}}
            for word in drawn["text"].split()
        ),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": last},
        {"type": "message_stop"},
    ]  # fmt: skip
    said = {**drawn, "finish_reason": reason, "cache_write_tokens": written}
    del said["text"], said["tool"], said["reasoning_tokens"]
    return whole, pieces, said
