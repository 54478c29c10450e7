"""`spanforge read-record FILE`: the transparency record of a Tezit bundle, whichever id it stands under."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spanforge.cli._output import print_json
from spanforge.cli._params import path
from spanforge.standards.tez import STANDARD_ID, VENDOR_ID


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("read-record", help="Print the transparency record of a Tezit bundle.")(_read_record)


def _read_record(
    bundle: Annotated[
        Path, typer.Argument(metavar="FILE", parser=path("FILE"), help="A bundle: a ZIP file, or a folder.")
    ],
) -> None:
    from spanforge.standards.tez_bundle import read_record  # noqa: PLC0415  loads zipfile only when used

    extension_id, record = read_record(bundle)
    print_json({"extension_id": extension_id, "extension_ids": [VENDOR_ID, STANDARD_ID], "record": record})
