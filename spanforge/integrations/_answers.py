"""What a model's answer says of itself, whichever provider's form a framework passes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spanforge.integrations._client_calls import as_mapping
from spanforge.integrations.anthropic import PROVIDER as ANTHROPIC
from spanforge.integrations.openai import PROVIDER as OPENAI

__all__ = ["read_answer"]


def read_answer(raw: Any, beside: Mapping[str, Any]) -> dict[str, Any]:
    """Return keywords of `trace_generation`.

    Args:
        raw: The provider's own answer, or the last piece of one.
        beside: What the framework says of it, in the older names of OpenAI's usage.
    """
    known: dict[str, Any] = {}
    said = as_mapping(raw)
    reader = ANTHROPIC if said.get("type") == "message" else OPENAI
    reader.read(said, known)
    usage = beside.get("usage") if isinstance(beside.get("usage"), Mapping) else beside
    for name, older in (("prompt_tokens", "prompt_tokens"), ("output_tokens", "completion_tokens")):
        if usage is not None and isinstance(value := usage.get(older), int):
            known.setdefault(name, value)
    known.pop("finish_reasons", None)
    return known
