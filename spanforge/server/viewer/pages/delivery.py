"""What arrived, what was lost, and what cannot be known from here."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from spanforge.server.viewer.delivery import ledgers, store_facts
from spanforge.server.viewer.shell import shell_of

__all__ = ["delivery"]


def delivery(request: Request) -> Response:
    """Show the ledgers of this process, and what the store tells.

    A ledger counts the events of everybody, so one organisation is not shown it.
    """
    shell = shell_of(request)
    org = shell.org(request)
    with shell.asking() as connection:
        facts = store_facts(connection, org)
    return shell.page(
        request, "delivery.html", active="delivery", facts=facts, ledgers=ledgers() if org is None else []
    )
