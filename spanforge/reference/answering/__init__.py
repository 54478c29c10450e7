"""Answering from grounded context (sub-contract 5): extractive without a model, or by a chat model."""

from __future__ import annotations

from typing import Final

from spanforge.exceptions import MissingExtraError
from spanforge.reference.answering.anthropic import AnthropicAnswerer
from spanforge.reference.answering.base import Answerer, is_refusal, used_citations
from spanforge.reference.answering.extractive import ExtractiveAnswerer
from spanforge.reference.answering.openai import OpenAIAnswerer
from spanforge.reference.failures import GenerationFailed, Translated

__all__ = ["Answerer", "ExtractiveAnswerer", "is_refusal", "open_answerer", "used_citations"]

_ANTHROPIC: Final = ("anthropic:", "claude")


def open_answerer(model: str = "", base_url: str | None = None) -> Answerer:
    """Open an answerer.

    Args:
        model: Name of a model behind a server that speaks OpenAI's protocol, such as Ollama, llama.cpp or vLLM; one of
            Anthropic's where it begins with ``claude`` or ``anthropic:``; empty for the offline answerer. Keys are read
            by the clients, from ``OPENAI_API_KEY`` and ``ANTHROPIC_API_KEY``; a server of your own needs none.
        base_url: Address of the server, such as ``http://localhost:11434/v1``; the maker's own where left out.

    Raises:
        GenerationFailed: The client is not installed, or there is no key for a server that needs one.
    """
    if not model:
        return ExtractiveAnswerer()
    is_anthropic = model.startswith(_ANTHROPIC)
    name = model.removeprefix("anthropic:").removeprefix("openai:")
    with Translated((MissingExtraError,), lambda error: GenerationFailed(str(error))):
        return (AnthropicAnswerer if is_anthropic else OpenAIAnswerer)(name, base_url=base_url)
