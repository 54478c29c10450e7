"""Generated pages are as the code says, and links within the repository lead somewhere."""

from __future__ import annotations

import ast
import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]


def _generator():
    spec = importlib.util.spec_from_file_location("docs_generate", _ROOT / "docs" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", ["settings.md", "events.md", "trace-calls.md", "standards.md", "http-api.md"])
def test_generated_page_is_in_step(page: str) -> None:
    written = (_ROOT / "docs" / "reference" / page).read_text(encoding="utf-8")
    assert written == _generator().PAGES[page](), "run: python docs/generate.py"


@pytest.mark.parametrize(
    "page",
    [_ROOT / "README.md", *sorted((_ROOT / "docs").rglob("*.md")), *sorted((_ROOT / "adr").glob("*.md"))],
    ids=lambda page: str(page.relative_to(_ROOT)),
)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def _proofs() -> list[tuple[str, str]]:
    """Return file and name of every test the page of promises names; `::name` alone is of the file before."""
    text = (_ROOT / "docs" / "explanation" / "promises.md").read_text(encoding="utf-8")
    found: list[tuple[str, str]] = []
    for file, name in re.findall(r"`(tests/[\w./]+)?(?:::(\w+))?`", text):
        if file or name:
            found.append((file or found[-1][0], name))
    return found


def test_promises_name_tests_that_exist() -> None:
    proofs = _proofs()
    assert len(proofs) > 30
    for file, name in proofs:
        tree = ast.parse((_ROOT / file).read_text(encoding="utf-8"))
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        defined = {node.name for node in tree.body if isinstance(node, kinds)}
        assert not name or name in defined, f"{file}::{name}"


def test_every_promise_has_a_proof() -> None:
    page = (_ROOT / "docs" / "explanation" / "promises.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ") and "proved by" not in line]
    assert len(rows) > 15
    assert not [row for row in rows if "`tests/" not in row]


def test_every_decision_is_listed() -> None:
    index = (_ROOT / "adr" / "README.md").read_text(encoding="utf-8")
    for page in (_ROOT / "adr").glob("0*.md"):
        assert page.name in index, page.name


def _extras_named() -> list[tuple[str, str]]:
    """Return page and extra, for each extra that a page tells to install or calls by its name."""
    pages = [_ROOT / "README.md", *(_ROOT / "docs").rglob("*.md")]
    named = re.compile(r"""pip install ["'](?:spanforge|\.)\[([\w,-]+)\]["']|extra `([\w-]+)`""")
    return [
        (page.name, extra)
        for page in pages
        if "_build" not in page.parts
        for several, one in named.findall(page.read_text(encoding="utf-8"))
        for extra in (several or one).split(",")
    ]


def test_extras_that_pages_name_exist() -> None:
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = _extras_named()
    assert len(named) > 10
    assert {extra for _, extra in named} <= set(project["optional-dependencies"])
