"""The endpoints take and give exactly what the RAG contract says, and every failure is a problem with its code."""

from __future__ import annotations

import base64
import io
import json
import zipfile

import pytest
from support.api import PARIS, QUESTION, Api, bundled, running
from support.documents import pdf, word
from support.overhearing import overhearing

from spanforge.reference import Pipeline, RagResult
from spanforge.reference.failures import RagFailure, failure_codes
from spanforge.reference.models import RetrievalOutput
from spanforge.server.models import Job
from spanforge.server.problems import KINDS

CANARY = "quittengelee-8f2c"


def _names(model) -> set[str]:
    return {field.alias for field in model.model_fields.values()}


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """One API with one document, for tests that only ask."""
    with running(tmp_path_factory.mktemp("home")) as api:
        headers = api.key()
        api.ingest(headers, api.source(headers), {"paris": PARIS})
        yield api, headers


@pytest.fixture
def discreet():
    """Neither the log nor any event of the test holds the canary, in any form."""
    with overhearing() as overheard:
        yield
    overheard.assert_silent_about(CANARY)


def test_query_gives_the_whole_result(filled) -> None:
    api, headers = filled
    answer = api.query(headers)
    body = answer.json()
    assert answer.status_code == 200
    assert set(body) == _names(RagResult)
    assert body["answer"] == "Paris [1]"
    assert [cited["documentId"] for cited in body["citationsUsed"]] == ["paris"]
    assert body["sessionId"] == answer.headers["x-spanforge-session"]
    assert set(body["latenciesMs"]) >= {"retrieval", "grounding", "answering", "total"}


def test_query_takes_the_union_of_the_stages_inputs(filled) -> None:
    api, headers = filled
    (source,) = [one["id"] for one in api.client.get("/api/rag/sources", headers=headers).json()["sources"]]
    answer = api.query(
        headers,
        dataSources=[source],
        topK=3,
        filters=[{"field": "documentId", "op": "eq", "value": "paris"}],
        rerank=False,
        rerankModel=None,
        maxTokens=500,
        template="{context}\n{query}",
        strictMode=True,
        model=None,
        temperature=0.0,
        stream=False,
    )
    assert answer.status_code == 200, answer.text
    assert answer.json()["answer"] == "Paris [1]"


def test_retrieve_gives_documents_and_scores(filled) -> None:
    api, headers = filled
    body = api.retrieve(headers, topK=1).json()
    assert set(body) == _names(RetrievalOutput)
    assert body["scores"] == [body["documents"][0]["score"]]
    assert body["totalFound"] >= 1
    assert len(body["dataSources"]) == 1


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ({"field": "documentId", "op": "eq", "value": "paris"}, True),
        ({"field": "documentId", "op": "in", "value": ["oslo"]}, False),
        ({"field": "mediaType", "op": "ne", "value": "text/markdown"}, False),
        ({"field": "page", "op": "ge", "value": 1}, False),
        ({"field": "page", "op": "in", "value": [1]}, False),
        ({"field": "quality", "op": "ge", "value": 0.5}, False),
        ({"field": "timestamp", "op": "lt", "value": "2030-01-01T00:00:00Z"}, False),
        ({"field": "source", "value": "paris"}, True),
    ],
)
def test_filters(filled, condition, found: bool) -> None:
    api, headers = filled
    body = api.retrieve(headers, filters=[condition])
    assert body.status_code == 200, body.text
    assert bool(body.json()["documents"]) is found


def test_nothing_found_is_a_warning(filled) -> None:
    api, headers = filled
    for ask in (api.query, api.retrieve):
        answer = ask(headers, "Who won the chess championship on Mars?")
        assert answer.status_code == 200
        assert "NO_RESULTS" in answer.json()["warnings"]
        assert answer.json()["documents"] == []


def test_strict_mode_refuses_with_the_contracts_code(filled) -> None:
    api, headers = filled
    answer = api.query(headers, "Which opening did the chess master of France prefer?", strictMode=True)
    assert answer.status_code == 422
    assert answer.json()["code"] in {"INSUFFICIENT_CONTEXT", "NOT_GROUNDED"}


def test_a_reranker_that_fails_is_a_warning(tmp_path) -> None:
    class Broken:
        name = "broken"

        def rerank(self, query, readings):
            return [2.0 for _ in readings]

    with running(tmp_path, lambda folder: bundled(folder, reranker=Broken())) as api:
        headers = api.key()
        api.ingest(headers, api.source(headers), {"paris": PARIS})
        for ask in (api.query, api.retrieve):
            answer = ask(headers)
            assert answer.status_code == 200
            assert "RERANK_FAILED" in answer.json()["warnings"]


@pytest.mark.usefixtures("discreet")
@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"query": CANARY, "unheard": CANARY}, "unheard"),
        ({"query": CANARY, "topK": CANARY}, "topK"),
        ({"query": CANARY, "topK": 0}, "topK"),
        ({"query": CANARY, "topK": 101}, "topK"),
        ({"query": CANARY, "top_k": 1}, "(a key)"),
        ({"query": CANARY * 500}, "query"),
        ({"query": ""}, "query"),
        ({}, "query"),
        ({"query": CANARY, "filters": [{"field": CANARY, "value": CANARY}]}, "filters.0.field"),
        ({"query": CANARY, "filters": [{"field": "page", "value": 1}] * 17}, "filters"),
        ({"query": CANARY, "template": CANARY}, "template"),
        ({"query": CANARY, "temperature": 3}, "temperature"),
        ({"query": CANARY, "model": CANARY}, "model"),
        ({"query": CANARY, "rerankModel": CANARY}, "rerankModel"),
        ({"query": CANARY, CANARY * 9: 1}, "(a key)"),
        ([CANARY], "body"),
    ],
)
def test_a_wrong_body_is_told_by_field_never_by_value(filled, body, field: str) -> None:
    api, headers = filled
    answer = api.client.post("/api/rag/query", json=body, headers=headers)
    problem = answer.json()
    assert answer.status_code == 422, problem
    assert answer.headers["content-type"] == "application/problem+json"
    assert problem["code"] == "INVALID_INPUT"
    assert field in problem["fields"] or field == "(a key)"
    assert CANARY not in answer.text


@pytest.mark.usefixtures("discreet")
@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"",
        b"null",
        b'{"query": "\xff"}',
        b'{"query": "\\ud800"}',
        b"NaN",
        b"[" * 99_999,
        CANARY.encode(),
        b'{"query": "' + CANARY.encode(),
    ],
)
def test_what_is_no_json_is_refused(filled, content: bytes) -> None:
    api, headers = filled
    answer = api.client.post("/api/rag/query", content=content, headers={**headers, "Content-Type": "application/json"})
    assert answer.status_code == 422
    assert answer.json()["code"] == "INVALID_INPUT"


class _Failing(Pipeline):
    failure: type[RagFailure]

    def ask(self, question, **options):
        raise self.failure

    def retrieve(self, query, **options):
        raise self.failure

    def stream(self, question, **options):
        yield from ()
        raise self.failure


@pytest.mark.usefixtures("discreet")
@pytest.mark.parametrize("code", sorted(set(failure_codes()) & set(KINDS)))
def test_every_failure_is_a_problem_with_its_code(tmp_path, code: str) -> None:
    failing = type("Failing", (_Failing,), {"failure": failure_codes()[code]})
    with running(tmp_path, lambda folder: failing(None, embedder=None)) as api:
        headers = api.key()
        for path, more in (("query", {}), ("retrieve", {}), ("query", {"stream": True})):
            answer = api.client.post(f"/api/rag/{path}", json={"query": CANARY, **more}, headers=headers)
            problem = answer.json()
            assert answer.status_code == problem["status"] == KINDS[code].status
            assert answer.headers["content-type"] == "application/problem+json"
            assert set(problem) == {"type", "title", "status", "code", "detail", "instance"}
            assert problem["code"] == code
            assert CANARY not in answer.text


def test_every_code_of_the_contract_is_a_problem_or_a_warning() -> None:
    assert set(failure_codes()) - set(KINDS) == {"NO_RESULTS", "RERANK_FAILED", "CONTEXT_IGNORED"}


@pytest.mark.usefixtures("discreet")
def test_an_unforeseen_error_says_nothing(tmp_path) -> None:
    class Odd(Pipeline):
        def ask(self, question, **options):
            raise KeyError(question)

    with running(tmp_path, lambda folder: Odd(None, embedder=None)) as api:
        answer = api.query(api.key(), CANARY)
        assert answer.status_code == 500
        assert answer.json()["code"] == "INTERNAL_ERROR"
        assert CANARY not in answer.text


def test_ingest_gives_the_job(api: Api) -> None:
    headers = api.key()
    source = api.source(headers)
    sent = api.send(headers, source, {"paris": PARIS}, chunkSize=128, chunkOverlap=16)
    assert sent.status_code == 202
    assert set(sent.json()) == _names(Job)
    assert sent.json()["status"] == "queued"
    assert sent.headers["location"] == f"/api/rag/ingest/{sent.json()['jobId']}"
    job = api.ended(headers, sent.json()["jobId"])
    assert (job["status"], job["indexed"], job["total"], job["progress"]) == ("completed", 1, 1, 1.0)
    assert len(job["vectorIds"]) == job["chunks"] >= 1


def test_files_are_told_by_what_they_hold(api: Api) -> None:
    headers = api.key()
    source = api.source(headers)
    files = [
        ("files", ("one.txt", pdf(["Paris is the capital of France."]))),
        ("files", ("two.pdf", b"Oslo is the capital of Norway.")),
        ("files", ("three", word(["Rome is the capital of Italy."]))),
        ("files", ("four.bin", b"<!doctype html><html><body><p>Bern is the capital of Switzerland.</p></body></html>")),
    ]
    fields = {"dataSourceId": source, "chunkSize": "128", "chunkOverlap": "8"}
    sent = api.client.post("/api/rag/ingest", data=fields, files=files, headers=headers)
    assert sent.status_code == 202, sent.text
    job = api.ended(headers, sent.json()["jobId"])
    assert (job["indexed"], job["failures"]) == (4, [])
    kinds = {one["documentId"]: one for one in api.retrieve(headers, "capital", topK=10).json()["documents"]}
    assert kinds["one.txt"]["page"] == 1
    assert set(kinds) == {"one.txt", "two.pdf", "three", "four.bin"}


def test_json_documents_may_be_files(api: Api) -> None:
    headers = api.key()
    document = {
        "documentId": "a",
        "content": base64.b64encode(pdf([PARIS])).decode(),
        "name": "a.md",
        "timestamp": "2026-01-02T03:04:05Z",
        "quality": 0.9,
        "metadata": {"shelf": ["upper", 2]},
    }
    body = {"dataSourceId": api.source(headers), "documents": [document]}
    sent = api.client.post("/api/rag/ingest", json=body, headers=headers)
    assert api.ended(headers, sent.json()["jobId"])["indexed"] == 1
    (found,) = api.retrieve(headers).json()["documents"]
    assert found["metadata"] == document["metadata"]
    assert (found["quality"], found["page"], found["source"]) == (0.9, 1, "a.md")
    assert found["timestamp"].startswith("2026-01-02T03:04:05")


def _zip(**entries: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name.replace("__", "/"), content)
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "status", "code"),
    [
        (b"\x7fELF\x02\x01\x01" + bytes(64), 415, "UNSUPPORTED_FORMAT"),
        (b"\x89PNG\r\n\x1a\n" + bytes(64), 415, "UNSUPPORTED_FORMAT"),
        (b"\x1f\x8b\x08\x00" + bytes(64), 415, "UNSUPPORTED_FORMAT"),
        (_zip(notes=b"text"), 415, "UNSUPPORTED_FORMAT"),
        (_zip(word__document_xml=b"x")[:60], 415, "UNSUPPORTED_FORMAT"),
    ],
    ids=["program", "picture", "gzip", "archive", "cut archive"],
)
def test_what_can_be_no_document_refuses_the_upload(api: Api, content: bytes, status: int, code: str) -> None:
    headers = api.key()
    source = api.source(headers)
    files = [("files", ("good.md", PARIS.encode())), ("files", ("bad.pdf", content))]
    answer = api.client.post("/api/rag/ingest", data={"dataSourceId": source}, files=files, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert not list(api.home.glob("orgs/*/index/uploads/*"))


def test_a_question_that_leaves_no_room_for_a_passage(filled) -> None:
    api, headers = filled
    answer = api.query(headers, f"{QUESTION} " * 60, maxTokens=256)
    assert (answer.status_code, answer.json()["code"]) == (422, "CONTEXT_OVERFLOW")
    assert api.query(headers, maxTokens=256).json()["answer"] == "Paris [1]"


def test_a_damaged_document_is_told_in_the_job(api: Api) -> None:
    headers = api.key()
    files = [("files", ("good.md", PARIS.encode())), ("files", ("bad.pdf", b"%PDF-1.7\nnot one"))]
    fields = {"dataSourceId": api.source(headers)}
    sent = api.client.post("/api/rag/ingest", data=fields, files=files, headers=headers)
    job = api.ended(headers, sent.json()["jobId"])
    assert (job["indexed"], [one["code"] for one in job["failures"]]) == (1, ["PARSE_ERROR"])


@pytest.mark.parametrize(
    ("fields", "files", "field"),
    [
        ({}, [("files", ("a.md", b"text"))], "dataSourceId"),
        ({"dataSourceId": "x"}, [("other", ("a.md", b"text"))], "files"),
        ({"dataSourceId": "x", "chunkSize": "many"}, [("files", ("a.md", b"text"))], "chunkSize"),
        ({"dataSourceId": "x", "unheard": "1"}, [("files", ("a.md", b"text"))], "unheard"),
        ({"dataSourceId": "x", "chunkSize": "64", "chunkOverlap": "64"}, [("files", ("a.md", b"1"))], "chunkOverlap"),
    ],
)
def test_a_wrong_form_is_told_by_field(filled, fields, files, field: str) -> None:
    api, headers = filled
    answer = api.client.post("/api/rag/ingest", data=fields, files=files, headers=headers)
    assert answer.status_code == 422
    assert field in answer.json()["fields"]


@pytest.mark.usefixtures("discreet")
@pytest.mark.parametrize("document", [{}, {"text": "a", "content": "YQ=="}, {"content": "?"}, {"text": "a", "\x00": 1}])
def test_a_wrong_document_is_refused(filled, document) -> None:
    api, headers = filled
    body = {"dataSourceId": CANARY, "documents": [{"documentId": CANARY, **document}]}
    answer = api.client.post("/api/rag/ingest", json=body, headers=headers)
    assert answer.status_code == 422
    assert CANARY not in answer.text


def test_traces_are_the_callers_and_hold_no_text(api: Api, spanforge_events) -> None:
    headers = api.key("ann", "north")
    api.ingest(headers, api.source(headers), {"paris": PARIS})
    trace = "0af7651916cd43dd8448eb211c80319c"
    told = {**headers, "traceparent": f"00-{trace}-b7ad6b7169203331-01"}
    answered = api.query(told).headers["x-spanforge-session"]
    found = api.retrieve(told).headers["x-spanforge-session"]
    api.query({**headers, "traceparent": "00-zz"})
    events = spanforge_events.all
    assert {event.session_id for event in events} >= {answered, found}
    assert {(event.org_id, event.actor_id) for event in events} == {("north", "ann")}
    assert {event.tags.get("upstream_trace_id") for event in events} == {trace, None}
    spanforge_events.assert_no_text(QUESTION, PARIS, "river Seine")


def test_logs_hold_no_text(api: Api, capfd) -> None:
    headers = api.key("ann", "north")
    api.ingest(headers, api.source(headers, name=CANARY), {CANARY: f"{CANARY} is a jelly."})
    api.query(headers, f"What is {CANARY}?")
    api.client.get(f"/{CANARY}", headers=bearer_of(CANARY))
    api.client.post("/api/rag/query", content=json.dumps({CANARY: CANARY}), headers=headers)
    told = capfd.readouterr()
    assert "api/rag/query" in told.out + told.err
    assert CANARY not in told.out + told.err
    assert "north" not in told.out + told.err


def bearer_of(credential: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {credential}"}
