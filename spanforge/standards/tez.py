"""Tezit bundles (protocol 1.2): what is said about a session's sources, without any file being touched.

A bundle names its sources as context items; the transparency record points at them. Here are ids, manifests and
the page; `spanforge.standards.tez_bundle` reads and writes bundles.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from spanforge._text import well_formed
from spanforge.namespaces.retrieval import RetrievedChunk
from spanforge.standards._table import UNKNOWN
from spanforge.standards.tree.session import Session, labelled

__all__ = [
    "EXTENSION_FILE",
    "HASHES_FILE",
    "STANDARD_ID",
    "TEZ_VERSION",
    "VENDOR_ID",
    "ContextItem",
    "bundle_id",
    "content_hashes",
    "context_items",
    "extension_manifest",
    "file_name",
    "item_id",
    "manifest",
    "page",
    "source_ids",
    "source_of",
]

TEZ_VERSION: Final = "1.2"
VENDOR_ID: Final = "com.ragu.retrieval-transparency"
STANDARD_ID: Final = "tezit-retrieval-transparency"
EXTENSION_FILE: Final = "retrieval-transparency.json"
HASHES_FILE: Final = "content-hashes.json"

_MAX_ID: Final = 100
_MIN_ID: Final = 3
_DIGEST: Final = 8
_MIME_TYPES: Final[Mapping[str, str]] = {
    ".csv": "text/csv",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".html": "text/html",
    ".json": "application/json",
    ".md": "text/markdown",
    ".pdf": "application/pdf",
    ".txt": "text/plain",
}


@dataclass(frozen=True, slots=True)
class ContextItem:
    """One source of a session as a context item.

    Attributes:
        item_id: Its id in the bundle.
        source: What the chunks call it; their own id where they name none.
        file: Path in the bundle; empty where the source is not in it.
        size_bytes: Size of the file.
        digest: `sha256:<hex>` of the file.
        changed: The file was written after the session read it.
    """

    item_id: str
    source: str
    file: str = ""
    size_bytes: int = 0
    digest: str = ""
    changed: bool = False


def _slug(text: str, allowed: str) -> str:
    return re.sub(rf"[^{allowed}]+", "-", text.lower()).strip("-._")


def item_id(source: str) -> str:
    """Return the context item id of a source.

    A source that already is an id stays; of any other, the readable part and some digits of its digest, so that
    two sources never share one.
    """
    if re.fullmatch(r"[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?", source) and len(source) <= _MAX_ID:
        return source
    digest = sha256(source.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
    readable = _slug(source, "a-z0-9._-")[-(_MAX_ID - _DIGEST - 1) :].strip("-._")
    return f"{readable}-{digest}" if readable else f"source-{digest}"


def bundle_id(session_id: str) -> str:
    """Return the id of a session's bundle: lower-case letters, digits and hyphens, 3 to 100 of them."""
    slug = _slug(session_id, "a-z0-9")
    if slug != session_id.lower() or not _MIN_ID <= len(slug) <= _MAX_ID:
        digest = sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
        slug = f"{slug[: _MAX_ID - _DIGEST - 1].strip('-')}-{digest}".strip("-")
    return slug


def source_of(chunk: RetrievedChunk) -> str:
    """Return what a chunk's context item is called: its source, else its own id."""
    return chunk.source or chunk.chunk_id


def context_items(session: Session) -> list[ContextItem]:
    """Return the distinct sources of everything that was retrieved, in order of first appearance."""
    chunks = (chunk for stage in session.retrievals for chunk in stage.payload.chunks)
    return [ContextItem(item_id(source), source) for source in dict.fromkeys(source_of(chunk) for chunk in chunks)]


def content_hashes(session: Session) -> dict[str, str]:
    """Return the digest of each chunk's text by chunk id, for those that have one."""
    return {
        chunk.chunk_id: labelled(session.facts.algorithm, chunk.content_hash)
        for stage in session.retrievals
        for chunk in stage.payload.chunks
        if labelled(session.facts.algorithm, chunk.content_hash)
    }


def file_name(item: str, suffix: str) -> str:
    """Return the path of an item's file in a bundle: its id, whole, and an extension (protocol, section 5.2).

    Args:
        item: The item's id, which may hold dots.
        suffix: Of the file it is copied from; may be empty.
    """
    return f"context/{item}{suffix.lower() or '.bin'}"


def source_ids(items: list[dict[str, Any]]) -> dict[str, str]:
    """Return the ids of an existing bundle's items by everything a source may be called: id, source, file, URI."""
    known: dict[str, str] = {}
    for item in items:
        for name in ("external_uri", "title", "file", "source", "id"):
            if isinstance(item.get(name), str):
                known[item[name]] = item["id"]
        if isinstance(item.get("file"), str):
            known[item["file"].removeprefix("context/")] = item["id"]
    return known


def _described(item: ContextItem) -> dict[str, Any]:
    suffix = item.source[item.source.rfind(".") :].lower() if "." in item.source else ""
    external = item.source.startswith("https://")
    described: dict[str, Any] = {
        "id": item.item_id,
        "type": "webpage" if external else "document",
        "title": well_formed(item.source),
        "source": well_formed(item.source),
        "file": item.file or None,
    }
    if external and not item.file:
        described["external_uri"] = well_formed(item.source)
    if item.file:
        described |= {"size_bytes": item.size_bytes, "hash": item.digest}
    if item.changed:
        described["metadata"] = {"changed_after_retrieval": True}
    if suffix in _MIME_TYPES:
        described["mime_type"] = _MIME_TYPES[suffix]
    return described


def manifest(session: Session, items: list[ContextItem], creator: str) -> dict[str, Any]:
    """Return the manifest of a new bundle.

    Args:
        session: The session; its last event dates the bundle.
        items: Its context items.
        creator: Who made the bundle.
    """
    return {
        "tezit_version": TEZ_VERSION,
        "id": bundle_id(session.session_id),
        "version": 1,
        "created_at": session.stages[-1].event.timestamp,
        "creator": {"name": creator},
        "profile": "knowledge",
        "synthesis": {"title": f"RAG session {well_formed(session.session_id)}", "type": "summary", "file": "tez.md"},
        "context": {
            "scope": "focused",
            "item_count": len(items),
            "total_size_bytes": sum(item.size_bytes for item in items),
            "items": [_described(item) for item in items],
        },
    }


def extension_manifest(extension_id: str) -> dict[str, Any]:
    """Return the manifest of the extension folder."""
    return {
        "extension_id": extension_id,
        "extension_version": "1.0.0",
        "name": "Retrieval Transparency",
        "description": "How the answer was sourced: strategy, ranking, scores and sources of the retrieval",
        "author": "spanforge",
    }


def page(session: Session, record: Mapping[str, Any]) -> str:
    """Return `tez.md`: what the trace says of the session, as prose; neither question nor answer is in it."""
    models = sorted({stage.payload.model for stage in session.generations})
    reranked = f", reranked with {record['reranking_model']}" if record["reranking_applied"] else ""
    lines = [
        f"# RAG session {session.session_id}",
        "",
        f"Answered from {record['chunks_evaluated']} of {record['chunks_retrieved']} retrieved chunks.",
        "",
        f"- Pipeline: {session.facts.pipeline_name or UNKNOWN}",
        f"- Retrieval: {record['retrieval_strategy']}, ranked by {record['ranking_method']}{reranked}",
        f"- Time: {record['retrieval_time_ms']} ms",
        f"- Model: {', '.join(models) or 'none'}",
        f"- Question: {session.facts.query or 'no digest'}",
        "",
        "## Sources",
        "",
    ]
    lines += [
        f"- [[{entry['source_item_id']}]] {entry['chunk_id']}: score {entry['score']:.4f}"
        for entry in record["similarity_scores"]
    ]
    return well_formed("\n".join(lines) + "\n")
