"""What goes wrong with test data."""

from __future__ import annotations

from pathlib import Path


class DatasetError(ValueError):
    """A test set cannot be read.

    The message names the file, the line and the field, never the text that stands there.

    Attributes:
        path: The file or folder.
        line: Line number from 1, or None where the fault is not on one line.
        field: The field at fault, or None.
    """

    def __init__(self, path: Path, problem: str, *, line: int | None = None, field: str | None = None) -> None:
        place = f"{path}" if line is None else f"{path}:{line}"
        subject = "" if field is None else f" field {field!r}"
        super().__init__(f"{place}:{subject} {problem}")
        self.path = path
        self.line = line
        self.field = field
