"""Every Python example in the README and the docs runs, each page in a process and a folder of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_RUN = """
import sys
from sybil.document import Document
from sybil.parsers.markdown import PythonCodeBlockParser
from sybil import Sybil

sybil = Sybil([PythonCodeBlockParser()])
document = Document.parse(sys.argv[1], *sybil.parsers)
examples = list(document.examples())
for example in examples:
    example.evaluate()
print(len(examples))
"""


def _pages() -> list[Path]:
    pages = [path for path in (_ROOT / "docs").rglob("*.md") if "_build" not in path.parts]
    return [_ROOT / "README.md", *sorted(path for path in pages if "```python" in path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", _pages(), ids=lambda page: str(page.relative_to(_ROOT)))
def test_examples_run(page: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", _RUN, str(page)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout.split()[-1]) > 0
