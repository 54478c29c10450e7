"""What generations cost that do not say it themselves, by prices that somebody names when they read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final, Self, TypeAlias, cast

from spanforge.analysis.tables import number, read_toml, refuse_unknown
from spanforge.exceptions import ConfigError
from spanforge.namespaces.event import Event
from spanforge.namespaces.payload import LARGEST_COST
from spanforge.namespaces.stages import GENERATED
from spanforge.sdk import StoredSession

__all__ = ["ModelPrice", "Pricing", "priced", "read_prices"]

Pricing: TypeAlias = Callable[[Mapping[str, Any]], float | None]
"""Returns what a generation cost in US dollars, from its payload; None where that is not known."""

_MODELS: Final = "models"
_TOKENS: Final = 1_000_000
_HIGHEST: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPrice:
    """What a model costs, in US dollars for a million tokens.

    Attributes:
        input: Tokens of the prompt.
        output: Tokens of the answer.
        cached: Tokens of the prompt that came from the provider's cache; as others where it is None.
        cache_write: Tokens of the prompt that were written to it; likewise.
    """

    input: float
    output: float
    cached: float | None = None
    cache_write: float | None = None

    def cost(self, payload: Mapping[str, Any]) -> float | None:
        """Return what a generation cost; None where it does not say its tokens, or more of a cache than there are."""
        prompt, output = payload.get("prompt_tokens"), payload.get("output_tokens")
        if prompt is None or output is None:
            return None
        cached, written = payload.get("cached_tokens") or 0, payload.get("cache_write_tokens") or 0
        if cached + written > prompt:
            return None
        cost = (prompt - cached - written) * self.input + output * self.output
        cost += cached * (self.input if self.cached is None else self.cached)
        cost += written * (self.input if self.cache_write is None else self.cache_write)
        return cost / _TOKENS

    @classmethod
    def of(cls, given: object, place: str) -> Self:
        """Return the price that a table of a TOML document names.

        Raises:
            ConfigError: It cannot be used; the message names the field and what would do.
        """
        if not isinstance(given, dict):
            raise ConfigError(f"{place}: make it a table, with input and output in US dollars for a million tokens")
        table = cast("dict[str, Any]", given)
        refuse_unknown(table, [field.name for field in fields(cls)], place)
        needed = dict.fromkeys(("input", "output")) | table
        return cls(**{name: number(price, 0, _HIGHEST, f"{place}.{name}") for name, price in needed.items()})


def read_prices(path: Path) -> Pricing:
    """Return the prices of a TOML file: under `models`, a table for each model.

    Raises:
        ConfigError: It cannot be used; the message names the field and what would do.
        OSError: The file cannot be read.
    """
    given = read_toml(path)
    refuse_unknown(given, (_MODELS,))
    models = given.get(_MODELS)
    if not isinstance(models, dict) or not models:
        raise ConfigError(f'{_MODELS}: give a table for each model, [{_MODELS}."NAME"], with input and output')
    named = cast("dict[str, object]", models)
    prices = {name: ModelPrice.of(price, f"{_MODELS}.{name!a}") for name, price in named.items()}

    def cost(payload: Mapping[str, Any]) -> float | None:
        price = prices.get(payload.get("response_model") or "") or prices.get(payload.get("model", ""))
        return price and price.cost(payload)

    return cost


def priced(session: StoredSession, pricing: Pricing | None) -> StoredSession:
    """Return a session with the cost of each generation that does not say it; what it says itself stays.

    Args:
        session: The session.
        pricing: The prices; None leaves it as it is.
    """
    if pricing is None:
        return session
    return StoredSession(session.session_id, (_with_cost(event, pricing) for event in session.events))


def _with_cost(event: Event, pricing: Pricing) -> Event:
    if event.event_type != GENERATED or event.payload.get("cost_usd") is not None:
        return event
    cost = pricing(event.payload)
    return event if cost is None or cost > LARGEST_COST else replace(event, payload={**event.payload, "cost_usd": cost})
