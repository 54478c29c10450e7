"""Retrieval: from a question to ordered passages the user may see (sub-contract 2).

The search asks the index for the best passages by words and by vectors inside the accessible sources, fuses
the two lists, reranks, and decides on an absolute measure whether anything relevant was found at all.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from spanforge.reference.embedding import Embedder
from spanforge.reference.failures import (
    EmbeddingFailed,
    InvalidInput,
    NoAccessibleSources,
    NoResults,
    RerankFailed,
    Stage,
)
from spanforge.reference.index import Candidate, Index
from spanforge.reference.index.base import ROW_FIELDS, SearchRequest, Selection
from spanforge.reference.lexical import coverage, rarity
from spanforge.reference.models import RetrievalInput, RetrievalOutput, RetrievedDocument
from spanforge.reference.retrieving.fusion import FusionMethod, fuse
from spanforge.reference.retrieving.reranking import LexicalReranker, Reading, Reranker
from spanforge.reference.retrieving.understanding import ProcessedQuery

CANDIDATES = 100
"""Passages asked from each of the two searches, or ``top_k`` where that is more."""

_AS_STORED = (RetrievedDocument.model_fields.keys() & ROW_FIELDS) - {"timestamp", "metadata"}
LONG_QUESTION = 8
"""Words that carry meaning from which a question says more than any one passage answers."""


@dataclass(frozen=True, slots=True)
class RetrievalSettings:
    """How results are made.

    The two limits were set on questions asked of foreign collections: they turn away three in four of those, and none
    of 200 asked of the right one. A floor on BM25 beside them was measured: it turns away the right ones as fast.

    Attributes:
        fusion: ``weighted`` or ``rrf``.
        dense_weight: Share of the vectors in the weighted fusion; absent, the embedder's measured one.
        min_coverage: A passage is relevant if it covers this share of the question's weight, and of a question with
            more than `LONG_QUESTION` words as much less as it has more of them, ...
        min_cosine: ... or if its vector is this close to the question's.
    """

    fusion: FusionMethod = "weighted"
    dense_weight: float | None = None
    min_coverage: float = 0.3
    min_cosine: float = 0.4


@dataclass(frozen=True, slots=True)
class Searched:
    """What a search found, before reranking."""

    candidates: tuple[Candidate, ...]
    fused: tuple[float, ...]
    relevance: tuple[float, ...]


class Retriever:
    """Searches one index with one embedder; without an embedder it searches by words, and says so."""

    def __init__(
        self,
        index: Index,
        embedder: Embedder | None,
        settings: RetrievalSettings | None = None,
        reranker: Reranker | None = None,
    ) -> None:
        self.index = index
        self.embedder = embedder
        self.settings = settings or RetrievalSettings()
        self.reranker: Reranker = reranker or LexicalReranker()

    @property
    def ranking_method(self) -> str:
        """How results are ordered, as the trace names it."""
        if self.settings.fusion == "rrf":
            return "rrf"
        return "hybrid" if self.embedder is not None else "bm25"

    @property
    def dense_weight(self) -> float:
        """Share in [0, 1] of the vectors in the weighted fusion."""
        if self.settings.dense_weight is not None:
            return self.settings.dense_weight
        return self.embedder.dense_weight if self.embedder is not None else 0.0

    def search(
        self, request: RetrievalInput, query: ProcessedQuery, *, org_id: str, sources: tuple[str, ...]
    ) -> Searched:
        """Search the accessible sources and fuse.

        Args:
            request: The contract's input.
            query: The question, understood.
            org_id: The user's organisation.
            sources: Ids of the sources the user may query; the selection is part of the index query.

        Raises:
            NoAccessibleSources: ``sources`` is empty.
            EmbeddingFailed: The question could not be embedded.
            IndexUnavailable: The index could not be read.
            NoResults: Nothing found is relevant on the absolute measure.
            InvalidInput: ``rerank_model`` names another reranker than this one's.
        """
        if request.rerank_model not in (None, self.reranker.name):
            raise InvalidInput("rerank_model must be left out or name the pipeline's reranker; see Pipeline.modes.")
        if not sources:
            raise NoAccessibleSources
        if not query.original_query:
            raise NoResults
        hits = self.index.search(
            SearchRequest(
                text=query.expanded_query,
                vector=self._vector(query),
                limit=max(CANDIDATES, request.top_k),
                selection=Selection(org_id, data_source_ids=sources, filters=tuple(request.filters)),
            )
        )
        # In one order, whatever order the engine found them in: how sums round depends on it.
        candidates = sorted(hits.candidates, key=lambda candidate: candidate.row.chunk_id)
        relevance = absolute_relevance(query, candidates)
        enough = self.settings.min_coverage * min(1.0, LONG_QUESTION / max(1, len(set(query.terms))))
        if not any(
            covered >= enough or (candidate.cosine or 0.0) >= self.settings.min_cosine
            for candidate, covered in zip(candidates, relevance, strict=True)
        ):
            raise NoResults
        fused = fuse(candidates, method=self.settings.fusion, dense_weight=self.dense_weight)
        return Searched(tuple(candidates), tuple(fused), tuple(relevance))

    def rank(self, searched: Searched, query: ProcessedQuery, *, rerank: bool, top_k: int) -> list[RetrievedDocument]:
        """Order what was found and return the best ``top_k``.

        Raises:
            RerankFailed: The reranker failed; ranking again with ``rerank=False`` gives the fused order.
        """
        ordered = self.order(searched, query, rerank=rerank)
        return [_document(searched, i, score) for i, score in ordered[:top_k]]

    def order(self, searched: Searched, query: ProcessedQuery, *, rerank: bool) -> list[tuple[int, float]]:
        """Return the place of each candidate among those found, and its score, best first.

        Raises:
            RerankFailed: The reranker failed.
        """
        scores = list(searched.fused)
        if rerank and scores:
            readings = [
                Reading(candidate.row.search_text, candidate.terms, score)
                for candidate, score in zip(searched.candidates, searched.fused, strict=True)
            ]
            scores = self.reranker.rerank(query, readings)
            if len(scores) != len(readings) or not all(0.0 <= score <= 1.0 for score in scores):
                raise RerankFailed("The reranker must return one score in [0, 1] for each passage.")
        order = sorted(range(len(scores)), key=lambda i: (-scores[i], searched.candidates[i].row.chunk_id))
        return [(i, scores[i]) for i in order]

    def retrieve(
        self, request: RetrievalInput, query: ProcessedQuery, *, org_id: str, sources: tuple[str, ...]
    ) -> RetrievalOutput:
        """Search and rank in one call; a failed reranker gives the fused order, marked partial."""
        searched = self.search(request, query, org_id=org_id, sources=sources)
        warnings = [] if self.embedder is not None else ["LEXICAL_ONLY"]
        try:
            documents = self.rank(searched, query, rerank=request.rerank, top_k=request.top_k)
        except RerankFailed as failure:
            warnings.append(failure.code)
            documents = self.rank(searched, query, rerank=False, top_k=request.top_k)
        return RetrievalOutput(
            documents=documents,
            scores=[document.score for document in documents],
            total_found=len(searched.candidates),
            data_sources=list(sources),
            status="partial" if warnings else "ok",
            warnings=warnings,
        )

    def _vector(self, query: ProcessedQuery) -> NDArray[np.float32] | None:
        if self.embedder is None:
            return None
        try:
            return self.embedder.embed([query.expanded_query])[0]
        except EmbeddingFailed as failure:
            failure.stage = Stage.RETRIEVAL
            raise


def absolute_relevance(query: ProcessedQuery, candidates: Sequence[Candidate]) -> list[float]:
    """Return for each candidate the share in [0, 1] of the question's weight that its words cover.

    Unlike a fused score, which makes the best of nothing look like 1.0, this is 0 where nothing matches: a
    word of the question that no candidate holds has the greatest weight of all.
    """
    passages = [frozenset(candidate.terms) for candidate in candidates]
    weights = rarity(query.terms, passages)
    return [coverage(weights, passage) for passage in passages]


def _document(searched: Searched, i: int, score: float) -> RetrievedDocument:
    candidate = searched.candidates[i]
    row = candidate.row
    raw = candidate.bm25 if candidate.bm25 is not None else (candidate.cosine or 0.0)
    return RetrievedDocument(
        **{name: getattr(row, name) for name in _AS_STORED},
        score=min(1.0, max(0.0, score)),
        raw_score=raw,
        relevance=searched.relevance[i],
        timestamp=None if row.timestamp is None else datetime.fromtimestamp(row.timestamp, UTC),
        metadata=json.loads(row.metadata),
    )
