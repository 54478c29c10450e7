"""A session as a file to take away, in the forms of other standards."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

from spanforge.standards.ocsf import security_events
from spanforge.standards.tez import bundle_id

# The one place where a bundle is written; it is a sink's, and no part of the SDK's door.
from spanforge.standards.tez_bundle import write_bundle
from spanforge.standards.transparency import transparency
from spanforge.standards.tree.session import Session
from spanforge.viewer.otlp_json import otlp_json
from spanforge.viewer.queries import SessionRow
from spanforge.viewer.shown import moment

__all__ = ["FORMS", "Form", "as_csv", "as_json", "export"]


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


def as_csv(rows: Sequence[SessionRow]) -> bytes:
    """Return a list of sessions as CSV, times in UTC; what a spreadsheet would take for a formula is text."""
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, _COLUMNS)
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _cell(value) for name, value in _record(row).items()})
    return file.getvalue().encode("utf-8", "backslashreplace")


def as_json(rows: Sequence[SessionRow]) -> bytes:
    """Return a list of sessions as JSON, times in UTC."""
    return _json([_record(row) for row in rows])


def _record(row: SessionRow) -> dict[str, Any]:
    return {**asdict(row), "started": moment(row.started, "microseconds").replace(" ", "T") + "Z"}


def _cell(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _raw(session: Session) -> bytes:
    return b"".join(stage.event.encode() + b"\n" for stage in session.stages)


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2, allow_nan=False) + "\n").encode("ascii")


def _tez(session: Session) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "session.tez"
        write_bundle(session, path)
        return path.read_bytes()


def _ocsf(session: Session) -> bytes:
    lines = (json.dumps(event, allow_nan=False) for event in security_events(session))
    return "".join(f"{line}\n" for line in lines).encode("ascii")


_COLUMNS: Final = tuple(field.name for field in fields(SessionRow))
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
FORMS: Final[Mapping[str, Form]] = {
    "transparency": Form(
        "Transparency record", ".transparency.json", "application/json", lambda session: _json(transparency(session))
    ),
    "tez": Form("Tez bundle", ".tez", "application/zip", _tez),
    "ocsf": Form("OCSF events", ".ocsf.jsonl", "application/x-ndjson", _ocsf),
    "events": Form("Events", ".jsonl", "application/x-ndjson", _raw),
    "otlp": Form("OTLP JSON", ".otlp.json", "application/json", lambda session: _json(otlp_json(session))),
}
"""The forms, in the order of the buttons."""
