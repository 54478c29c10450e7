"""Connections before anything is asked on them: how many there may be, and how long one may keep us waiting."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from uvicorn.protocols.http.auto import AutoHTTPProtocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from spanforge.sdk import ServerSettings

try:
    import resource
except ImportError:  # Windows counts no descriptors
    resource = None

_SHARE_OF_DESCRIPTORS: Final = 4
"""A quarter of the descriptors a process may have open is for connections, as many for those accepted in one go before
one of them is turned away, and the rest is for files."""


def most_connections(settings: ServerSettings) -> int:
    """Return how many connections there may be at once: as the settings say, and as descriptors allow."""
    if resource is None:
        return settings.max_connections
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return settings.max_connections
    return max(1, min(settings.max_connections, soft // _SHARE_OF_DESCRIPTORS))


def patient(settings: ServerSettings, most: int) -> Callable[..., asyncio.Protocol]:
    """Return what makes the protocol of each connection, for `uvicorn.Config(http=...)`."""
    return partial(_Connection, _Door(most, settings.header_timeout_s))


class _Door:
    """All connections of a server, and those of them whose next request has not come.

    Where there is no room for one more, the one that has kept us waiting the longest goes: strangers who open
    connections and say nothing take no place from those who ask.
    """

    def __init__(self, most: int, header_timeout_s: float) -> None:
        self._most = most
        self._timeout_s = header_timeout_s
        self._open: set[_Connection] = set()
        self._waiting: dict[_Connection, asyncio.TimerHandle] = {}

    def enter(self, connection: _Connection) -> None:
        if len(self._open) >= self._most:
            # Where all are being answered, the newcomer itself goes.
            self._turn_out(next(iter(self._waiting), connection))
        if not connection.transport.is_closing():
            self._open.add(connection)
            self.wait(connection)

    def wait(self, connection: _Connection) -> None:
        """Note that a request is waited for."""
        self.served(connection)
        loop = asyncio.get_running_loop()
        self._waiting[connection] = loop.call_later(self._timeout_s, self._turn_out, connection)

    def served(self, connection: _Connection) -> None:
        """Note that the head of a request has come."""
        timer = self._waiting.pop(connection, None)
        if timer is not None:
            timer.cancel()

    def leave(self, connection: _Connection) -> None:
        self.served(connection)
        self._open.discard(connection)

    def _turn_out(self, connection: _Connection) -> None:
        self.leave(connection)
        connection.transport.abort()


class _Connection(AutoHTTPProtocol):
    """A connection that tells the door what it waits for."""

    transport: asyncio.Transport
    cycle: Any

    def __init__(self, door: _Door, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._door = door

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)  # pyright: ignore[reportArgumentType]  a transport of a stream
        self._door.enter(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._door.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_answering:
            self._door.served(self)

    def on_response_complete(self) -> None:
        super().on_response_complete()  # pyright: ignore  both of uvicorn's protocols have it, and their name for either not
        # A request that was sent ahead may have begun already.
        if not self._is_answering and not self.transport.is_closing():
            self._door.wait(self)

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete
