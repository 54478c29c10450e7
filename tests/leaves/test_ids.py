"""Ids by the fast path: they read and sort as python-ulid's do, and keep order whatever the clock says."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from ulid import ULID

from spanforge import _ids

NUMBERS = st.integers(0, (1 << 128) - 1)
MOMENTS = st.integers(0, 4_000_000_000_000_000_000)


@given(NUMBERS)
def test_the_text_is_the_one_python_ulid_makes(number: int) -> None:
    text = _ids.encode(number)
    assert text == str(ULID.from_int(number))
    assert _ids.decode(text) == _ids.decode(text.lower()) == number


@given(NUMBERS, NUMBERS)
def test_texts_sort_as_their_numbers_do(one: int, other: int) -> None:
    assert (_ids.encode(one) < _ids.encode(other)) == (one < other)


@given(st.text(st.characters(exclude_categories=[])))
def test_what_is_no_ulid_is_none(text: str) -> None:
    try:
        expected = int(ULID.from_str(text))
    except ValueError:
        expected = None
    assert _ids.decode(text) == expected


@given(st.lists(MOMENTS | st.just(1_700_000_000_000_000_000), min_size=2, max_size=200))
def test_ids_grow_while_the_clock_stands_still_steps_back_or_jumps(clock: list[int]) -> None:
    source = _ids.IdSource()
    numbers = [source.mint(wall_ns) for wall_ns in clock]
    assert all(earlier < later for earlier, later in pairwise(numbers))
    latest = 0
    for wall_ns, number in zip(clock, numbers, strict=True):
        latest = max(latest, wall_ns // 1_000_000)
        assert ULID.from_int(number).milliseconds == latest
        assert len(_ids.span_id_of(number)) == 16
