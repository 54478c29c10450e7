"""The chain finds the first line that was edited, removed, reordered or inserted."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.stored import EVENTS, LAW, event, events

from spanforge.namespaces.chain import Break, Chain, verify_lines
from spanforge.namespaces.event import Event

KEY = b"k" * 32


def sealed(count: int, *, chain_id: str = "chain-a", key: bytes | None = KEY, start: int = 0) -> list[bytes]:
    return [item.encode() for item in Chain(chain_id, key).seal_all(events(count, start))]


def ids(lines: list[bytes]) -> list[str]:
    return [json.loads(line)["event_id"] for line in lines]


def break_of(lines: list[bytes], key: bytes | None = KEY, expect_last: str = "") -> tuple[int, str] | None:
    found = verify_lines(lines, key, expect_last).first_break
    return found and (found.line, found.fault)


BATCHES = st.lists(EVENTS, min_size=1, max_size=6, unique_by=lambda item: item.event_id)


@given(BATCHES, st.none() | st.binary(min_size=1))
@LAW
def test_whatever_is_sealed_holds(stored: list[Event], key: bytes | None) -> None:
    lines = [item.encode() for item in Chain("c", key).seal_all(stored)]
    verdict = verify_lines(lines, key, stored[-1].event_id)
    assert verdict.ok
    assert (verdict.events, verdict.chains) == (len(stored), {"c": stored[-1].event_id})


def test_sealing_one_by_one_and_together_is_the_same() -> None:
    one = Chain("chain-a", KEY)
    lines: list[bytes] = []
    for item in events(4):
        lines.append(one.seal(item).encode())
        one.commit(item.event_id)
    assert lines == sealed(4)
    assert ids([item.encode() for item in one.seal_all(events(1, 4))]) == [event(4).event_id]


def test_what_was_not_committed_is_not_linked_to() -> None:
    chain = Chain("chain-a", KEY)
    assert [item.prev_id for item in chain.seal_all(events(2))] == ["", event(0).event_id]
    assert chain.seal(event(5)).prev_id == ""


def test_an_event_is_sealed_anew_whatever_it_carries() -> None:
    twice = Chain("b", KEY).seal(Chain("a", b"other").seal(event(1)))
    assert verify_lines([twice.encode()], KEY).ok


@given(st.integers(0, 5), st.data())
@LAW
def test_any_edited_character_is_found(index: int, data: st.DataObject) -> None:
    lines = sealed(6)
    line = bytearray(lines[index])
    position = data.draw(st.integers(0, len(line) - 1))
    line[position] = data.draw(st.integers(32, 126).filter(lambda byte: byte != line[position]))
    lines[index] = bytes(line)
    found = verify_lines(lines, KEY).first_break
    if json.loads(sealed(6)[index]) == _loads(lines[index]):
        assert found is None  # one spelling of the same value for another
    else:
        assert found is not None
        assert found.line in (index + 1, index + 2)


def _loads(line: bytes) -> object:
    try:
        return json.loads(line)
    except ValueError:
        return None


@pytest.mark.parametrize("index", range(5))
def test_removed(index: int) -> None:
    lines = sealed(6)
    del lines[index]
    assert break_of(lines) == (index + 1, "removed or reordered")


def test_reordered() -> None:
    lines = sealed(6)
    lines[2], lines[3] = lines[3], lines[2]
    assert break_of(lines) == (3, "removed or reordered")


def test_repeated() -> None:
    lines = sealed(4)
    assert break_of([*lines[:2], lines[1], *lines[2:]]) == (3, "repeated")
    assert break_of([*lines, lines[1]]) == (5, "removed or reordered")
    assert break_of([*lines, *lines]) == (5, "removed or reordered")


def test_inserted() -> None:
    lines = sealed(4)
    plain = event(9)
    assert break_of([*lines[:2], plain.encode(), *lines[2:]]) == (3, "unsealed")
    unsigned = Chain("chain-b").seal(plain).encode()
    assert break_of([*lines, unsigned]) == (5, "unsigned")
    forged = Chain("chain-b", b"guess").seal(plain).encode()
    assert break_of([*lines, forged]) == (5, "forged or wrong key")
    assert break_of([*lines[:2], b"{}", *lines[2:]]) == (3, "unsealed")
    assert break_of([*lines[:2], b"garbage", *lines[2:]]) == (3, "unreadable")
    assert break_of([*lines[:2], b"[1]", *lines[2:]]) == (3, "unreadable")
    assert break_of([*lines[:2], b"[" * 100_000, *lines[2:]]) == (3, "unreadable")
    assert break_of([*lines[:2], b"\xff", *lines[2:]]) == (3, "unreadable")
    assert break_of([*lines[:2], lines[2].replace(b'"2.0"', b"1e999"), *lines[3:]]) == (3, "unreadable")


def test_without_the_key_checksums_and_links_are_checked() -> None:
    lines = sealed(4)
    assert break_of(lines, key=None) is None
    assert break_of([lines[0], lines[2]], key=None) == (2, "removed or reordered")
    assert break_of(lines, key=b"another") == (1, "forged or wrong key")
    assert break_of([lines[0].replace(b"s1", b"s2")], key=None) == (1, "edited")


def test_a_signature_that_is_no_text_a_signature_can_be() -> None:
    fields = json.loads(sealed(1)[0])
    assert break_of([json.dumps({**fields, "signature": "\udc80"}).encode()]) == (1, "forged or wrong key")
    assert break_of([json.dumps({**fields, "signature": 7}).encode()]) == (1, "unsigned")
    assert break_of([json.dumps({**fields, "checksum": 7}).encode()]) == (1, "unsealed")


@pytest.mark.parametrize(
    "addition", [b'"org_id":"",', b'"note":null,', b'"tags":{},', b'"region":"eu",', b'"signature_2":"x",']
)
def test_a_field_added_is_an_edit_even_if_readers_would_not_see_it(addition: bytes) -> None:
    lines = sealed(3)
    lines[1] = lines[1].replace(b"{", b"{" + addition, 1)
    assert break_of(lines) == (2, "edited")


def test_a_key_given_twice_is_an_edit_whichever_a_reader_takes() -> None:
    lines = sealed(3)
    lines[1] = lines[1].replace(b'"payload":{', b'"payload":{"number":1,', 1)
    assert break_of(lines) == (2, "edited")


def test_fields_of_a_newer_version_are_covered() -> None:
    newer = Event.from_dict({**event(1).to_dict(), "schema_version": "3.1", "region": "eu"})
    line = Chain("a", KEY).seal(newer).encode()
    assert verify_lines([line], KEY).ok
    assert break_of([line.replace(b'"eu"', b'"us"')]) == (1, "edited")


def test_a_cut_tail_shows_only_against_an_expected_last() -> None:
    lines = sealed(5)
    last = ids(lines)[-1]
    assert break_of(lines, expect_last=last) is None
    assert break_of(lines[:-1]) is None
    assert break_of(lines[:-1], expect_last=last) == (5, "tail cut")
    assert break_of([], expect_last=last) == (1, "tail cut")
    assert break_of([*lines[:-1], lines[-1][:40]]) == (5, "unreadable")


def test_many_chains_interleaved_and_each_is_checked() -> None:
    rng = random.Random(5)  # noqa: S311  the same mix each time
    chains = {f"chain-{n}": sealed(20, chain_id=f"chain-{n}", start=100 * n) for n in range(6)}
    queues = [list(lines) for lines in chains.values()]
    mixed: list[bytes] = []
    while queues := [queue for queue in queues if queue]:
        mixed.append(rng.choice(queues).pop(0))
    verdict = verify_lines(mixed, KEY)
    assert verdict.ok
    assert verdict.events == 120
    assert verdict.chains == {name: ids(lines)[-1] for name, lines in chains.items()}
    victim = chains["chain-3"][7]
    position = mixed.index(victim)
    del mixed[position]
    found = verify_lines(mixed, KEY).first_break
    assert found == Break(mixed.index(chains["chain-3"][8]) + 1, "removed or reordered", ids(chains["chain-3"])[8])


def test_a_line_moved_to_another_chain_is_an_edit() -> None:
    line = sealed(1)[0].replace(b"chain-a", b"chain-b")
    assert break_of([line]) == (1, "edited")


def test_blank_lines_and_line_ends_do_not_matter() -> None:
    lines = sealed(3)
    verdict = verify_lines([lines[0] + b"\r\n", b"\n", b"  \r\n", lines[1] + b"\n", lines[2]], KEY)
    assert verdict.ok
    assert verdict.events == 3


def test_torn_lines_can_be_passed_over_and_what_they_hid_is_found() -> None:
    lines = sealed(4)
    torn = lines[0][:50]
    verdict = verify_lines([torn, *lines[:2], torn, *lines[2:]], KEY, skip_unreadable=True)
    assert verdict.ok
    assert (verdict.events, verdict.unreadable) == (4, 2)
    hidden = verify_lines([lines[0], lines[1][:50], *lines[2:]], KEY, skip_unreadable=True)
    assert hidden.first_break == Break(3, "removed or reordered", ids(lines)[2])
    assert not hidden.ok
