"""Answers of Anthropic's models by the official client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spanforge.reference._extras import Untyped, load
from spanforge.reference.answering.base import whole
from spanforge.reference.failures import GenerationFailed, Translated

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from spanforge.reference.models import AnsweringInput, AnsweringOutput

DEFAULT_MODEL = "claude-3-5-haiku-latest"


class AnthropicAnswerer:
    """The official client.

    Args:
        model: Name of the model, unless a request names another.
        base_url: Address of the endpoint; absent, the client's own default or ``ANTHROPIC_BASE_URL``.
        api_key: Key; absent, ``ANTHROPIC_API_KEY``.
        timeout: Seconds until an attempt is given up.
        max_retries: Further attempts after a failure that may pass.
    """

    provider = "anthropic"
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
        library = load("anthropic", "anthropic")
        self.model = model
        self._error: type[Exception] = library.AnthropicError
        settings: dict[str, Any] = {"api_key": api_key, "timeout": timeout, "max_retries": max_retries}
        if base_url is not None:
            settings["base_url"] = base_url
        with self._failures():
            self._client = library.Anthropic(**settings)
            self._async_client = library.AsyncAnthropic(**settings)

    def answer(self, request: AnsweringInput) -> AnsweringOutput:
        """Return the answer."""
        with self._failures():
            return self._whole(request, self._client.messages.create(**self._body(request)))

    def stream(self, request: AnsweringInput) -> Iterator[str | AnsweringOutput]:
        """Yield the answer's pieces, then the whole."""
        with self._failures():
            with self._client.messages.stream(**self._body(request)) as events:
                yield from events.text_stream
                message = events.get_final_message()
            yield self._whole(request, message)

    async def aanswer(self, request: AnsweringInput) -> AnsweringOutput:
        """Return the answer without blocking the event loop."""
        with self._failures():
            return self._whole(request, await self._async_client.messages.create(**self._body(request)))

    async def astream(self, request: AnsweringInput) -> AsyncIterator[str | AnsweringOutput]:
        """Yield the answer's pieces, then the whole, without blocking the event loop."""
        with self._failures():
            async with self._async_client.messages.stream(**self._body(request)) as events:
                async for piece in events.text_stream:
                    yield piece
                message = await events.get_final_message()
            yield self._whole(request, message)

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
            "max_tokens": request.max_output_tokens,
            # Part of the protocol in every version, but no longer of the newest client's signature.
            "extra_body": {"temperature": min(1.0, request.temperature)},
        }

    def _whole(self, request: AnsweringInput, message: Untyped) -> AnsweringOutput:
        return whole(
            request,
            "".join(block.text for block in message.content if block.type == "text"),
            model=message.model or self.model,
            prompt_tokens=message.usage.input_tokens,
            output_tokens=message.usage.output_tokens,
            finish_reason=message.stop_reason or "stop",
        )

    def _failures(self) -> Translated:
        return Translated(
            (self._error,), lambda e: GenerationFailed(f"The language model did not answer ({type(e).__name__}).")
        )
