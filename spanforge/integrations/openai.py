"""OpenAI's client, for whatever address it is given: chat, responses and completions, streamed or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from spanforge.integrations._client_calls import field, take
from spanforge.integrations._clients import hooks

__all__ = ["DISTRIBUTION", "HOOKS", "OLDEST", "PROVIDER"]

DISTRIBUTION: Final = "openai"
OLDEST: Final = (1, 60)

_CHAT: Final = {
    "response_id": ("id",),
    "response_model": ("model",),
    "prompt_tokens": ("usage", "prompt_tokens"),
    "output_tokens": ("usage", "completion_tokens"),
    "cached_tokens": ("usage", "prompt_tokens_details", "cached_tokens"),
    "reasoning_tokens": ("usage", "completion_tokens_details", "reasoning_tokens"),
}
_RESPONSE: Final = {
    "response_id": ("id",),
    "response_model": ("model",),
    "prompt_tokens": ("usage", "input_tokens"),
    "output_tokens": ("usage", "output_tokens"),
    "cached_tokens": ("usage", "input_tokens_details", "cached_tokens"),
    "reasoning_tokens": ("usage", "output_tokens_details", "reasoning_tokens"),
}


class _OpenAI:
    name: str = "openai"
    paths: tuple[str, ...] = ("/chat/completions", "/completions", "/responses")

    def read(self, said: Mapping[str, Any], known: dict[str, Any]) -> bool:
        """Read an answer of any of the three kinds, or a piece of one."""
        if "choices" in said:
            return _chat(said, known)
        kind = said.get("type")
        response = said.get("response") if kind else said
        if response is not None and (field(response, "object") == "response" or kind):
            take({"response": response}, {name: ("response", *path) for name, path in _RESPONSE.items()}, known)
            status = field(response, "status")
            if status in {"completed", "incomplete", "failed"}:
                known["finish_reason"] = field(response, "incomplete_details", "reason") or status
        return isinstance(kind, str) and kind.endswith(".delta")


def _chat(said: Mapping[str, Any], known: dict[str, Any]) -> bool:
    take(said, _CHAT, known)
    has_text = False
    for choice in said.get("choices") or ():
        if reason := field(choice, "finish_reason"):
            reasons = known.setdefault("finish_reasons", [])
            reasons.append(reason)
        delta = field(choice, "delta")
        has_text = has_text or bool(field(delta, "content") or field(delta, "tool_calls") or field(choice, "text"))
    if reasons := known.get("finish_reasons"):
        known["finish_reason"] = reasons[0]
    return has_text


PROVIDER: Final = _OpenAI()
HOOKS: Final = hooks("openai", PROVIDER)
