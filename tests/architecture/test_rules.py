"""Rules of the house that no linter knows."""

from __future__ import annotations

import ast
import inspect
import re
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
from support.processes import run

import spanforge
from spanforge import exceptions, sdk
from spanforge.sdk import _keywords
from spanforge.sdk._keywords import SettingsDetails

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
    assert broad == ["spanforge/_guard.py"]


@pytest.mark.parametrize(
    ("calls", "home"),
    [
        # The door looks whether there is something to read, because config costs an import that most do without.
        (r"os\.environ|os\.getenv", {"spanforge/config.py", "spanforge/__init__.py"}),
        (r"\btime\.time\w*\(", {"spanforge/_clock.py"}),
    ],
    ids=["environment", "clock"],
)
def test_what_has_one_reader(calls, home):
    readers = {path for path in _MODULES if re.search(calls, path.read_text(encoding="utf-8"))}
    assert {path.relative_to(_ROOT).as_posix() for path in readers} <= home


@pytest.mark.parametrize("module", [spanforge, sdk])
def test_the_door_gives_what_it_names(module):
    for name in module.__all__:
        assert getattr(module, name) is not None


def test_the_door_is_typed_name_by_name():
    """Both type checkers read a file that uses every public name."""
    used = (_ROOT / "tests/typing/public_api.py").read_text(encoding="utf-8")
    imported = next(
        node for node in ast.walk(ast.parse(used)) if isinstance(node, ast.ImportFrom) and node.module == "spanforge"
    )
    assert sorted(alias.name for alias in imported.names) == sorted(spanforge.__all__)
    door = ast.parse((_PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    seen = {alias.name for node in ast.walk(door) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert set(spanforge.__all__) <= seen


def test_every_error_is_at_the_door():
    assert set(exceptions.__all__) <= set(spanforge.__all__)
    assert all(getattr(spanforge, name) is getattr(exceptions, name) for name in exceptions.__all__)


def test_the_door_hides_no_type_behind_any():
    owners = [spanforge.SFRAGClient, spanforge.SFFeedbackClient]
    calls = [getattr(owner, name) for owner in owners for name in dir(owner) if not name.startswith("_")]
    calls += [spanforge.configure, spanforge.read_events, spanforge.follow]
    vague = {
        call.__qualname__ for call in calls if callable(call) and re.search(r"\bAny\b", str(inspect.signature(call)))
    }
    assert not vague


def test_configure_takes_what_settings_have():
    assert set(SettingsDetails.__annotations__) == set(spanforge.Settings.model_fields)


@pytest.mark.parametrize(
    ("details", "call"),
    [
        (_keywords.QueryDetails, "trace_query"),
        (_keywords.RetrievalDetails, "trace_retrieval"),
        (_keywords.RerankDetails, "trace_rerank"),
        (_keywords.GenerationDetails, "trace_generation"),
    ],
)
def test_scopes_take_what_trace_calls_take(details, call):
    taken = set(inspect.signature(getattr(spanforge.SFRAGClient, call)).parameters)
    assert set(details.__annotations__) == taken - {"self", "query", "chunks", "model"} - (
        set() if call == "trace_query" else {"session_id"}
    )


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
