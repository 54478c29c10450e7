"""Measuring retrieval and grounding on test sets in plain formats. It returns reports and prints nothing."""

from spanforge.reference.evaluation.datasets import GroundingPair, RetrievalDataset, read_grounding, read_retrieval
from spanforge.reference.evaluation.errors import DatasetError
from spanforge.reference.evaluation.grounding import (
    GroundingPart,
    GroundingReport,
    JudgeMean,
    JudgeReport,
    evaluate_grounding,
)
from spanforge.reference.evaluation.resampling import Estimate, PairedComparison, compare_paired
from spanforge.reference.evaluation.retrieval import RetrievalReport, Search, evaluate_retrieval

__all__ = [
    "DatasetError",
    "Estimate",
    "GroundingPair",
    "GroundingPart",
    "GroundingReport",
    "JudgeMean",
    "JudgeReport",
    "PairedComparison",
    "RetrievalDataset",
    "RetrievalReport",
    "Search",
    "compare_paired",
    "evaluate_grounding",
    "evaluate_retrieval",
    "read_grounding",
    "read_retrieval",
]
