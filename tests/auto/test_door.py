"""`setup()` imports nothing, in either order of imports; `teardown()` puts back the very same objects."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from spanforge import auto
from spanforge.exceptions import ConfigError

FRAMEWORKS = ("langchain_core", "llama_index", "haystack", "openai", "anthropic")
AFTER = """
import json, sys
from spanforge import auto
auto.setup()
loaded = sorted(name for name in sys.modules if name.partition(".")[0] in {frameworks!r})
import openai._base_client as client
wrapped = hasattr(client.SyncAPIClient.request, "__wrapped__")
auto.teardown()
print(json.dumps([loaded, wrapped, hasattr(client.SyncAPIClient.request, "__wrapped__"), len(sys.meta_path)]))
"""
BEFORE = """
import json, sys
finders = len(sys.meta_path)
import openai._base_client as client
request = client.SyncAPIClient.request
loaded = set(sys.modules)
from spanforge import auto
auto.setup()
new = sorted(name for name in set(sys.modules) - loaded if name.partition(".")[0] in {frameworks!r})
wrapped = client.SyncAPIClient.request is not request
auto.teardown()
print(json.dumps([new, wrapped, client.SyncAPIClient.request is not request, len(sys.meta_path)]))
"""


@pytest.mark.parametrize("program", [AFTER, BEFORE], ids=["imported after", "imported before"])
def test_setup_imports_no_framework_and_teardown_leaves_none_of_it(program: str) -> None:
    pytest.importorskip("openai", reason="openai is not installed")
    clean = int(_printed("import sys; print(len(sys.meta_path))"))
    assert json.loads(_printed(program.format(frameworks=FRAMEWORKS))) == [[], True, False, clean]


def _printed(program: str) -> str:
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, check=True, text=True, timeout=100).stdout


def test_a_report_is_a_set_and_says_more() -> None:
    report = auto.setup({"openai"})
    try:
        assert auto.setup({"openai"}) == set()
        assert report == auto.patched_integrations() == set(auto.status())
        if report:
            assert report == {"openai:rag"}
            assert report.frameworks["openai"] == "traced"
            assert report.versions["openai"]
    finally:
        assert auto.teardown() == report
    assert auto.teardown() == set()


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(ConfigError):
        auto.setup({"no such framework"})
    with pytest.raises(ConfigError):
        auto.setup(sessions="never")  # pyright: ignore[reportArgumentType]


def test_a_version_that_is_too_old_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spanforge.auto.version", lambda _: "0.1.0")
    assert auto.setup() == set()
    assert set(auto.status().frameworks.values()) == {"unsupported"}


def test_what_is_not_installed_is_said_to_be_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def version(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("spanforge.auto.version", version)
    assert auto.setup({"openai"}, verbose=True) == set()
    assert auto.status().versions == {}
    assert "spanforge.auto: openai: not installed" in capsys.readouterr().out


def test_what_is_let_go_of_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    undone = auto.setup()
    auto.teardown(verbose=True)
    assert capsys.readouterr().out == "".join(f"spanforge.auto: {name}: restored\n" for name in sorted(undone))


PROGRAM = """
import sys
import beside

print(__name__, sys.argv, __file__, __spec__ and __spec__.name, sys.modules["__main__"].beside is beside, sys.path[0])
if sys.argv[1:] == ["fail"]:
    raise LookupError("mine")
sys.exit(3)
"""


def _ran(tmp_path: Path, *command: str, **environment: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, timeout=100, cwd=tmp_path, check=False,
        env={**os.environ, **environment},
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "program",
    [["app.py", "fail"], ["-m", "app", "x"], ["none.py"], ["folder"],
     *(pytest.param(program, marks=pytest.mark.slow) for program in (
         ["app.py", "--flag", "x"], ["-m", "app", "fail"], ["bad.py"], ["-m", "none"]))],
    ids=" ".join,
)  # fmt: skip
def test_a_program_runs_as_by_python_itself(program: list[str], tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(PROGRAM)
    (tmp_path / "bad.py").write_text("not python\n")
    (tmp_path / "beside.py").write_text("")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "__main__.py").write_text("import sys; print(__name__, sys.argv); sys.exit(3)\n")
    assert _ran(tmp_path, "-m", "spanforge.run", *program) == _ran(tmp_path, *program)


def test_a_program_is_run_traced(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        "from spanforge import auto\nprint(sorted(set(auto.status().frameworks.values())))"
    )
    code, said, _ = _ran(tmp_path, "-m", "spanforge.run", "app.py")
    assert (code, "off" in said) == (0, False)


@pytest.mark.parametrize(("value", "is_traced"), [("1", True), ("TRUE", True), ("0", False), ("", False)])
def test_the_environment_asks_for_it_and_nothing_of_a_framework_is_imported(
    value: str, is_traced: bool, tmp_path: Path
) -> None:
    pytest.importorskip("openai", reason="openai is not installed")
    (tmp_path / "app.py").write_text(
        "import sys\nimport spanforge\n"
        f"loaded = {FRAMEWORKS!r}\n"
        "print(sorted(name for name in sys.modules if name.partition('.')[0] in loaded))\n"
        "import openai._base_client as client\nprint(hasattr(client.SyncAPIClient.request, '__wrapped__'))\n"
    )
    assert _ran(tmp_path, "app.py", SPANFORGE_AUTO=value) == (0, f"[]\n{is_traced}\n", "")
