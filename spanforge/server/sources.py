"""Data sources of one organisation, as one of its users may see and change them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ulid import ULID

from spanforge.reference import DataSource
from spanforge.reference.access import may_change, may_query
from spanforge.reference.failures import PermissionDenied
from spanforge.server.models import Source
from spanforge.server.problems import Problem

if TYPE_CHECKING:
    from spanforge.reference import User
    from spanforge.server.jobs import JobRunner
    from spanforge.server.models import SourceRequest
    from spanforge.server.tenants import Tenant


def visible(tenant: Tenant, user: User) -> list[Source]:
    """Return the sources the user may query."""
    before = tenant.store.names()
    found = tenant.pipeline.sources(user)
    # A source has a name from before it is there; of one that is deleted meanwhile it was known before.
    names = {**before, **tenant.store.names()}
    return [Source.of(source, names.get(source.data_source_id, source.data_source_id)) for source in found]


def create(tenant: Tenant, user: User, wanted: SourceRequest) -> Source:
    """Create a source that belongs to the user.

    Its id is made here: one that clients choose would tell them, by being taken, of sources they may not see.
    """
    source = DataSource(
        data_source_id=str(ULID()),
        org_id=user.org_id,
        owner_id=user.user_id,
        visibility=wanted.visibility,
        roles=frozenset(wanted.roles),
        teams=frozenset(wanted.teams),
        user_ids=frozenset(wanted.users),
    )
    with tenant.writing:
        tenant.store.put_name(source.data_source_id, wanted.name)
        tenant.pipeline.put_source(source, user)
    return Source.of(source, wanted.name)


def check_writable(tenant: Tenant, user: User, source_id: str) -> None:
    """Check that the user may change a source.

    Raises:
        PermissionDenied: The user may see it and not change it.
        Problem: There is none that the user may see.
    """
    source = tenant.pipeline.catalog.source(tenant.org_id, source_id)
    if source is not None and may_change(user, source):
        return
    if source is not None and may_query(user, source):
        raise PermissionDenied
    raise Problem("NOT_FOUND")


def delete(tenant: Tenant, user: User, source_id: str, jobs: JobRunner) -> None:
    """Delete a source with everything of it: passages, vectors, jobs, and uploads that wait.

    Raises:
        PermissionDenied: The user may see it and not change it.
        Problem: There is none that the user may see.
    """
    with tenant.writing:
        check_writable(tenant, user, source_id)
        # Jobs first: from here on none of them writes.
        jobs.forget(tenant, source_id)
        tenant.pipeline.delete(source_id, user=user)
