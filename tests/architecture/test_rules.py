"""Rules of the house that no linter knows."""

from __future__ import annotations

import ast
import re
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
from support.processes import run

import spanforge
from spanforge import sdk

_ROOT = Path(__file__).parents[2]
_PACKAGE = _ROOT / "spanforge"
_MODULES = sorted(_PACKAGE.rglob("*.py"))


def test_floors_hold():
    checker = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([checker], cwd=_ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_modules_are_small():
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in _MODULES}
    assert statistics.median(lengths.values()) <= 200
    assert not [str(path) for path, length in lengths.items() if length > 500]


def test_one_broad_except():
    broad = []
    for path in _MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ExceptHandler):
                names = "" if node.type is None else ast.unparse(node.type)
                if node.type is None or re.search(r"\b(Exception|BaseException)\b", names):
                    broad.append(path.relative_to(_ROOT).as_posix())
    assert broad == ["spanforge/delivery/guard.py"]


@pytest.mark.parametrize(
    ("calls", "home"), [(r"os\.environ|os\.getenv", "config.py"), (r"\btime\.time\w*\(", "_clock.py")]
)
def test_what_has_one_reader(calls, home):
    readers = {path.name for path in _MODULES if re.search(calls, path.read_text(encoding="utf-8"))}
    assert readers <= {home}


@pytest.mark.parametrize("module", [spanforge, sdk])
def test_the_door_gives_what_it_names(module):
    for name in module.__all__:
        assert getattr(module, name) is not None


def test_the_door_says_what_is_gone():
    with pytest.raises(ImportError, match="not part of spanforge 2"):
        from spanforge.sdk import sf_pii  # noqa: F401
    with pytest.raises(AttributeError, match="spanforge 2 traces RAG"):
        spanforge.redact  # noqa: B018


def test_the_reference_without_its_extra_names_it(tmp_path):
    body = "import sys; sys.modules['numpy'] = None\nfrom spanforge.reference import Pipeline"
    done = run(body, tmp_path)
    assert "the reference RAG needs the 'reference' extra: pip install 'spanforge[reference]'" in done.stderr


def test_the_top_level_holds_what_was_agreed():
    git = shutil.which("git") or pytest.skip("git is not installed")
    listed = subprocess.run([git, "ls-files"], cwd=_ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    top = {line.partition("/")[0] for line in listed.stdout.splitlines()}
    assert top <= {
        ".ci", ".gitignore", "CHANGELOG.md", "LICENSE", "README.md",
        "adr", "docs", "pyproject.toml", "spanforge", "tests",
    }  # fmt: skip
