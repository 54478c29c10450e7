"""The sinks that another configuration has replaced: what they lost, or still hold, is not forgotten."""

from __future__ import annotations

from typing import Final

from spanforge.delivery.dispatch import Dispatcher
from spanforge.delivery.ledger import DeliveryReceipt, SinkLedger

__all__ = ["Replaced"]

_MOST_KEPT: Final = 8
"""Dispatchers that are looked at again; each may hold a sink that hangs, and its thread."""
_MOST_NAMES: Final = 32
_OTHERS: Final = "others"


class Replaced:
    """Closed dispatchers that hold events, and the ledgers of those that lost some. Guarded by the owner's lock."""

    def __init__(self) -> None:
        self._kept: list[Dispatcher] = []
        self._ledgers: dict[str, SinkLedger] = {}
        self._owed = DeliveryReceipt()

    def add(self, dispatcher: Dispatcher) -> None:
        """Take a closed dispatcher, unless all that it had was delivered."""
        if _unfinished(dispatcher):
            self._kept.append(dispatcher)
        if len(self._kept) > _MOST_KEPT:
            oldest = self._kept.pop(0)
            self._owed = DeliveryReceipt.sum([self._owed, oldest.receipt()])
            _add_up(self._ledgers, oldest)

    def ledgers(self, leaving: list[Dispatcher]) -> dict[str, SinkLedger]:
        """Return the ledgers by name, those of one name added up.

        Args:
            leaving: Dispatchers that are being closed.
        """
        named = dict(self._ledgers)
        for dispatcher in [*leaving, *self._kept]:
            _add_up(named, dispatcher)
        return {f"{name} (replaced)": ledger for name, ledger in named.items()}

    def receipt(self) -> DeliveryReceipt:
        """Say what was not delivered: what they still hold, and what was lost since the last receipt."""
        receipts = [dispatcher.receipt() for dispatcher in self._kept]
        for dispatcher, receipt in zip(self._kept, receipts, strict=True):
            if not receipt.pending:
                _add_up(self._ledgers, dispatcher)
        self._kept = [one for one, receipt in zip(self._kept, receipts, strict=True) if receipt.pending]
        owed, self._owed = self._owed, DeliveryReceipt(self._owed.pending)
        return DeliveryReceipt.sum([*receipts, owed])


def _unfinished(dispatcher: Dispatcher) -> bool:
    return any(ledger.lost or ledger.pending for ledger in dispatcher.ledgers().values())


def _add_up(named: dict[str, SinkLedger], dispatcher: Dispatcher) -> None:
    for name, ledger in dispatcher.ledgers().items():
        if ledger.lost or ledger.pending:
            place = name if name in named or len(named) < _MOST_NAMES else _OTHERS
            named[place] = named[place] + ledger if place in named else ledger
