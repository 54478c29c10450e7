"""The command line, each call in a process of its own: forked from one that has loaded what the verbs need."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

__all__ = ["run"]

_PARENT = """
import json, os, sys
from spanforge.cli import main
from spanforge.cli._app import build

build()
for call in sys.stdin:
    arguments, folder, environment, out, err = json.loads(call)
    child = os.fork()
    if not child:
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        for number, path in ((0, os.devnull), (1, out), (2, err)):
            os.dup2(os.open(path, os.O_RDWR | os.O_CREAT), number)
        sys.exit(main(arguments))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@cache
def _parent() -> subprocess.Popen[str]:
    """Start the process that forks; it ends with the tests, which close its input."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-W", "error", "-c", _PARENT]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def run(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Call `spanforge` with these arguments, and return what it printed and its exit code."""
    parent = _parent()
    assert parent.stdin
    assert parent.stdout
    with TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        call = [arguments, str(cwd), {**os.environ, **environment}, str(out), str(err)]
        parent.stdin.write(json.dumps(call) + "\n")
        parent.stdin.flush()
        code = int(parent.stdout.readline())
        return subprocess.CompletedProcess(list(arguments), code, out.read_text(), err.read_text())
