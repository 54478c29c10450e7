"""The log of events that wait: what one step of it sees of another."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from spanforge.delivery.queue import Cursor, EventLog
from spanforge.namespaces.event import Binding, Draft


def draft(number: int) -> Draft:
    return Draft(number, number, "llm.rag.query", "s", {}, Binding(), None, 1)


class Interrupted(deque[Draft]):
    """A queue in whose reading a signal handler traces, once."""

    def __init__(self, drafts: list[Draft], handler: Callable[[], None]) -> None:
        super().__init__(drafts)
        self._handlers = [handler]

    def __iter__(self) -> Iterator[Draft]:
        for item in super().__iter__():
            yield item
            while self._handlers:
                self._handlers.pop()()


def test_an_event_that_comes_in_the_middle_of_a_take_is_taken_with_the_others() -> None:
    log = EventLog(max_events=10, max_bytes=1_000)
    cursor = Cursor()
    log.cursors.append(cursor)
    log._items = Interrupted([draft(1), draft(2)], handler=lambda: log.accept(draft(3)))
    taken = log.take(cursor, 10)
    assert [one.number for one in taken] == [1, 2, 3]
