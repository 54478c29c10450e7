"""What the answerers behind an official client share: opening and closing it, whole answers, and its failures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Any, ClassVar, Final

from spanforge.reference._extras import Untyped, load
from spanforge.reference.failures import GenerationFailed, Translated
from spanforge.reference.models import AnsweringInput, AnsweringOutput

_NO_KEY: Final = "none"


class ChatAnswerer(ABC):
    """A chat model behind its maker's client, at once and awaited.

    Args:
        model: Name of the model, unless a request names another; absent, ``default_model``.
        base_url: Address of the endpoint; absent, the client's own default or what its environment variable says.
        api_key: Key; absent, what the client's environment variable says, and none where ``base_url`` is given.
        timeout: Seconds until an attempt is given up.
        max_retries: Further attempts after a failure that may pass.

    Raises:
        MissingExtraError: The client is not installed.
        GenerationFailed: The client cannot be opened, for want of a key for example.
    """

    provider: ClassVar[str]
    """Name of the maker in the trace; also of the client's package and of the extra that brings it."""
    default_model: ClassVar[str]
    generative = True
    _client_class: ClassVar[str]
    """Name of the client's class; the awaited one has ``Async`` before it and the errors' base ``Error`` behind."""

    def __init__(
        self,
        model: str | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 30.0,
        max_retries: int = 2,
    ) -> None:
        library = load(self.provider, self.provider)
        self.model = model or self.default_model
        self._error: type[Exception] = getattr(library, f"{self._client_class}Error")
        settings: dict[str, Any] = {"api_key": api_key, "timeout": timeout, "max_retries": max_retries}
        if base_url is not None:
            settings["base_url"] = base_url
        with self._failures():
            settings["api_key"] = api_key or self._key(library, settings)
            self._client = getattr(library, self._client_class)(**settings)
            self._async_client = getattr(library, f"Async{self._client_class}")(**settings)

    def _key(self, library: Untyped, settings: dict[str, Any]) -> str | None:
        """Return the key that the client finds; a server of one's own takes any where it finds none.

        Without any key the clients refuse to start, or to ask.
        """
        with suppress(self._error), getattr(library, self._client_class)(**settings) as client:
            if client.api_key or "base_url" not in settings:
                return client.api_key
        return _NO_KEY if "base_url" in settings else None

    def answer(self, request: AnsweringInput) -> AnsweringOutput:
        """Return the answer."""
        with self._failures():
            return self._whole(request, self._create(self._client, request))

    async def aanswer(self, request: AnsweringInput) -> AnsweringOutput:
        """Return the answer without blocking the event loop."""
        with self._failures():
            return self._whole(request, await self._create(self._async_client, request))

    def close(self) -> None:
        """Close the connections of the calls that were not awaited."""
        self._client.close()

    async def aclose(self) -> None:
        """Close all connections."""
        self._client.close()
        await self._async_client.close()

    @abstractmethod
    def _create(self, client: Untyped, request: AnsweringInput) -> Untyped:
        """Return what the client answers, or what is to be awaited for it."""

    @abstractmethod
    def _whole(self, request: AnsweringInput, response: Untyped) -> AnsweringOutput:
        """Read a whole answer."""

    def _body(self, request: AnsweringInput) -> dict[str, Any]:
        return {
            "model": request.model or self.model,
            "messages": [{"role": "user", "content": request.prompt}],
            "max_tokens": request.max_output_tokens,
        }

    def _failures(self) -> Translated:
        return Translated(
            (self._error,), lambda e: GenerationFailed(f"The language model did not answer ({type(e).__name__}).")
        )
