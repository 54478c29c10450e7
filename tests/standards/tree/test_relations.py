"""What a rerank was given, and which generation was judged."""

from __future__ import annotations

from support.golden import CHUNKS, Recorder, chunk, evaluated, generated, query, reranked, retrieved

from spanforge.standards import aitf, genai, openinference, own
from spanforge.standards.tree.session import Session
from spanforge.standards.tree.spans import merged, spans


def run(*payloads: object) -> Session:
    recorder = Recorder("s")
    for number, payload in enumerate(payloads, 1):
        recorder.add(number * 1000, payload)
    return Session(recorder.events)


def test_a_rerank_was_given_the_chunks_of_all_retrievals_before_it_each_once():
    session = run(
        query("s"),
        retrieved("s", chunks=CHUNKS[:2]),
        retrieved("s", chunks=(CHUNKS[1], chunk(9, 0.1))),
        reranked("s", input_count=None),
        retrieved("s", chunks=(chunk(10, 0.1),)),
    )
    said = next(
        span.attributes
        for span in spans(session, merged(aitf.ATTRIBUTES, openinference.ATTRIBUTES))
        if span.name.startswith("rag.rerank")
    )
    given = [said[f"reranker.input_documents.{n}.document.id"] for n in range(3)]
    assert given == ["chunk-1", "chunk-2", "chunk-9"]
    assert "reranker.input_documents.3.document.id" not in said
    assert said["aitf.rag.rerank.input_count"] == 3


def test_an_evaluation_judges_the_last_generation_that_succeeded_or_the_one_it_names():
    failed = generated("s", status="error", error_message="RateLimitError")
    session = run(
        generated("s", span_name="draft"),
        generated("s", span_name="final"),
        failed,
        evaluated("s"),
        evaluated("s", span_name="draft"),
        evaluated("s", span_name="no such"),
    )
    draft, final, *_ = (stage.event.span_id for stage in session.generations)
    results = genai.evaluation_results(session)
    root = session.stages[-1].event.parent_span_id
    assert [result.span_id for result in results] == [span_id for span_id in (final, draft, root) for _ in range(4)]
    judged = [
        span.attributes.get("spanforge.evaluation.of")
        for span in spans(session, own.ATTRIBUTES)
        if span.name.startswith("rag.evaluate")
    ]
    assert judged == [final, draft, None]


def test_a_result_hangs_under_the_span_that_is_sent_whatever_the_event_carries():
    recorder = Recorder("s")
    recorder.add(1000, generated("s"), span_id="not hex")
    recorder.add(2000, evaluated("s"))
    session = Session(recorder.events)
    chat, judgement = spans(session, own.ATTRIBUTES)
    assert {result.span_id for result in genai.evaluation_results(session)} == {chat.span_id}
    assert judgement.attributes["spanforge.evaluation.of"] == chat.span_id


def test_totals_are_sums_of_what_is_there():
    session = run(generated("s", prompt_tokens=None), generated("s", prompt_tokens=3, output_tokens=4))
    one, two = (span.attributes for span in spans(session, openinference.ATTRIBUTES))
    assert "llm.token_count.total" not in one
    assert two["llm.token_count.total"] == 7
