"""Something to try the server with: the bundled corpus, and a key for it."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Final

from spanforge.reference import DataSource, Document, User

if TYPE_CHECKING:
    from spanforge.server.service import Service

_USER: Final = User(user_id="demo", org_id="demo", roles=frozenset({"admin", "metrics"}))
_SOURCE: Final = "bundled"


def furnish(service: Service) -> str:
    """Ingest the bundled corpus for the organisation `demo`, and return a key that may do everything there."""
    folder = resources.files("spanforge.reference") / "corpus"
    documents = [
        Document(document_id=file.name, content=file.read_bytes(), name=file.name)
        for file in sorted(folder.iterdir(), key=lambda file: file.name)
        if file.name.endswith(".md")
    ]
    with service.tenants.use(_USER.org_id) as tenant:
        source = DataSource(data_source_id=_SOURCE, org_id="demo", owner_id="demo", name="Bundled corpus")
        tenant.pipeline.put_source(source, _USER)
        tenant.pipeline.ingest(documents, _SOURCE, user=_USER)
    return service.keys.add(_USER)
