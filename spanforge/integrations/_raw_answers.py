"""Answers of a client that the application reads itself, parsed by the client, or as bytes or lines."""

# What is handed over has no types that hold in all versions of a framework.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import functools
import inspect
import json
import weakref
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any, Final

from spanforge.integrations._client_calls import Call
from spanforge.integrations._quiet import quiet

__all__ = ["follow_raw"]

_MAX_BYTES: Final = 4 * 1024 * 1024
"""Of an answer that is in one piece, or of one event; what is longer is not looked into."""
_LAST: Final = frozenset({"message_stop", "response.completed", "response.incomplete", "response.failed"})
"""The types of a stream's last events, where it ends by one."""


def follow_raw(call: Call, answer: Any, raw: Any, follow: Callable[[Call, Any], None]) -> None:
    """Read a raw response: what is there already, or what the application makes of it.

    Args:
        call: What it answers.
        answer: The client's own object for it.
        raw: The HTTP client's.
        follow: Reads what the client has parsed.
    """
    if getattr(raw, "is_stream_consumed", False) and getattr(raw, "is_closed", False):
        call.whole(raw.json())
        return
    # One that is never read ends with its object, if it is not closed before.
    read = _Bytes(call, weakref.finalize(answer, call.leave), str(raw.headers.get("content-type") or ""))
    raw.iter_bytes, raw.aiter_bytes = read.followed(raw.iter_bytes), read.followed_async(raw.aiter_bytes)
    if hasattr(answer, "close"):
        answer.close = read.closing(answer.close)
    parse = answer.parse

    def taken(result: Any) -> Any:
        read.forgotten.detach()
        follow(call, result)
        return result

    @functools.wraps(parse)
    def parsed(*args: Any, **kwargs: Any) -> Any:
        read.is_parsed = True
        return taken(parse(*args, **kwargs))

    @functools.wraps(parse)
    async def parsed_async(*args: Any, **kwargs: Any) -> Any:
        read.is_parsed = True
        return taken(await parse(*args, **kwargs))

    answer.parse = parsed_async if inspect.iscoroutinefunction(parse) else parsed


class _Bytes:
    """What has been read of an answer's body.

    Attributes:
        forgotten: Ends the call where the answer is let go of.
        is_parsed: Whether the client reads it, whose objects say more.
    """

    def __init__(self, call: Call, forgotten: Any, kind: str) -> None:
        self._call = call
        self.forgotten = forgotten
        self.is_parsed = self._is_over = False
        self._is_stream, self._is_json = "event-stream" in kind, "json" in kind
        self._kept = b""

    def followed(self, iter_bytes: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap what every way to read the body goes through."""

        @functools.wraps(iter_bytes)
        def followed(*args: Any, **kwargs: Any) -> Generator[bytes]:
            with self:
                for piece in iter_bytes(*args, **kwargs):
                    self._add(piece)
                    yield piece

        return followed

    def followed_async(self, aiter_bytes: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap its asynchronous twin."""

        @functools.wraps(aiter_bytes)
        async def followed(*args: Any, **kwargs: Any) -> AsyncGenerator[bytes]:
            with self:
                async for piece in aiter_bytes(*args, **kwargs):
                    self._add(piece)
                    yield piece

        return followed

    def closing(self, close: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap the answer's `close`: nobody reads the rest. Both kinds are left when it is called."""

        @functools.wraps(close)
        def closed(*args: Any, **kwargs: Any) -> Any:
            self._end(self._call.leave)
            return close(*args, **kwargs)

        return closed

    def __enter__(self) -> None:
        """The body is about to be read."""

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if self.is_parsed:
            return
        if error is None:
            self._end((lambda: self._call.whole(_parsed(self._kept))) if self._is_json else self._call.end)
        else:
            self._end(lambda: self._call.fail(error))

    def _end(self, end: Callable[[], None]) -> None:
        if not self._is_over:
            self._is_over = True
            self.forgotten.detach()
            end()
            self._kept = b""

    @quiet
    def _add(self, piece: bytes) -> None:
        if self._is_over or self.is_parsed or not (self._is_stream or self._is_json):
            return
        self._kept += piece
        if self._is_stream:
            *lines, self._kept = self._kept.split(b"\n")
            for line in lines:
                if line.startswith(b"data:"):
                    self._event(line.removeprefix(b"data:").strip())
        if len(self._kept) > _MAX_BYTES:
            self._kept, self._is_stream, self._is_json = b"", False, False

    def _event(self, data: bytes) -> None:
        said = None if data == b"[DONE]" else json.loads(data)
        if said is not None:
            self._call.piece(said)
        if said is None or said.get("type") in _LAST:
            # Whoever reads lines may stop at the last one.
            self._end(self._call.end)


@quiet
def _parsed(body: bytes) -> Any:
    return json.loads(body)
