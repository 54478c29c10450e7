"""Importing the SDK starts, opens and writes nothing, and loads three packages besides the standard library."""

from __future__ import annotations

import json

from support.processes import succeed

SCRIPT = """\
import json, os, sys, threading

def descriptors():
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0

before, known = descriptors(), set(sys.modules)
opened = []
def watch(name, args):
    if name == "open" and args[2] & (os.O_WRONLY | os.O_RDWR): opened.append(str(args[0]))
sys.addaudithook(watch)
connected = []
sys.addaudithook(lambda name, args: connected.append(name) if name.startswith("socket.") else None)
from spanforge.sdk import sf_rag
loaded = {name.partition(".")[0] for name in set(sys.modules) - known}
print(json.dumps({
    "foreign": sorted(loaded - set(sys.stdlib_module_names) - {"spanforge"}),
    "threads": threading.active_count(),
    "descriptors": descriptors() - before,
    "written": [path for path in opened if not path.endswith(".pyc") and "__pycache__" not in path],
    "connected": connected,
    "beside": os.listdir("."),
}))
"""

OWN = {"pydantic", "structlog", "ulid"}
THEIRS = {"annotated_types", "pydantic_core", "typing_extensions", "typing_inspection"}
"""What those three load themselves."""

UNLISTED = ("_sysconfigdata", "_xxsubinterpreters")
"""How names of the standard library begin that `sys.stdlib_module_names` does not tell."""


def test_the_import_has_no_effects(tmp_path):
    seen = json.loads(succeed(SCRIPT, tmp_path, PYTHONDONTWRITEBYTECODE="1"))
    foreign = {name for name in seen["foreign"] if not name.startswith(UNLISTED)}
    assert foreign - THEIRS <= OWN
    assert "pydantic" in foreign, "the detector sees what is loaded"
    assert (seen["threads"], seen["descriptors"]) == (1, 0)
    assert (seen["written"], seen["connected"], seen["beside"]) == ([], [], ["script.py"])


def test_the_door_loads_nothing_until_it_is_used(tmp_path):
    body = """\
import json, sys
import spanforge
print(json.dumps(sorted({"pydantic", "structlog", "ulid"} & set(sys.modules))))
"""
    assert json.loads(succeed(body, tmp_path)) == []


def test_a_configured_client_without_events_starts_no_thread(tmp_path):
    body = """\
import threading
from spanforge.sdk import configure, sf_rag
configure(sinks="jsonl:events.jsonl")
sf_rag.get_status()
sf_rag.flush(1)
print(threading.active_count())
"""
    assert succeed(body, tmp_path) == "1\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["script.py"]
