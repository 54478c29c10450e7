"""The OpenAPI document as one page that needs nothing from anywhere: no script, no font, no other host."""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape
from typing import TYPE_CHECKING, Any, Final

from spanforge.server.bodies import JSON

if TYPE_CHECKING:
    from collections.abc import Iterator

_STYLE: Final = """
:root { color-scheme: light dark; font: 16px/1.55 system-ui, sans-serif; }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 60rem; overflow-wrap: anywhere; }
h2 { margin-top: 2.5rem; }
details { border: 1px solid #8886; border-radius: 8px; padding: .5rem .9rem; margin: .5rem 0; }
summary { cursor: pointer; }
code, pre { font: .875rem/1.5 ui-monospace, monospace; }
pre { overflow-x: auto; background: #8881; border-radius: 6px; padding: .75rem; }
th, td { text-align: left; vertical-align: top; padding: .2rem 1rem .2rem 0; }
b.verb { display: inline-block; min-width: 4.5rem; }
@media (prefers-color-scheme: dark) { :root { background: #14181d; color: #e8eaed; } a { color: #9ecbff; } }
"""
POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        f"style-src 'sha256-{base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
"""What a browser may do with the page."""


def page(document: dict[str, Any]) -> str:
    """Return the page of an OpenAPI document."""
    title, version = escape(document["info"]["title"]), escape(document["info"]["version"])
    head = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title} {version}</title><style>{_STYLE}</style></head><body><main>"
    )
    lead = (
        f"<h1>{title} {version}</h1><p>{escape(document['info'].get('summary', ''))}. For programs: "
        '<a href="openapi.json">openapi.json</a>. Send a key or a token as <code>Authorization: Bearer …</code>.</p>'
    )
    groups: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        for verb, operation in operations.items():
            groups.setdefault(operation["tags"][0], []).append("".join(_operation(verb, path, operation)))
    body = "".join(f"<h2>{escape(name)}</h2>{''.join(entries)}" for name, entries in groups.items())
    return f"{head}{lead}{body}</main></body></html>"


def _operation(verb: str, path: str, operation: dict[str, Any]) -> Iterator[str]:
    yield f'<details><summary><b class="verb">{verb.upper()}</b> <code>{escape(path)}</code> '
    yield f"{escape(operation['summary'])}</summary>"
    for paragraph in operation.get("description", "").split("\n\n"):
        yield f"<p>{escape(paragraph)}</p>"
    for one in operation.get("parameters", ()):
        yield f"<p><code>{escape(one['name'])}</code> in the {escape(one['in'])}</p>"
    example = operation.get("requestBody", {}).get("content", {}).get(JSON, {}).get("example")
    if example is not None:
        yield f"<p>Body, for instance:</p><pre>{escape(json.dumps(example, indent=2, ensure_ascii=False))}</pre>"
    yield "<table><tr><th>Status</th><th>Answer</th></tr>"
    for status, answer in operation["responses"].items():
        yield f"<tr><td>{escape(status)}</td><td>{escape(answer['description'])}</td></tr>"
    yield "</table></details>"
