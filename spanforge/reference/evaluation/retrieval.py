"""Measure a search function on a retrieval test set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from spanforge.reference.evaluation.datasets import RetrievalDataset
from spanforge.reference.evaluation.metrics import ndcg_at, precision_at, recall_at, reciprocal_rank
from spanforge.reference.evaluation.resampling import Estimate, PairedComparison, Report, compare_paired, mean_estimate

Search = Callable[[str, int], Sequence[str]]
"""Query text and number of results wanted → document ids, best first."""

METRICS: Final[Mapping[str, Callable[[Sequence[str], Mapping[str, int]], float]]] = MappingProxyType(
    {"ndcg@10": ndcg_at, "precision@5": precision_at, "recall@10": recall_at, "mrr": reciprocal_rank}
)
DEPTH: Final = 10


@dataclass(frozen=True, slots=True)
class RetrievalReport(Report):
    """How well a search does on one test set.

    Attributes:
        dataset: Name of the test set.
        documents: Size of the corpus.
        queries: Number of queries measured.
        metrics: Metric name → mean over queries with its interval.
        per_query: Metric name → value for each query, in the order of the queries.
    """

    dataset: str
    documents: int
    queries: int
    metrics: Mapping[str, Estimate]
    per_query: Mapping[str, tuple[float, ...]] = field(repr=False)

    def compared_with(self, baseline: RetrievalReport, metric: str = "ndcg@10") -> PairedComparison:
        """Compare with another report on the same test set, query by query.

        Raises:
            ValueError: The reports are about different test sets.
        """
        if self.dataset != baseline.dataset:
            raise ValueError("reports on different test sets cannot be compared")
        return compare_paired(self.per_query[metric], baseline.per_query[metric])


def evaluate_retrieval(dataset: RetrievalDataset, search: Search) -> RetrievalReport:
    """Run every query of a test set, in its order, through a search for ten results, and measure the rankings."""
    rankings = {query: list(search(text, DEPTH)) for query, text in dataset.queries.items()}
    per_query = {
        name: tuple(metric(ranking, dataset.qrels[query]) for query, ranking in rankings.items())
        for name, metric in METRICS.items()
    }
    return RetrievalReport(
        dataset.name,
        len(dataset.corpus),
        len(rankings),
        MappingProxyType({name: mean_estimate(values) for name, values in per_query.items()}),
        MappingProxyType(per_query),
    )
