"""The grounder needs nothing but the standard library at run time."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

from spanforge.reference import grounding

TRAINING_ONLY = {"train.py", "fitting.py", "perturbations.py"}


def imported(file: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return names | {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}


def test_only_itself_and_the_standard_library_are_imported():
    files = [file for file in Path(grounding.__file__).parent.glob("*.py") if file.name not in TRAINING_ONLY]
    assert len(files) > 10
    for file in files:
        foreign = {
            name
            for name in imported(file)
            if name.partition(".")[0] not in sys.stdlib_module_names and not name.startswith(grounding.__name__)
        }
        assert not foreign, (file.name, foreign)
