"""What is measured, under which names."""

from __future__ import annotations

from itertools import pairwise

import pytest
from support.golden import VARIANTS

from spanforge.metrics.aitf import AITF
from spanforge.metrics.genai import EARLIER, GENAI
from spanforge.metrics.instruments import Instrument
from spanforge.metrics.meter import Meter, Point
from spanforge.metrics.own import OWN

Series = dict[tuple[str, ...], Point]


def measured(instruments: tuple[Instrument, ...], *variants: str) -> dict[str, Series]:
    meter = Meter(instruments)
    for variant in variants:
        for event in VARIANTS[variant]():
            meter.record(event.event_type, event.payload)
    return {
        instrument.name: {tuple(value for _, value in attributes): point for attributes, point in found.items()}
        for instrument, found in meter.snapshot().points.items()
    }


def test_genai_names_of_0_1():
    found = measured(GENAI, "plain")
    chat = ("chat", "openai", "gpt-4o")
    assert found["gen_ai.client.inference.duration"][chat].total == 0.85
    assert found["gen_ai.client.inference.operation.input_tokens"][chat].total == 2500
    assert found["gen_ai.client.inference.usage.input_tokens"][*chat, "text"] == Point(1, 2500)
    assert found["gen_ai.retrieval.duration"][("retrieval",)].count == 1
    assert set(found) <= {instrument.name for instrument in GENAI}


def test_the_names_before_it():
    found = measured(EARLIER, "plain")
    assert {key[0] for key in found["gen_ai.client.operation.duration"]} <= {"chat", "embeddings", "retrieval"}
    assert found["gen_ai.client.token.usage"]["chat", "openai", "gpt-4o", "input"].total == 2500


@pytest.mark.parametrize("instruments", [GENAI, EARLIER])
def test_providers_have_their_well_known_names(instruments: tuple[Instrument, ...]):
    meter = Meter(instruments)
    meter.record("llm.rag.query", {"latency_ms": 1.0, "embedding_model": "m", "embedding_provider": "Mistral"})
    meter.record("llm.rag.generated", {"model": "m", "latency_ms": 1.0, "provider": "Azure OpenAI"})
    keys = {dict(key)["gen_ai.provider.name"] for found in meter.snapshot().points.values() for key in found}
    assert keys == {"mistral_ai", "azure.ai.openai"}


@pytest.mark.parametrize("instrument", [*GENAI, *EARLIER], ids=lambda one: one.name)
def test_bounds_are_those_of_the_conventions(instrument: Instrument):
    if instrument.bounds:
        seconds = tuple(0.01 * 2**power for power in range(14))
        tokens = tuple(4.0**power for power in range(14))
        assert instrument.bounds == pytest.approx(seconds if instrument.unit == "s" else tokens)


def test_aitfs_own():
    found = measured(AITF, "plain")
    assert found["aitf.rag.retrievals"][()] == Point(1, 1)
    assert found["aitf.rag.retrieval.results"][()].total == 3
    assert found["aitf.latency.total_ms"]["gpt-4o",].total == 850


def test_errors_are_kept_apart_by_class_or_code():
    keys = set(measured(GENAI, "error", "timeout")["gen_ai.client.inference.duration"])
    assert ("chat", "unknown", "gpt-4o", "RateLimitError") in keys
    assert ("retrieval", "timeout") in set(measured(GENAI, "timeout")["gen_ai.retrieval.duration"])


@pytest.mark.parametrize("instruments", [GENAI, EARLIER, AITF, OWN])
def test_what_nobody_measured_is_not_there(instruments: tuple[Instrument, ...]):
    meter = Meter(instruments)
    meter.record("llm.rag.query", {"latency_ms": 0.0, "embedding_model": "m"})
    meter.record("llm.rag.generated", {"model": "m", "prompt_tokens": 0, "output_tokens": 0, "latency_ms": 0.0})
    meter.record("llm.rag.generated", {"model": "m", "grounding_score": None, "time_to_first_token_ms": None})
    counted = {"spanforge_stages"}
    assert {instrument.name for instrument in meter.snapshot().points} <= counted


@pytest.mark.parametrize("instrument", [*GENAI, *EARLIER, *AITF, *OWN], ids=lambda one: one.name)
def test_bounds_rise(instrument: Instrument):
    assert all(low < high for low, high in pairwise(instrument.bounds))


def test_a_number_of_tokens_without_measure_is_one_that_receivers_can_count():
    meter = Meter(GENAI)
    meter.record("llm.rag.generated", {"model": "m", "prompt_tokens": 10**30})
    (usage,) = [one for one in GENAI if one.name == "gen_ai.client.inference.usage.input_tokens"]
    (point,) = meter.snapshot().points[usage].values()
    assert point.total < 1 << 63
