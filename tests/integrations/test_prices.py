"""Costs as estimated from the public price lists."""

from __future__ import annotations

import re

import pytest

from spanforge.integrations.prices import estimate


@pytest.mark.parametrize("provider", ["openai", "Azure OpenAI", None])
def test_an_estimate_says_what_it_is_made_from(provider: str | None):
    found = estimate("gpt-4o", provider=provider, prompt_tokens=1_000_000, output_tokens=0)
    assert found["cost_usd"] > 0
    assert re.fullmatch(r"estimated: genai-prices [\d.]+, [\w-]+, \d{4}-\d\d-\d\d", found["cost_basis"])


def test_tokens_from_a_cache_cost_less():
    whole = estimate("gpt-4o", provider="openai", prompt_tokens=1_000, output_tokens=10)
    cached = estimate("gpt-4o", provider="openai", prompt_tokens=1_000, output_tokens=10, cached_tokens=900)
    assert cached["cost_usd"] < whole["cost_usd"]


@pytest.mark.parametrize(("model", "provider"), [("no such model", None), ("gpt-4o", "nobody")])
def test_what_has_no_price_is_not_guessed(model: str, provider: str | None):
    assert estimate(model, provider=provider, prompt_tokens=1, output_tokens=1) == {}
