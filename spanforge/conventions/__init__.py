"""The same facts in other standards: pure functions, events in, plain data out, one table a standard."""

from __future__ import annotations

from typing import Final

from spanforge.conventions._table import Standard
from spanforge.conventions.aitf import AITF, AITF_LATER
from spanforge.conventions.genai import GENAI
from spanforge.conventions.ocsf import OCSF, OCSF_AITF
from spanforge.conventions.openinference import OPENINFERENCE
from spanforge.conventions.own import OWN
from spanforge.conventions.transparency import TRANSPARENCY

__all__ = ["STANDARDS"]

STANDARDS: Final[tuple[Standard, ...]] = (
    AITF,
    AITF_LATER,
    GENAI,
    OPENINFERENCE,
    OWN,
    OCSF,
    OCSF_AITF,
    TRANSPARENCY,
)
"""Every standard that is written, in the order of the reference page."""
