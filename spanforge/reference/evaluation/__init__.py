"""Measuring retrieval, grounding and answers on test sets in plain formats. It returns reports and prints nothing."""

from spanforge.reference.evaluation.answers import (
    AnswerReport,
    AnswerSet,
    Question,
    evaluate_answers,
    read_answer_set,
)
from spanforge.reference.evaluation.datasets import (
    DatasetError,
    GroundingPair,
    RetrievalDataset,
    read_grounding,
    read_retrieval,
)
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
    "AnswerReport",
    "AnswerSet",
    "DatasetError",
    "Estimate",
    "GroundingPair",
    "GroundingPart",
    "GroundingReport",
    "JudgeMean",
    "JudgeReport",
    "PairedComparison",
    "Question",
    "RetrievalDataset",
    "RetrievalReport",
    "Search",
    "compare_paired",
    "evaluate_answers",
    "evaluate_grounding",
    "evaluate_retrieval",
    "read_answer_set",
    "read_grounding",
    "read_retrieval",
]
