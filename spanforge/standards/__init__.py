"""The same facts in other standards: pure functions, events in, plain data out, one table a standard."""

from __future__ import annotations

from typing import Final

from spanforge.standards._table import Standard
from spanforge.standards.aitf import AITF, AITF_LATER
from spanforge.standards.genai import GENAI
from spanforge.standards.ocsf import OCSF
from spanforge.standards.ocsf_aitf import OCSF_AITF
from spanforge.standards.openinference import OPENINFERENCE
from spanforge.standards.own import OWN
from spanforge.standards.transparency import TRANSPARENCY

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
