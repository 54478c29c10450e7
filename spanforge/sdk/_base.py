"""What the service clients share: configuration, the runtime cell, and the promise never to raise."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final, ParamSpec, TypeVar

from spanforge.config import Settings, SFClientConfig
from spanforge.delivery.guard import guarded
from spanforge.sdk._runtime import RuntimeCell

__all__ = ["SFClientConfig", "SFServiceClient"]

P = ParamSpec("P")
T = TypeVar("T")

_log = logging.getLogger("spanforge")

shared_cell: Final = RuntimeCell()
"""The runtime that `sf_rag` and `sf_feedback` have in common, for the life of the process."""


class SFServiceClient:
    """Base of the clients applications import.

    Args:
        config: None shares the process's configuration, which `configure()` changes. A configuration of its own gives
            the client sinks, sessions and a ledger of its own.
        service_name: Short name of the service, for logs.

    Attributes:
        cell: Holds what is inside the client; for this package alone.
    """

    def __init__(self, config: SFClientConfig | None = None, service_name: str = "") -> None:
        self._config = config
        self._service_name = service_name
        self.cell = (
            shared_cell if config is None else RuntimeCell(lambda: Settings.load_leniently(config.as_overrides()))
        )
        if config is not None and config.endpoint:
            _log.warning("sf-%s: endpoint is never contacted; events go to sinks, see configure(sinks=…)", service_name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._service_name}>"

    def __reduce__(self) -> Any:
        # A client is a process's own: pickling one with its locks and threads would make no sense elsewhere.
        raise TypeError(f"{type(self).__name__} cannot be pickled: import sf_rag or sf_feedback where it is needed")


def never_raises(fallback: Callable[..., Any]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorate a client's method: an error is counted and logged, and `fallback(client, *args, **kwargs)` is returned.

    In strict mode the error is raised instead.
    """

    def decorate(method: Callable[P, T]) -> Callable[P, T]:
        def recover(error: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]) -> T:
            client: SFServiceClient = args[0]
            runtime = client.cell.get()
            if runtime.settings.strict:
                raise error
            runtime.count(f"{method.__name__}_failed:{type(error).__name__}")
            return fallback(*args, **kwargs)

        return guarded(method, recover)

    return decorate
