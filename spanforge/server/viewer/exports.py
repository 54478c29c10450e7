"""A session as a file to take away, in the forms of other standards."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from spanforge.conventions.ocsf import datastore_events
from spanforge.conventions.session import Session
from spanforge.conventions.tez import bundle_id
from spanforge.conventions.transparency import transparency
from spanforge.server.viewer.otlp_json import otlp_json

# The one place where a bundle is written; it is a sink's, and no part of the SDK's door.
from spanforge.sinks.tez_bundle import write_bundle

__all__ = ["FORMS", "Form", "export"]


@dataclass(frozen=True, slots=True)
class Form:
    """A form of export: what the button says, and what the file is."""

    label: str
    suffix: str
    media_type: str
    make: Callable[[Session], bytes]


def export(session: Session, name: str) -> tuple[str, bytes, str]:
    """Return the file name, the content and the media type of an export.

    Args:
        session: The session.
        name: One of `FORMS`.

    Raises:
        TransparencyError: The trace does not say enough for the record; the message says what is missing.
        KeyError: There is no such form.
    """
    form = FORMS[name]
    return f"{bundle_id(session.session_id)}{form.suffix}", form.make(session), form.media_type


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2, allow_nan=False) + "\n").encode("ascii")


def _tez(session: Session) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "session.tez"
        write_bundle(session, path)
        return path.read_bytes()


def _ocsf(session: Session) -> bytes:
    lines = (json.dumps(event, allow_nan=False) for event in datastore_events(session))
    return "".join(f"{line}\n" for line in lines).encode("ascii")


FORMS: Final[Mapping[str, Form]] = {
    "transparency": Form(
        "Transparency record", ".transparency.json", "application/json", lambda session: _json(transparency(session))
    ),
    "tez": Form("Tez bundle", ".tez", "application/zip", _tez),
    "ocsf": Form("OCSF events", ".ocsf.jsonl", "application/x-ndjson", _ocsf),
    "otlp": Form("OTLP JSON", ".otlp.json", "application/json", lambda session: _json(otlp_json(session))),
}
"""The forms, in the order of the buttons."""
