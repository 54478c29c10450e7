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
    read_judgements,
    read_queries,
    read_retrieval,
)
from spanforge.reference.evaluation.grounding import (
    GroundingPart,
    GroundingReport,
    JudgeMean,
    JudgeReport,
    evaluate_grounding,
)
from spanforge.reference.evaluation.judging import judgements_of
from spanforge.reference.evaluation.resampling import Estimate, PairedComparison, compare_paired
from spanforge.reference.evaluation.retrieval import RetrievalReport, Search, evaluate_retrieval
from spanforge.reference.evaluation.tuning import FEWEST, Choice, Judged, TuningReport, judged_question, tune

__all__ = [
    "FEWEST",
    "AnswerReport",
    "AnswerSet",
    "Choice",
    "DatasetError",
    "Estimate",
    "GroundingPair",
    "GroundingPart",
    "GroundingReport",
    "JudgeMean",
    "JudgeReport",
    "Judged",
    "PairedComparison",
    "Question",
    "RetrievalDataset",
    "RetrievalReport",
    "Search",
    "TuningReport",
    "compare_paired",
    "evaluate_answers",
    "evaluate_grounding",
    "evaluate_retrieval",
    "judged_question",
    "judgements_of",
    "read_answer_set",
    "read_grounding",
    "read_judgements",
    "read_queries",
    "read_retrieval",
    "tune",
]
