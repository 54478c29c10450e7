"""What the service clients share: configuration and the runtime cell."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final, Self

from spanforge import _clock, _ids
from spanforge._guard import attempt
from spanforge._warnings import warn
from spanforge.config import Settings, SFClientConfig
from spanforge.sdk._cell import RuntimeCell

__all__ = ["SFClientConfig", "SFServiceClient"]

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
            warn("sf-%s: endpoint is never contacted; events go to sinks, see configure(sinks=…)", service_name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._service_name}>"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        # An object that holds a client can be copied; the copy has the same one.
        return self

    def __reduce__(self) -> Any:
        # A client is a process's own, so what is pickled is its name: elsewhere it is the one that process has.
        if self._config is None and self._service_name in _PUBLIC:
            return _of_this_process, (self._service_name,)
        raise TypeError(
            f"{type(self).__name__} with a configuration of its own cannot be pickled: make one where it is needed"
        )


_PUBLIC: Final = {"rag": "sf_rag", "feedback": "sf_feedback"}


def _of_this_process(service_name: str) -> SFServiceClient:
    return getattr(import_module("spanforge.sdk"), _PUBLIC[service_name])


def new_session_id(client: SFServiceClient) -> str:
    """Mint a session id, even where the client's runtime cannot be had."""
    found: list[str] = []
    if attempt(lambda: found.append(client.cell.get().new_session_id())) is not None:
        found.append(_ids.encode(_ids.IdSource().mint(_clock.wall_ns())))
    return found[0]
