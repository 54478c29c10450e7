"""Answers of chat models behind any endpoint that speaks OpenAI's protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spanforge.reference._extras import Untyped, load
from spanforge.reference.answering.base import whole
from spanforge.reference.failures import GenerationFailed, Translated

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from spanforge.reference.models import AnsweringInput, AnsweringOutput

DEFAULT_MODEL = "gpt-4o-mini"


class OpenAIAnswerer:
    """The official client.

    Args:
        model: Name of the model, unless a request names another.
        base_url: Address of the endpoint; absent, the client's own default or ``OPENAI_BASE_URL``.
        api_key: Key; absent, ``OPENAI_API_KEY``.
        timeout: Seconds until an attempt is given up.
        max_retries: Further attempts after a failure that may pass.
    """

    provider = "openai"
    generative = True

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 30.0,
        max_retries: int = 2,
    ) -> None:
        library = load("openai", "openai")
        self.model = model
        self._error: type[Exception] = library.OpenAIError
        settings: dict[str, Any] = {"api_key": api_key, "timeout": timeout, "max_retries": max_retries}
        if base_url is not None:
            settings["base_url"] = base_url
        with self._failures():
            self._client = library.OpenAI(**settings)
            self._async_client = library.AsyncOpenAI(**settings)

    def answer(self, request: AnsweringInput) -> AnsweringOutput:
        """Return the answer."""
        with self._failures():
            response = self._client.chat.completions.create(**self._body(request))
            return self._whole(request, response)

    def stream(self, request: AnsweringInput) -> Iterator[str | AnsweringOutput]:
        """Yield the answer's pieces, then the whole."""
        gathered = _Gathered()
        with self._failures():
            for chunk in self._client.chat.completions.create(**self._stream_body(request)):
                if piece := gathered.take(chunk):
                    yield piece
        yield gathered.whole(request, request.model or self.model)

    async def aanswer(self, request: AnsweringInput) -> AnsweringOutput:
        """Return the answer without blocking the event loop."""
        with self._failures():
            response = await self._async_client.chat.completions.create(**self._body(request))
            return self._whole(request, response)

    async def astream(self, request: AnsweringInput) -> AsyncIterator[str | AnsweringOutput]:
        """Yield the answer's pieces, then the whole, without blocking the event loop."""
        gathered = _Gathered()
        with self._failures():
            async for chunk in await self._async_client.chat.completions.create(**self._stream_body(request)):
                if piece := gathered.take(chunk):
                    yield piece
        yield gathered.whole(request, request.model or self.model)

    def close(self) -> None:
        """Close the connections of the calls that were not awaited."""
        self._client.close()

    async def aclose(self) -> None:
        """Close all connections."""
        self._client.close()
        await self._async_client.close()

    def _body(self, request: AnsweringInput) -> dict[str, Any]:
        return {
            "model": request.model or self.model,
            "messages": [{"role": "user", "content": request.prompt}],
            "temperature": request.temperature,
            "max_tokens": request.max_output_tokens,
        }

    def _stream_body(self, request: AnsweringInput) -> dict[str, Any]:
        return {**self._body(request), "stream": True, "stream_options": {"include_usage": True}}

    def _whole(self, request: AnsweringInput, response: Untyped) -> AnsweringOutput:
        if not response.choices:
            raise GenerationFailed("The endpoint answered without any choice.")
        choice = response.choices[0]
        return whole(
            request,
            choice.message.content or "",
            model=response.model or self.model,
            prompt_tokens=response.usage.prompt_tokens if response.usage else 0,
            output_tokens=response.usage.completion_tokens if response.usage else 0,
            finish_reason=choice.finish_reason or "stop",
        )

    def _failures(self) -> Translated:
        return Translated(
            (self._error,), lambda e: GenerationFailed(f"The language model did not answer ({type(e).__name__}).")
        )


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
        return whole(
            request,
            "".join(self._pieces),
            model=model,
            prompt_tokens=self._usage.prompt_tokens if self._usage else 0,
            output_tokens=self._usage.completion_tokens if self._usage else 0,
            finish_reason=self._finish_reason,
        )
