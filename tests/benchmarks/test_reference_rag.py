"""The reference RAG's speed and memory, as ratios in one run."""

from __future__ import annotations

import random
import resource
import statistics
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from spanforge.reference import Document, Pipeline, tracing
from spanforge.reference.chunking import Chunker
from spanforge.reference.embedding import open_embedder
from spanforge.reference.index import IndexRow, SearchRequest, Selection
from spanforge.reference.index.lance import LanceIndex
from spanforge.reference.lexical import terms
from spanforge.reference.parsing import parse
from spanforge.reference.tokens import default_counter
from spanforge.sdk import configure, sf_rag

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(900)]

VOCABULARY = [f"word{i}" for i in range(20_000)]
BLOCKS = 11


def texts(count: int, words: int, seed: int) -> list[str]:
    generator = random.Random(seed)  # noqa: S311 - a repeatable draw, nothing secret
    weights = [1.0 / (i + 1) for i in range(len(VOCABULARY))]
    flat = generator.choices(VOCABULARY, weights, k=count * words)
    sentences = [" ".join(flat[i : i + 12]) for i in range(0, len(flat), 12)]
    return [". ".join(sentences[i : i + words // 12]) for i in range(0, len(sentences), words // 12)]


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def median_ratio(ours: Callable[[], object], theirs: Callable[[], object]) -> float:
    """Return the median over interleaved blocks of our time by theirs."""
    ours(), theirs()
    return statistics.median(seconds(ours) / seconds(theirs) for _ in range(BLOCKS))


@pytest.fixture
def memory_sink() -> Iterator[None]:
    configure(sinks="memory")
    yield
    sf_rag.shutdown()
    configure(sinks="memory")


@pytest.mark.usefixtures("memory_sink")
def test_tracing_costs_at_most_two_percent_of_a_query() -> None:
    """CPU time of the caller in a run's trace calls, replayed, by that of the run itself without tracing.

    The difference of two runs would drown in noise: it is a hundredth of either.
    """
    documents = [Document(document_id=f"d{i}", text=text) for i, text in enumerate(texts(2000, 120, 1))]
    questions = [" ".join(random.Random(i).sample(VOCABULARY[50:2000], 8)) for i in range(20)]  # noqa: S311 - a repeatable draw, nothing secret
    with Pipeline() as pipeline:
        pipeline.ingest(documents)
        hits = tracing.hits_of(pipeline.retrieve(questions[0]).documents)

        def replay(question: str) -> None:
            with tracing.session(question, top_k=10, embedding_model="m", namespace="", pipeline_name="p") as session:
                with session.retrieval() as span:
                    span.record(hits, total_found=100, ranking_method="hybrid", retrieval_strategy="single_pass")
                with session.rerank("m") as span:
                    span.record(hits, input_count=100, output_count=10, status="ok")
                with session.generation("m", provider="p") as span:
                    used = [hit["chunk_id"] for hit in hits]
                    span.record(chunk_ids_used=used, prompt_tokens=1, output_tokens=1, grounding_score=1.0)
                tracing.evaluation(
                    grounding_score=1.0, context_relevance=0.5, claims_total=1, claims_supported=1, latency_ms=1.0
                )

        ratios: list[float] = []
        for _ in range(BLOCKS):
            times: list[float] = []
            for disabled, work in ((False, replay), (True, pipeline.ask)):
                configure(sinks="memory", disabled=disabled)
                work(questions[0])
                started = time.thread_time()
                for question in questions:
                    work(question)
                times.append(time.thread_time() - started)
            ratios.append(times[0] / times[1])
        configure(sinks="memory", disabled=False)
    cost = statistics.median(ratios)
    print(f"tracing costs {cost:.2%} of a query")  # noqa: T201 - the figure is what the measurement is for
    assert cost <= 0.02


def test_hybrid_search_over_100k_chunks_beside_lancedbs_own(tmp_path: Path) -> None:
    count, dimensions = 100_000, 256
    index = LanceIndex(tmp_path, dimensions)
    generator = np.random.default_rng(1)
    contents = texts(count, 36, 2)
    for start in range(0, count, 20_000):
        vectors = generator.standard_normal((20_000, dimensions)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        index.upsert(
            [
                IndexRow(f"c{start + i}", "org", f"s{i % 4}", f"d{start + i}", contents[start + i], vector=vectors[i])
                for i in range(20_000)
            ]
        )
    index.settle()
    table = index._table
    asked = generator.standard_normal((20, dimensions)).astype(np.float32)
    asked /= np.linalg.norm(asked, axis=1, keepdims=True)
    queries = [(" ".join(random.Random(i).sample(VOCABULARY[100:5000], 6)), vector) for i, vector in enumerate(asked)]  # noqa: S311 - a repeatable draw, nothing secret
    selection = Selection("org", ("s0", "s1", "s2", "s3"))

    def ours() -> None:
        for text, vector in queries:
            assert index.search(SearchRequest(text, vector, 100, selection)).candidates

    def native() -> None:
        for text, vector in queries:
            query = table.search(query_type="hybrid", vector_column_name="vector", fts_columns="terms")
            query = query.vector(vector).text(" ".join(terms(text))).distance_type("cosine")
            where = "org_id = 'org' AND data_source_id IN ('s0', 's1', 's2', 's3')"
            assert query.where(where, prefilter=True).limit(100).to_arrow().num_rows

    ratio = median_ratio(ours, native)
    print(f"hybrid search over 100k chunks: {ratio:.2f} of LanceDB's own hybrid query")  # noqa: T201 - the figure is what the measurement is for
    assert ratio <= 1.5


def test_ingestion_beside_the_sum_of_its_parts(tmp_path: Path) -> None:
    documents = [
        Document(document_id=f"d{i}", text=text, media_type="text/plain") for i, text in enumerate(texts(400, 600, 3))
    ]
    embedder, chunker = open_embedder("wordllama"), Chunker(default_counter())
    ratios: list[float] = []
    for block in range(5):
        parts = 0.0
        started = time.perf_counter()
        parsed = [parse(document) for document in documents]
        chunks = [chunker.cut(one, scope=f"s{i}") for i, one in enumerate(parsed)]
        flat = [chunk for several in chunks for chunk in several]
        vectors = embedder.embed([chunk.text for chunk in flat])
        rows = [
            IndexRow(chunk.chunk_id, "local", "s", "d", chunk.text, vector=vectors[i]) for i, chunk in enumerate(flat)
        ]
        writer = LanceIndex(tmp_path / f"parts{block}", embedder.dimensions)
        writer.upsert(rows)
        writer.settle()
        parts = time.perf_counter() - started
        with Pipeline(tmp_path / f"home{block}") as pipeline:
            whole = seconds(lambda: pipeline.ingest(documents, "s"))
        ratios.append(parts / whole)
    speed = statistics.median(ratios)
    print(f"ingestion runs at {speed:.2f} of the speed of its parts")  # noqa: T201 - the figure is what the measurement is for
    assert speed >= 0.7


MEMORY = textwrap.dedent(
    """
    import resource, sys
    from spanforge.reference import Pipeline
    pipeline = Pipeline(sys.argv[1])
    pipeline.ingest(sys.argv[2])
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    """
)


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kilobytes on Linux only")
def test_memory_of_ingestion_is_flat_in_corpus_size(tmp_path: Path) -> None:
    assert resource.RUSAGE_SELF is not None
    peaks: list[int] = []
    for factor in (1, 8):
        folder = tmp_path / f"corpus{factor}"
        folder.mkdir()
        for i, text in enumerate(texts(400 * factor, 600, factor)):
            (folder / f"{i}.txt").write_text(text)
        command = [sys.executable, "-c", MEMORY, str(tmp_path / f"home{factor}"), str(folder)]
        environment = {"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": "/usr/bin:/bin", "SPANFORGE_SANDBOX": "1"}
        peaks.append(int(subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout))
    print(f"peak memory {peaks[0] // 1024} MiB, of eight times the corpus {peaks[1] // 1024} MiB")  # noqa: T201 - the figure is what the measurement is for
    assert peaks[1] <= 1.25 * peaks[0]
