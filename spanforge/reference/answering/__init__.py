"""Answering from grounded context (sub-contract 5): extractive without a model, or by a chat model."""

from __future__ import annotations

from spanforge.reference.answering.base import Answerer, is_refusal, used_citations
from spanforge.reference.answering.extractive import ExtractiveAnswerer

__all__ = ["Answerer", "ExtractiveAnswerer", "is_refusal", "used_citations"]
