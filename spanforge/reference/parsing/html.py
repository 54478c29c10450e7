"""HTML: the main text of a page, without its navigation and its scripts."""

from __future__ import annotations

from typing import Any

from spanforge.reference._extras import Untyped, load
from spanforge.reference.failures import ParseError
from spanforge.reference.parsing.base import MAX_TEXT_CHARS, ParsedDocument, Section, bounded, decode

_UNSEEN = "script, style, noscript, template, iframe, object, nav, footer, aside, form, [hidden]"


def parse_html(content: bytes) -> ParsedDocument:
    """Return the main text as Markdown; where none is made out, all text that a reader would see.

    Raises:
        ParseError: The page holds no text.
    """
    if len(content) > MAX_TEXT_CHARS:
        raise ParseError(f"An HTML page larger than {MAX_TEXT_CHARS} bytes is refused; split it.")
    page = decode(content)
    parser = load("selectolax.lexbor", "reference").LexborHTMLParser(page)
    title_node = parser.css_first("title")
    title = title_node.text(strip=True) if title_node is not None else ""
    for node in parser.css(_UNSEEN):
        node.decompose()
    text = _main_text(parser.html or "")
    seen = _visible_text(parser)
    # The extractor is made for articles; on a page of another kind it may keep next to nothing.
    if text is None or len(text) < len(seen) // 4:
        return bounded([Section(seen, "text", heading=title)], "text/html", title=title)
    return bounded([Section(text, "markdown", heading=title)], "text/html", title=title)


def _main_text(page: str) -> str | None:
    trafilatura = load("trafilatura", "reference")
    result: Any = trafilatura.extract(
        page, output_format="markdown", include_comments=False, include_tables=True, include_images=False,
        include_links=False, include_formatting=True, deduplicate=False,
    )  # fmt: skip
    return result


def _visible_text(parser: Untyped) -> str:
    body = parser.body
    if body is None:
        return ""
    lines = (" ".join(line.split()) for line in body.text(separator="\n").splitlines())
    return "\n".join(line for line in lines if line)
