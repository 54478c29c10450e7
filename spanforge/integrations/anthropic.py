"""Anthropic's client: messages, streamed or not, and those of the beta."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from spanforge.integrations._client_calls import field, take
from spanforge.integrations._clients import hooks

__all__ = ["DISTRIBUTION", "HOOKS", "OLDEST", "PROVIDER"]

DISTRIBUTION: Final = "anthropic"
OLDEST: Final = (0, 45)

_MESSAGE: Final = {
    "response_id": ("id",),
    "response_model": ("model",),
    "finish_reason": ("stop_reason",),
    "output_tokens": ("usage", "output_tokens"),
    "cached_tokens": ("usage", "cache_read_input_tokens"),
    "cache_write_tokens": ("usage", "cache_creation_input_tokens"),
}
_DELTA: Final = {"finish_reason": ("delta", "stop_reason"), "output_tokens": ("usage", "output_tokens")}
_CACHES: Final = ("cache_read_input_tokens", "cache_creation_input_tokens")


class _Anthropic:
    name: str = "anthropic"
    paths: tuple[str, ...] = ("/messages",)

    def read(self, said: Mapping[str, Any], known: dict[str, Any]) -> bool:
        """Read a message, or an event of a stream: its beginning says the input, its end the final numbers."""
        kind = said.get("type")
        message = said.get("message") if kind == "message_start" else said
        if kind in {"message", "message_start"}:
            take({"m": message}, {name: ("m", *path) for name, path in _MESSAGE.items()}, known)
        elif kind == "message_delta":
            take(said, _DELTA, known)
        _input(field(message, "usage"), known)
        return kind == "content_block_delta"


def _input(usage: Any, known: dict[str, Any]) -> None:
    """The prompt's tokens are those read anew, those from the cache, and those written to it."""
    anew = field(usage, "input_tokens")
    if isinstance(anew, int):
        known["prompt_tokens"] = anew + sum(field(usage, name) or 0 for name in _CACHES)


PROVIDER: Final = _Anthropic()
HOOKS: Final = hooks("anthropic", PROVIDER)
