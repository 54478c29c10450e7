"""The fold of `spanforge.sessions` once more, as Ibis expressions: one definition for every bulk engine.

Half a microsecond and half of 1e-9 round up, sums are of whole numbers, and what is divided is divided once, at the
end, as Python divides.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from importlib import import_module
from typing import Any, Final

from spanforge.namespaces.feedback import FeedbackRating
from spanforge.namespaces.payload import LARGEST_SUM
from spanforge.namespaces.retrieval import SEVERITY, SUMMARY_ONLY, RAGSessionPayload
from spanforge.namespaces.stages import (
    ESCALATED,
    FEEDBACK,
    GENERATED,
    QUERY,
    RERANKED,
    RETRIEVED,
    SESSION,
    STAGE_TYPES,
    STAGES,
)

__all__ = ["KEY", "sessions"]

ibis: Final[Any] = import_module("ibis")

KEY: Final = ("org_id", "session_id")
_NANO: Final = 1_000_000_000
_ID_CAP: Final = 10_000
_COUNTED: Final = {stage.event_type: stage.word for stage in STAGES if stage.counts}
_STATUS: Final = ("ok", "partial", "error")
_ERROR: Final = 2
_JUDGED: Final = [str(one) for one in FeedbackRating if one.helpful is not None]
_HELPFUL: Final = [str(one) for one in FeedbackRating if one.helpful]


def sessions(rows: Any) -> Any:
    """Return a table of one row a session.

    Args:
        rows: A table of `spanforge.analysis.rows.SCHEMA`.
    """
    sums = _sums(_measured(_once(rows.drop("told"))))
    # What a summary tells is wide, and only one of each session counts: it is fetched by its place, at the end.
    told = rows.filter(rows.event_type == SESSION).select(told_at=rows.position, told=rows.told)
    return _told_or_folded(sums.left_join(told, "told_at"))


def _once(rows: Any) -> Any:
    first = rows.group_by([*KEY, "event_id"]).agg(position=rows.position.min())
    return rows.filter(rows.session_id != "").semi_join(first, "position")


def _measured(rows: Any) -> Any:
    kind = rows.event_type
    failed = (kind == SESSION) & (rows.error_type.fill_null("") != "")
    judged = kind.isin([RETRIEVED, RERANKED, GENERATED])
    severity = rows.status.fill_null("ok").cases(*SEVERITY.items(), else_=_ERROR)
    return rows.mutate(
        us=(rows.latency_ms.fill_null(0.0) * 1000 + 0.5).floor().cast("int64"),
        nano=_nano(rows.grounding_score),
        cost=_nano(rows.cost_usd),
        value=_nano((kind == FEEDBACK).ifelse(rows.value, ibis.null("float64"))),
        severity=ibis.cases((failed, 2), (judged, severity), else_=0),
        judged=judged,
    )


def _nano(score: Any) -> Any:
    return (score * _NANO + 0.5).floor().cast("int64")


def _sums(rows: Any) -> Any:
    kind, at = rows.event_type, rows.event_id
    generated, told = kind == GENERATED, kind == SESSION
    answered = generated & (rows.status.fill_null("ok") == "ok")
    by_stage = {
        name: value
        for event_type, word in _COUNTED.items()
        for name, value in (
            (f"{word}_count", rows.count(where=kind == event_type)),
            (f"{word}_us", _total(rows.us, kind == event_type)),
        )
    }
    return rows.group_by(KEY).agg(
        **by_stage,
        events=rows.count(),
        stages=rows.count(where=kind.isin(sorted(STAGE_TYPES))),
        chunks=_total(rows.chunk_ids.length(), kind == RETRIEVED),
        retrieved_ids=_distinct(rows.chunk_ids, kind == RETRIEVED),
        used_ids=_distinct(rows.chunk_ids_used, generated),
        prompt_tokens=_total(rows.prompt_tokens, generated),
        output_tokens=_total(rows.output_tokens, generated),
        grounding_sum=_total(rows.nano, generated),
        grounding_count=rows.nano.count(where=generated),
        grounding_min=rows.nano.min(where=generated),
        cost_sum=_total(rows.cost, generated),
        cost_count=rows.cost.count(where=generated),
        severity=rows.severity.max(),
        errors=rows.count(where=(rows.severity == _ERROR) & rows.judged),
        retriever=rows.retriever_name.argmin(at, where=(kind == QUERY) & (rows.retriever_name.fill_null("") != "")),
        error=rows.error_type.min(where=told & (rows.error_type.fill_null("") != "")),
        first_at=rows.timestamp.argmin(at),
        ended=rows.count(where=told) > 0,
        told_at=rows.position.argmax(at, where=told),
        models=rows.model.fill_null("unknown").collect(where=generated),
        tags=rows.tags.collect(where=rows.tags.length() > 0),
        escalations=rows.count(where=kind == ESCALATED),
        ratings=rows.count(where=kind == FEEDBACK),
        rated=rows.value.count(where=kind == FEEDBACK),
        rating_sum=_total(rows.value, kind == FEEDBACK),
        answers=rows.count(where=answered),
        cited=rows.count(where=answered & (rows.chunk_ids_used.length() > 0)),
        judged=rows.count(where=(kind == FEEDBACK) & rows.rating.isin(_JUDGED)),
        helpful=rows.count(where=(kind == FEEDBACK) & rows.rating.isin(_HELPFUL)),
    )


def _total(column: Any, where: Any) -> Any:
    # A sum may have a wider type than Ibis knows of, so that a cast to what it takes it for would be left out.
    return column.sum(where=where).cast("decimal(38, 0)").fill_null(0)


def _distinct(lists: Any, where: Any) -> Any:
    return lists.collect(where=where & (lists.length() > 0))


def _ids(lists: Any) -> Any:
    return _present(lists.flatten().unique().sort())


def _present(ids: Any) -> Any:
    return ibis.coalesce(ids, ibis.literal([], type="array<string>"))


def _told_or_folded(sums: Any) -> Any:
    # As a view, for else each mention of a list sorts it again.
    ids = sums.mutate(retrieved=_ids(sums.retrieved_ids), used=_ids(sums.used_ids)).view()
    figures = _figures(ids)
    has_stages = ids.stages > 0
    columns = {
        field.name: _chosen(ids, field, figures.get(field.name), has_stages)
        for field in fields(RAGSessionPayload)
        if field.name != "session_id"
    }
    return ids.select(
        *KEY,
        **columns,
        began_at=ibis.coalesce(ids.told["started_at"], ids.first_at),
        ended=ids.ended,
        events=ids.events,
        models=_present(ids.models.unique().sort()),
        tags=_ids(ids.tags),
        escalations=ids.escalations,
        ratings=ids.ratings,
        rating=_mean(ids.rating_sum, ids.rated),
        **{name: ids[name] for name in ("answers", "cited", "judged", "helpful")},
    )


def _chosen(sums: Any, field: Any, folded: Any, has_stages: Any) -> Any:
    told = sums.told[field.name]
    if field.name in SUMMARY_ONLY:
        return told
    default = field.default if field.default is not MISSING else None
    if default == ():
        default = ibis.literal([], type="array<string>")
    return has_stages.ifelse(folded, told if default is None else told.fill_null(default))


def _figures(sums: Any) -> dict[str, Any]:
    words = _COUNTED.values()
    priced = (sums.cost_count > 0) & (sums.cost_count == sums.generation_count)
    return {
        "total_queries": sums.query_count,
        "total_chunks_used": _capped(sums.used),
        "total_input_tokens": _whole(sums.prompt_tokens),
        "total_output_tokens": _whole(sums.output_tokens),
        "avg_grounding_score": _mean(sums.grounding_sum, sums.grounding_count),
        "total_latency_ms": _shifted(sum(sums[f"{word}_us"] for word in words), -3),
        "status": sums.severity.cases(*enumerate(_STATUS)),
        "retriever_name": sums.retriever.fill_null(""),
        "total_chunks_retrieved": _whole(sums.chunks),
        "unique_chunk_ids": sums.retrieved[:_ID_CAP],
        "chunk_ids_truncated": (sums.retrieved.length() > _ID_CAP) | (sums.used.length() > _ID_CAP),
        "min_grounding_score": sums.grounding_min.cast("float64") / float(_NANO),
        "grounding_count": sums.grounding_count,
        **{f"{word}_count": sums[f"{word}_count"] for word in words},
        **{f"{word}_latency_ms": _shifted(sums[f"{word}_us"], -3) for word in words},
        "error_count": sums.errors,
        "error_type": sums.error,
        "partial_view": ibis.literal(False),
        "total_cost_usd": priced.ifelse(_shifted(sums.cost_sum, -9), None),
    }


def _whole(total: Any) -> Any:
    """Return a sum as a column has it: what is too large stands at the largest, and no session fails all of them."""
    return ibis.least(total, ibis.literal(LARGEST_SUM).cast("decimal(38, 0)")).cast("int64")


def _capped(ids: Any) -> Any:
    return ibis.least(ids.length(), _ID_CAP)


def _mean(nano: Any, count: Any) -> Any:
    return nano.cast("float64") / (count * _NANO).cast("float64").nullif(0.0)


def _shifted(whole: Any, places: int) -> Any:
    # A numeral is read to the nearest double by every engine, where a division of more than 53 bits would round twice.
    return (whole.cast("string") + f"e{places}").cast("float64")
