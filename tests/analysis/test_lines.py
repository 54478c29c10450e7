"""Lines as files have them: whatever they hold, every engine takes the same ones and makes the same of them."""

from __future__ import annotations

from collections import Counter
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from support.engines import by_events, by_python, by_store, by_viewer, in_bulk
from support.golden import Recorder, generated
from support.lines import logs
from support.stored import LAW

from spanforge.namespaces.event import Event
from spanforge.namespaces.payload import LARGEST, LARGEST_SUM
from spanforge.namespaces.stages import PAYLOADS
from spanforge.reader.plain import plain
from spanforge.reader.records import record_of

pytestmark = pytest.mark.timeout(600)

_NUMBER = count()


@given(several=st.lists(logs(), min_size=4, max_size=8))
@settings(LAW, max_examples=settings.default.max_examples // 10)
def test_bulk_and_parquet_say_what_python_says(several: list[list[bytes]], tmp_path: Path) -> None:
    path = _written(tmp_path, _apart(several))
    expected = by_python(path)
    assert in_bulk(path) == expected
    assert by_python(_as_table(path)) == expected


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
@given(several=st.lists(logs(), min_size=8, max_size=16))
@settings(LAW, max_examples=3, derandomize=True, database=None, phases=[Phase.generate])
def test_spark_says_what_python_says(several: list[list[bytes]], tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="Spark is not installed: lines on Spark were not tried (extra spark)")
    path = _written(tmp_path, _apart(several))
    assert in_bulk(path, "spark") == by_python(path)


@given(lines=logs())
@settings(LAW)
def test_whole_events_and_sessions_that_left_memory_say_the_same(lines: list[bytes], tmp_path: Path) -> None:
    path = _written(tmp_path, lines)
    expected = by_python(path)
    assert by_python(path, hot=2) == expected
    assert by_events(path) == expected


@given(lines=logs(), cuts=st.lists(st.integers(0, 20), max_size=3))
@settings(LAW)
def test_a_store_says_the_same_however_it_is_written(lines: list[bytes], cuts: list[int], tmp_path: Path) -> None:
    path = _written(tmp_path, lines)
    expected, _ = by_python(path)
    assert by_store(path, cuts) == expected
    assert by_events(path, unique=True)[0] == expected


@given(lines=logs())
@settings(LAW, max_examples=settings.default.max_examples // 3)
def test_the_viewer_says_the_same(lines: list[bytes], tmp_path: Path) -> None:
    path = _written(tmp_path, lines)
    assert by_viewer(path) == by_python(path)[0]


def test_a_sum_beyond_64_bits_stands_at_the_largest_everywhere(tmp_path: Path) -> None:
    line = Recorder("s").add(1, generated("s", prompt_tokens=LARGEST, output_tokens=1)).encode()
    event_id = Event.decode(line).event_id.encode()
    many = [line.replace(event_id, event_id[:-4] + b"%04d" % number) for number in range(LARGEST_SUM // LARGEST + 2)]
    path = _written(tmp_path, many)
    [figures] = (expected := by_python(path)[0]).values()
    assert (figures["total_input_tokens"], figures["total_output_tokens"]) == (LARGEST_SUM, len(many))
    assert in_bulk(path)[0] == by_store(path) == expected


@given(lines=logs())
@settings(LAW)
def test_a_plain_line_is_what_decoding_makes_of_it(lines: list[bytes]) -> None:
    for line in lines:
        if (known := plain(line)) is not None:
            event = Event.decode(line)
            assert record_of(event, damaged := Counter[str]()) is not None, damaged
            payload = PAYLOADS[event.event_type]
            assert payload.from_dict(known["payload"]) == payload.from_dict(event.payload)


def _written(folder: Path, lines: list[bytes]) -> Path:
    path = folder / f"{next(_NUMBER)}.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def _as_table(path: Path) -> Path:
    table = path.with_suffix(".parquet")
    parquet.write_table(pa.table({"line": path.read_bytes().split(b"\n")[:-1]}), table)
    return table


def _apart(several: list[list[bytes]]) -> list[bytes]:
    """Give the lines of several logs with sessions of their own, so that one run of an engine answers for all."""
    return [
        line.replace(b"chosen-by-caller", b"chosen-%d" % number).replace(
            b"01KDVD6H0000000000", b"01KDVD6H00000%05d" % number
        )
        for number, lines in enumerate(several)
        for line in lines
    ]
