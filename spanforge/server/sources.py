"""Data sources of one organisation, as one of its users may see and change them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ulid import ULID

from spanforge.reference import DataSource
from spanforge.reference.access import may_change, may_query
from spanforge.reference.failures import PermissionDenied
from spanforge.server.auth.permissions import ADMINS
from spanforge.server.models import DocumentList, Source, SourceList, StoredDocument
from spanforge.server.problems import Problem

if TYPE_CHECKING:
    from spanforge.reference import User
    from spanforge.server.models import SharingRequest, SourceRequest
    from spanforge.server.tenants import Tenant


def visible(tenant: Tenant, user: User) -> SourceList:
    """Return the sources the user may query."""
    return SourceList(sources=[Source.of(source, user) for source in tenant.pipeline.sources(user)])


def create(tenant: Tenant, user: User, wanted: SourceRequest) -> Source:
    """Create a source that belongs to the user.

    Its id is made here: one that clients choose would tell them, by being taken, of sources they may not see.
    """
    source = wanted.applied(
        DataSource(data_source_id=str(ULID()), org_id=user.org_id, owner_id=user.user_id, name=wanted.name)
    )
    tenant.pipeline.put_source(source, user)
    return Source.of(source, user)


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


def share(tenant: Tenant, user: User, source_id: str, wanted: SharingRequest) -> Source:
    """Share a source with others than before: for its owner, and for whoever administers the organisation.

    Raises:
        PermissionDenied: The user may see it and not change it.
        Problem: There is none that the user may see.
    """
    with tenant.pipeline.writing:
        source = tenant.pipeline.catalog.source(tenant.org_id, source_id)
        if source is None or not user.roles & ADMINS:
            check_writable(tenant, user, source_id)
        if source is None:
            raise Problem("NOT_FOUND")
        shared = wanted.applied(source)
        tenant.pipeline.catalog.put_source(shared)
    return Source.of(shared, user)


def documents(tenant: Tenant, user: User, source_id: str) -> DocumentList:
    """Return the documents of a source that the user may query.

    Raises:
        Problem: There is none.
    """
    source = tenant.pipeline.catalog.source(tenant.org_id, source_id)
    if source is None or not may_query(user, source):
        raise Problem("NOT_FOUND")
    found = tenant.pipeline.catalog.documents(tenant.org_id, source_id)
    return DocumentList(documents=[StoredDocument(document_id=one.document_id, chunks=one.chunks) for one in found])


def delete_document(tenant: Tenant, user: User, source_id: str, document_id: str) -> None:
    """Delete one document with everything of it.

    Raises:
        PermissionDenied: The user may see the source and not change it.
        Problem: There is no such source that the user may see, or no such document in it.
    """
    with tenant.pipeline.writing:
        check_writable(tenant, user, source_id)
        if tenant.pipeline.catalog.document(tenant.org_id, source_id, document_id) is None:
            raise Problem("NOT_FOUND")
        tenant.pipeline.delete(source_id, [document_id], user=user)


def delete(tenant: Tenant, user: User, source_id: str) -> None:
    """Delete a source with everything of it: passages, vectors, jobs, and uploads that wait.

    Raises:
        PermissionDenied: The user may see it and not change it.
        Problem: There is none that the user may see.
    """
    with tenant.pipeline.writing:
        check_writable(tenant, user, source_id)
        tenant.pipeline.delete(source_id, user=user)
