"""Generated pages are as the code says, and links within the repository lead somewhere."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]


def _generator():
    spec = importlib.util.spec_from_file_location("docs_generate", _ROOT / "docs" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", ["settings.md", "events.md", "trace-calls.md", "standards.md"])
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


def test_promises_name_tests_that_exist() -> None:
    text = (_ROOT / "docs" / "explanation" / "promises.md").read_text(encoding="utf-8")
    for path in re.findall(r"`(tests/[\w./]+)`", text):
        assert (_ROOT / path).exists(), path


def test_every_decision_is_listed() -> None:
    index = (_ROOT / "adr" / "README.md").read_text(encoding="utf-8")
    for page in (_ROOT / "adr").glob("0*.md"):
        assert page.name in index, page.name
