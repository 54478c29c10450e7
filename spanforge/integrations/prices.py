"""What a call to a model cost, estimated from the public price lists of `genai-prices` (extra `cost`)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from functools import cache
from typing import Any, Final, TypedDict, cast

from spanforge.exceptions import MissingExtraError
from spanforge.namespaces.providers import MAKERS, well_known

try:
    import genai_prices
    from genai_prices.data_snapshot import get_snapshot
except ImportError:
    raise MissingExtraError("Estimated costs", "cost") from None

__all__ = ["Estimate", "estimate"]

_PROVIDERS: Final = {
    **MAKERS,
    "mistral_ai": "mistral",
    "x_ai": "x-ai",
}
"""What the price lists call a provider, where the conventions call it otherwise."""


class Estimate(TypedDict, total=False):
    """Keywords for `trace_generation`; empty where there is no price for the model.

    Attributes:
        cost_usd: The estimate, in US dollars.
        cost_basis: The list it comes from: its version, and the date of the newest price in force in it.
    """

    cost_usd: float
    cost_basis: str


def estimate(
    model: str,
    *,
    prompt_tokens: int,
    output_tokens: int,
    provider: str | None = None,
    cached_tokens: int | None = None,
    cache_write_tokens: int | None = None,
) -> Estimate:
    """Estimate the cost of a call: `sf_rag.trace_generation(…, **estimate(…))`. Nothing is fetched from anywhere.

    Args:
        model: Model identifier.
        prompt_tokens: Tokens of the whole prompt, those from a cache included.
        output_tokens: Tokens of the answer.
        provider: Who serves the model; without it, the list's best match for the model.
        cached_tokens: Of the prompt's tokens, those read from the provider's cache.
        cache_write_tokens: Of the prompt's tokens, those written to it.
    """
    counted = {
        "input_tokens": prompt_tokens,
        "output_tokens": output_tokens,
        "cache_read_tokens": cached_tokens,
        "cache_write_tokens": cache_write_tokens,
    }
    usage = genai_prices.Usage(**{name: value for name, value in counted.items() if value is not None})
    name = well_known(provider)
    try:
        price = genai_prices.calc_price(usage, model, provider_id=_PROVIDERS.get(name, name) if name else None)
    except (LookupError, ValueError):  # more tokens from a cache than there are, for one
        return {}
    return {
        "cost_usd": float(price.total_price),
        "cost_basis": f"estimated: genai-prices {genai_prices.__version__}, {price.provider.id}, {_list_date()}",
    }


@cache
def _list_date() -> str:
    """Return the date of the newest price that is in force in the list."""
    today = datetime.now(UTC).date()
    return str(max((day for day in _dates() if day <= today), default="undated"))


def _dates() -> Iterator[date]:
    for provider in get_snapshot().providers:
        for model in provider.models:
            prices: Any = model.prices
            for price in cast("list[Any]", prices) if isinstance(prices, list) else ():
                day = getattr(price.constraint, "start_date", None)
                if isinstance(day, date):
                    yield day
