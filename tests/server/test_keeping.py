"""What a server forgets by age: events and ended jobs, and neither documents nor what is at work."""

from __future__ import annotations

import pytest
from support.api import PARIS, Api

from spanforge.exceptions import ConfigError
from spanforge.sdk import ServerSettings, configure, sf_rag
from spanforge.server.keeping import forget_older

DAY_S = 86_400.0


def _events(api: Api) -> bytes:
    sf_rag.flush()
    return b"".join(path.read_bytes() for path in api.home.glob("events.sqlite*"))


def test_what_is_old_goes_and_documents_stay(api: Api) -> None:
    configure(sinks=[f"sqlite:{api.service.events}"])
    ann = api.key()
    job = api.ingest(ann, api.source(ann), {"france.md": PARIS})
    session = api.query(ann).headers["X-Spanforge-Session"]
    sf_rag.flush()
    path = f"/api/rag/ingest/{job['jobId']}"
    forget_older(api.service.events, api.service.tenants, DAY_S)
    assert api.client.get(path, headers=ann).status_code == 200
    assert session.encode() in _events(api)
    forget_older(api.service.events, api.service.tenants, 1e-6)
    assert api.client.get(path, headers=ann).status_code == 404
    rated = api.client.post(f"/api/rag/sessions/{session}/feedback", json={"rating": "star_1"}, headers=ann)
    assert rated.status_code == 404
    assert api.query(ann).json()["answer"] == "Paris [1]"


@pytest.mark.parametrize(("keep", "seconds"), [("", None), ("12h", 43_200.0), ("30d", 30 * DAY_S)])
def test_a_time_is_hours_or_days(keep: str, seconds: float | None) -> None:
    assert ServerSettings.load({"keep": keep}).keep_s == seconds


@pytest.mark.parametrize("keep", ["30", "d", "0d", "-1d", "1w", "1.5h", "30d\n"])
def test_anything_else_is_refused(keep: str) -> None:
    with pytest.raises(ConfigError, match=r"^keep: "):
        ServerSettings.load({"keep": keep})
