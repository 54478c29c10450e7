"""Documents that are small to keep and ruinous to read are refused before a parser sees them; others are read."""

from __future__ import annotations

import zlib
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import bombs
from support.documents import pdf, word

from spanforge.reference import Document, Pipeline
from spanforge.reference.failures import ParseError
from spanforge.reference.models import JobStatus
from spanforge.reference.parsing import Limits, codings, parse
from spanforge.reference.parsing.streams import Streams

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from spanforge.reference.parsing.codings import Piece

SMALL = Limits(stream=512 << 10, streams=4 << 20)
"""Limits for bombs that take little time to make."""
KIBIBYTES = 768
SLUICE = "The sluice opens at six."


def _document(content: bytes, name: str = "a.pdf") -> Document:
    return Document(document_id=name, content=content, name=name)


@pytest.mark.parametrize("wrapped", bombs.WRAPPED_PDFS, ids=lambda one: one.name)
def test_a_stream_is_measured_however_it_is_wrapped(wrapped: bombs.WrappedPdf) -> None:
    with pytest.raises(ParseError, match="unfolds to far more"):
        parse(_document(wrapped.make(KIBIBYTES)), SMALL)
    # The same with little in it is read: it holds no text, which is another matter.
    if wrapped.name != "five times":
        with pytest.raises(ParseError, match="holds no text"):
            parse(_document(wrapped.make(1)), SMALL)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("a.docx", bombs.big_docx),
        ("a.docx", bombs.lying_docx),
        ("a.docx", bombs.padded_docx),
        ("a.pdf", bombs.pdf_stream_bomb),
        ("a.pdf", bombs.pdf_object_bomb),
        ("a.html", bombs.deep_html),
    ],
    ids=["zip", "lying zip", "padded zip", "pdf stream", "pdf objects", "deep html"],
)
def test_the_defaults_refuse_what_would_hurt(name: str, make: Callable[[], bytes]) -> None:
    with pytest.raises(ParseError):
        parse(_document(make(), name))


def test_a_folder_with_bombs_in_it_is_read_but_for_them(tmp_path: Path) -> None:
    (tmp_path / "good.md").write_text(SLUICE, encoding="utf-8")
    (tmp_path / "good.docx").write_bytes(word([SLUICE]))
    (tmp_path / "good.pdf").write_bytes(pdf([SLUICE]))
    (tmp_path / "bad.docx").write_bytes(bombs.big_docx())
    (tmp_path / "bad.html").write_bytes(bombs.deep_html())
    for wrapped in bombs.WRAPPED_PDFS:
        (tmp_path / f"bad {wrapped.name}.pdf").write_bytes(wrapped.make(KIBIBYTES))
    with Pipeline(embedder=None, limits=SMALL) as pipeline:
        job = pipeline.ingest(tmp_path)
        assert (job.status, job.indexed) == (JobStatus.COMPLETED, 3)
        assert {failure.code for failure in job.failures} == {"PARSE_ERROR"}
        assert len(job.failures) == 2 + len(bombs.WRAPPED_PDFS)
        assert {one.source for one in pipeline.retrieve("sluice").documents} == {"good.md", "good.docx", "good.pdf"}


@pytest.mark.parametrize("between", [b"\x00" * 9, b""], ids=["whole", "broken"])
def test_streams_that_take_and_give_nothing_are_counted_too(between: bytes) -> None:
    """Many streams that share one long tail of empty blocks unfold to nothing, and would be read once for each."""
    empty = b"\x00\x00\x00\xff\xff"
    # Each stream is one stored block that holds the next stream's beginning, and runs on into the tail.
    begin = b"stream\n\x78\x9c" + b"\x00\x09\x00\xf6\xff"
    content = b"%PDF-1.5\n" + begin * 100 + between + empty * 20_000
    assert Streams(content, one=1 << 20, together=1 << 20).unfold_too_far()


def test_noise_with_every_name_in_it_is_no_bomb() -> None:
    """A picture's bytes, read by codings that they are not in, unfold to next to nothing."""
    names = b"/LZW [/RL /Fl] [/A85 /LZW] [/AHx /RL /Fl] /EarlyChange"
    noise = Random(3).randbytes(200_000)  # noqa: S311  noise, no secret
    content = names + b"".join(b" stream\n" + noise[at : at + 2_000] for at in range(0, len(noise), 2_000))
    assert not Streams(content, one=1 << 20, together=64 << 20).unfold_too_far()


@given(st.binary(max_size=600))
def test_every_coding_is_undone(data: bytes) -> None:
    assert codings.ascii85(bombs.as_ascii85(data))[0] == data
    assert codings.ascii_hex(bombs.as_hex(data))[0] == data
    assert codings.run_length(bombs.as_runs(data), 1 << 20)[0] == data
    for early in (0, 1):
        assert codings.lzw(bombs.as_lzw(data, early=early), 1 << 20, early=early)[0] == data


@given(st.binary(max_size=300))
def test_no_coding_minds_what_it_is_given(data: bytes) -> None:
    assert codings.ascii85(data)[1] <= len(data)
    assert codings.ascii_hex(data)[1] <= len(data)
    assert codings.lzw(data, 1_000, early=1)[1] <= len(data)
    assert len(codings.run_length(data, 1_000)[0]) <= 1_000 + 128


@pytest.mark.parametrize("early", [0, 1])
def test_long_texts_come_back_from_lzw(early: int) -> None:
    text = b"".join(b"%d barges and %d boats. " % (i, i * i) for i in range(4_000))
    assert codings.lzw(bombs.as_lzw(text, early=early), 1 << 20, early=early)[0] == text


def test_nothing_is_unfolded_beyond_its_limit_by_more_than_a_piece() -> None:
    limit = 10_000
    undone: list[Piece] = [
        codings.run_length(bombs.as_runs(b" " * 1_000_000), limit)[0],
        codings.lzw(bombs.as_lzw(b" " * 1_000_000), limit, early=1)[0],
        b"".join(part for part, _ in codings.inflated([zlib.compress(b" " * 1_000_000)], limit, wbits=15)),
    ]
    assert all(limit < len(one) <= limit + codings.PIECE for one in undone)
