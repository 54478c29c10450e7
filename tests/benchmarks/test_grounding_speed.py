"""What judging a claim costs, as ratios to a BM25 library ranking the same ten chunks in the same run."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import pytest

from spanforge.reference.evaluation import read_grounding
from spanforge.reference.grounding import ground_claims
from spanforge.reference.grounding.contexts import PreparedContexts

pytestmark = pytest.mark.benchmark

CLAIMS = Path(__file__).parent.parent / "reference" / "grounding" / "data" / "contradictions.jsonl"
ROUNDS = 7
CHUNK_CHARS = 2_000


@pytest.fixture(scope="module")
def claims() -> list[str]:
    return [pair.claim for pair in read_grounding(CLAIMS)]


@pytest.fixture(scope="module")
def sources() -> list[str]:
    return list(dict.fromkeys(text for pair in read_grounding(CLAIMS) for text in pair.contexts))


def chunks_of(sources: list[str], salt: int) -> list[str]:
    """Ten chunks of about 500 tokens; another salt gives texts never seen before."""
    whole = " ".join(f"{text[:-1]} in case {salt}." for text in sources) * 2
    return [whole[start : start + CHUNK_CHARS] for start in range(0, 10 * CHUNK_CHARS, CHUNK_CHARS)]


def cpu_seconds(work: Callable[[int], object]) -> float:
    times: list[float] = []
    for round_number in range(ROUNDS):
        start = time.process_time()
        work(round_number)
        times.append(time.process_time() - start)
    return median(times)


def test_a_claim_costs_no_more_than_ranking_its_chunks_afresh(
    claims: list[str], sources: list[str], record_property: Callable[[str, object], None]
):
    bm25s = pytest.importorskip("bm25s", reason="the ratio is to bm25s, of the 'reference' extra")
    chunks = chunks_of(sources, 0)

    def rank(_: int) -> None:
        retriever = bm25s.BM25()
        retriever.index(bm25s.tokenize(chunks, show_progress=False), show_progress=False)
        retriever.retrieve(bm25s.tokenize(claims[:1], show_progress=False), k=10, show_progress=False)

    ground_claims(claims[:50], chunks)
    judging = cpu_seconds(lambda _: [ground_claims([claim], chunks) for claim in claims[:50]]) / 50
    ratio = judging / cpu_seconds(rank)
    record_property("claim_to_bm25", round(ratio, 3))
    assert ratio <= 0.3


def test_reading_new_chunks_costs_a_small_multiple_of_indexing_them(
    claims: list[str], sources: list[str], record_property: Callable[[str, object], None]
):
    bm25s = pytest.importorskip("bm25s", reason="the ratio is to bm25s, of the 'reference' extra")
    fresh = [chunks_of(sources, salt) for salt in range(1, ROUNDS + 1)]

    def index(round_number: int) -> None:
        bm25s.BM25().index(bm25s.tokenize(fresh[round_number], show_progress=False), show_progress=False)

    ratio = cpu_seconds(lambda number: ground_claims(claims[:1], fresh[number])) / cpu_seconds(index)
    record_property("new_chunks_to_bm25", round(ratio, 3))
    assert ratio <= 6


def test_work_grows_in_step_with_the_length_of_claim_and_contexts(record_property: Callable[[str, object], None]):
    def flood(words: int) -> str:
        return " ".join(f"word{number % 7919} Name{number % 97} {number}" for number in range(words // 3))

    def judge(words: int) -> float:
        text = flood(words)
        return cpu_seconds(lambda number: ground_claims([f"{number} {text}"], [f"{text} {number}"]))

    growth = judge(40_000) / judge(10_000)
    record_property("growth_for_four_times_the_text", round(growth, 2))
    assert growth < 8  # 4 would be in step, 16 quadratic


def test_preparing_remembers_what_it_has_seen(sources: list[str]):
    chunks = chunks_of(sources, 99)
    assert PreparedContexts.of(chunks) is PreparedContexts.of(list(chunks))
