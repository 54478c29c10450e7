"""Answers of chat models behind any endpoint that speaks OpenAI's protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from spanforge.reference._extras import Untyped
from spanforge.reference.answering.base import whole
from spanforge.reference.answering.chat import ChatAnswerer
from spanforge.reference.failures import GenerationFailed
from spanforge.reference.models import AnsweringInput, AnsweringOutput


class OpenAIAnswerer(ChatAnswerer):
    """The official client; reads ``OPENAI_BASE_URL`` and ``OPENAI_API_KEY``."""

    provider = "openai"
    default_model = "gpt-4o-mini"
    _client_class = "OpenAI"

    def stream(self, request: AnsweringInput) -> Iterator[str | AnsweringOutput]:
        """Yield the answer's pieces, then the whole."""
        gathered = _Gathered()
        with self._failures():
            for chunk in self._client.chat.completions.create(**self._stream_body(request)):
                if piece := gathered.take(chunk):
                    yield piece
        yield gathered.whole(request, request.model or self.model)

    async def astream(self, request: AnsweringInput) -> AsyncIterator[str | AnsweringOutput]:
        """Yield the answer's pieces, then the whole, without blocking the event loop."""
        gathered = _Gathered()
        with self._failures():
            async for chunk in await self._async_client.chat.completions.create(**self._stream_body(request)):
                if piece := gathered.take(chunk):
                    yield piece
        yield gathered.whole(request, request.model or self.model)

    def _create(self, client: Untyped, request: AnsweringInput) -> Untyped:
        return client.chat.completions.create(**self._body(request))

    def _body(self, request: AnsweringInput) -> dict[str, Any]:
        return {**super()._body(request), "temperature": request.temperature}

    def _stream_body(self, request: AnsweringInput) -> dict[str, Any]:
        return {**self._body(request), "stream": True, "stream_options": {"include_usage": True}}

    def _whole(self, request: AnsweringInput, response: Untyped) -> AnsweringOutput:
        if not response.choices:
            raise GenerationFailed("The endpoint answered without any choice.")
        choice = response.choices[0]
        text, model = choice.message.content or "", response.model or self.model
        return _output(request, text, model, response.usage, choice.finish_reason or "stop")


class _Gathered:
    """A streamed answer as far as it came."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._finish_reason = "stop"
        self._usage: Any = None

    def take(self, chunk: Untyped) -> str:
        self._usage = chunk.usage or self._usage
        if not chunk.choices:
            return ""
        self._finish_reason = chunk.choices[0].finish_reason or self._finish_reason
        piece = str(chunk.choices[0].delta.content or "")
        self._pieces.append(piece)
        return piece

    def whole(self, request: AnsweringInput, model: str) -> AnsweringOutput:
        return _output(request, "".join(self._pieces), model, self._usage, self._finish_reason)


def _output(request: AnsweringInput, text: str, model: str, usage: Untyped, finish_reason: str) -> AnsweringOutput:
    prompt_tokens, output_tokens = (usage.prompt_tokens, usage.completion_tokens) if usage else (0, 0)
    tokens = {"prompt_tokens": prompt_tokens, "output_tokens": output_tokens}
    return whole(request, text, model=model, finish_reason=finish_reason, **tokens)
