"""Answers of Anthropic's models by the official client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from spanforge.reference._extras import Untyped
from spanforge.reference.answering.base import whole
from spanforge.reference.answering.chat import ChatAnswerer
from spanforge.reference.models import AnsweringInput, AnsweringOutput


class AnthropicAnswerer(ChatAnswerer):
    """The official client; reads ``ANTHROPIC_BASE_URL`` and ``ANTHROPIC_API_KEY``."""

    provider = "anthropic"
    default_model = "claude-3-5-haiku-latest"
    _client_class = "Anthropic"

    def stream(self, request: AnsweringInput) -> Iterator[str | AnsweringOutput]:
        """Yield the answer's pieces, then the whole."""
        with self._failures():
            with self._client.messages.stream(**self._body(request)) as events:
                yield from events.text_stream
                message = events.get_final_message()
            yield self._whole(request, message)

    async def astream(self, request: AnsweringInput) -> AsyncIterator[str | AnsweringOutput]:
        """Yield the answer's pieces, then the whole, without blocking the event loop."""
        with self._failures():
            async with self._async_client.messages.stream(**self._body(request)) as events:
                async for piece in events.text_stream:
                    yield piece
                message = await events.get_final_message()
            yield self._whole(request, message)

    def _create(self, client: Untyped, request: AnsweringInput) -> Untyped:
        return client.messages.create(**self._body(request))

    def _body(self, request: AnsweringInput) -> dict[str, Any]:
        # Part of the protocol in every version, but no longer of the newest client's signature.
        return {**super()._body(request), "extra_body": {"temperature": min(1.0, request.temperature)}}

    def _whole(self, request: AnsweringInput, response: Untyped) -> AnsweringOutput:
        return whole(
            request,
            "".join(block.text for block in response.content if block.type == "text"),
            model=response.model or self.model,
            prompt_tokens=response.usage.input_tokens,
            output_tokens=response.usage.output_tokens,
            finish_reason=response.stop_reason or "stop",
        )
