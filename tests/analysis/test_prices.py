"""What generations cost by prices from a file, and which files make no sense."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from support.sessions import stores

from spanforge.analysis import stored_sessions
from spanforge.analysis.prices import ModelPrice, priced, read_prices
from spanforge.exceptions import ConfigError
from spanforge.namespaces.event import Event
from spanforge.namespaces.stages import GENERATED

_PRICE = ModelPrice(input=2, output=10, cached=0.5, cache_write=3)


@pytest.mark.parametrize(
    ("payload", "cost"),
    [
        ({"prompt_tokens": 1_000_000, "output_tokens": 100_000}, 3),
        ({"prompt_tokens": 1_000_000, "output_tokens": 0, "cached_tokens": 600_000}, 1.1),
        ({"prompt_tokens": 1_000_000, "output_tokens": 0, "cache_write_tokens": 1_000_000}, 3),
        ({"prompt_tokens": 0, "output_tokens": 0}, 0),
        ({"prompt_tokens": 5}, None),
        ({"output_tokens": 5}, None),
        ({"prompt_tokens": 10, "output_tokens": 1, "cached_tokens": 8, "cache_write_tokens": 3}, None),
    ],
)
def test_tokens_are_priced_by_the_million(payload: dict[str, Any], cost: float | None) -> None:
    assert _PRICE.cost(payload) == pytest.approx(cost)


def test_tokens_of_a_cache_cost_as_others_where_nothing_else_is_said() -> None:
    payload = {"prompt_tokens": 100, "output_tokens": 7, "cached_tokens": 60, "cache_write_tokens": 10}
    plain = ModelPrice(input=2, output=10)
    assert plain.cost(payload) == pytest.approx(plain.cost({"prompt_tokens": 100, "output_tokens": 7}))


@given(stores())
def test_only_what_does_not_say_its_cost_gets_one(events: list[Event]) -> None:
    for session in stored_sessions(events):
        asked = [event.payload for event in session.events if event.event_type == GENERATED]
        if not asked:
            assert priced(session, lambda _: 1.0).summary == session.summary
            continue
        said = [one["cost_usd"] for one in asked if one.get("cost_usd") is not None]
        total = priced(session, lambda _: 1.0).summary.total_cost_usd
        # Each is held in whole billionths.
        assert total == pytest.approx(sum(said) + len(asked) - len(said), rel=1e-9, abs=1e-9 * len(asked))
        assert priced(session, lambda _: None).summary == session.summary
        assert (session.summary.total_cost_usd is None) == (len(said) < len(asked))


def test_a_model_that_answered_counts_before_the_one_that_was_asked(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text('[models]\n"a" = { input = 1, output = 1 }\n"a-2026" = { input = 3, output = 1 }\n')
    pricing, tokens = read_prices(file), {"prompt_tokens": 1_000_000, "output_tokens": 0}
    assert pricing({"model": "a", **tokens}) == 1
    assert pricing({"model": "a", "response_model": "a-2026", **tokens}) == 3
    assert pricing({"model": "a", "response_model": "other", **tokens}) == 1
    assert pricing({"model": "b", **tokens}) is None


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("", "models"),
        ("models = 3", "models"),
        ("[model.a]\ninput = 1", "model"),
        ("[models]\na = 3", "models.'a'"),
        ("[models.a]\ninput = 1", "models.'a'.output"),
        ("[models.a]\ninput = -1\noutput = 1", "models.'a'.input"),
        ("[models.a]\ninput = nan\noutput = 1", "models.'a'.input"),
        ("[models.a]\ninput = '1'\noutput = 1", "models.'a'.input"),
        ("[models.a]\ninput = 1\noutput = 1\nprice = 2", "models.'a'.price"),
        ("[models.a", "this is no TOML"),
    ],
)
def test_prices_that_make_no_sense_are_refused_by_name(tmp_path: Path, text: str, field: str) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as refused:
        read_prices(file)
    assert str(refused.value).startswith(f"{field}: ")
