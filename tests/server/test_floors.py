"""What we depend on: no version with a known hole, which a request or a document might reach, is admitted."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

_EXTRAS = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["optional-dependencies"]

HOLES = [
    ("server", "PyJWT", "2.10.0", "CVE-2024-53861: an issuer matches in part"),
    ("server", "PyJWT", "2.11.0", "CVE-2026-32597: unknown critical headers are accepted"),
    ("server", "PyJWT", "2.12.1", "CVE-2026-48526: forged tokens"),
    ("server", "cryptography", "46.0.4", "CVE-2026-26007: points of small subgroups"),
    ("server", "cryptography", "49.0.0", "CVE-2026-69247: a padding oracle"),
    ("ui", "starlette", "0.47.1", "CVE-2025-54121: large files in forms block the loop"),
    ("ui", "starlette", "0.49.0", "CVE-2025-62727: ranges of files in quadratic time"),
    ("ui", "starlette", "1.3.0", "CVE-2026-54283: limits of forms are not kept"),
    ("ui", "h11", "0.15.0", "CVE-2025-43859: chunked bodies are read too leniently"),
    ("ui", "jinja2", "3.1.5", "CVE-2025-27516: out of the sandbox"),
    ("ui", "python-multipart", "0.0.26", "CVE-2026-42561: part headers without bound"),
    ("ui", "python-multipart", "0.0.29", "GHSA-5rvq: forms in quadratic time"),
    ("reference", "lxml", "6.0.2", "CVE-2026-41066: local files as entities"),
    ("reference", "filelock", "3.20.2", "CVE-2025-68146, CVE-2026-22701: locks through links"),
]


@pytest.mark.parametrize(("extra", "package", "version", "hole"), HOLES, ids=lambda value: str(value)[:20])
def test_no_hole_is_admitted(extra: str, package: str, version: str, hole: str) -> None:
    (found,) = [one for one in map(Requirement, _EXTRAS[extra]) if one.name.lower() == package.lower()]
    assert version not in found.specifier, hole
