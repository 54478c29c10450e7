"""Writes the reference pages that repeat what the code says: `python docs/generate.py`. A test keeps them in step."""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from spanforge import auto
from spanforge.config import Settings
from spanforge.metrics.aitf import AITF
from spanforge.metrics.genai import EARLIER, GENAI
from spanforge.namespaces import PAYLOADS
from spanforge.namespaces.retrieval import RetrievedChunk
from spanforge.sdk import ServerSettings, SFFeedbackClient, SFRAGClient
from spanforge.sdk._scores import RULES
from spanforge.server import create_app
from spanforge.server.auth.permissions import ANYONE, ROLES, TABLE
from spanforge.server.openapi import describe
from spanforge.server.problems import KINDS
from spanforge.standards import STANDARDS

_MEASURED = """Sent by the OTLP sink, cumulative unless OpenTelemetry's variable asks for deltas.

Left unsaid: what nobody measured, zeros included; sessions, digests and users, which are no labels.

Checked with: Debian's Prometheus 2.42, which scrapes [our own figures](../how-to/monitor.md) and is asked for them;
it is older than the OTLP receiver of Prometheus (2.47), so that totals by OTLP are read by `opentelemetry-proto`
and passed on by Rotel, a collector that comes as a Python package. The same test sends them to a Prometheus from
2.47 on where it finds one. Not run: a newer Prometheus, the OpenTelemetry Collector and Jaeger, which no registry
for Debian or Python packages has. Names, units and bounds of buckets are those of the published pages of
semantic-conventions-genai."""
_HERE = Path(__file__).parent / "reference"
_LONG = 100
_EVENTS = {**PAYLOADS, "A chunk": RetrievedChunk}
_CALLS = [
    "trace_query", "trace_retrieval", "trace_rerank", "trace_generation", "trace_evaluation", "escalate",
    "end_session", "get_session", "join_session", "session", "retrieval", "rerank", "generation", "attach",
    "current_session_id", "current_scope", "bind", "configure", "flush", "aflush", "shutdown", "get_status",
]  # fmt: skip
_INPUTS = (Path(__file__).parent / "reference" / "_inputs.md").read_text(encoding="utf-8")


def _sections(documentation: str) -> dict[str, str]:
    """Take a Google-style docstring apart: the text before the first section, and each section by its name."""
    parts = re.split(r"^(Args|Attributes|Returns|Raises):\n", inspect.cleandoc(documentation), flags=re.MULTILINE)
    return {"": parts[0].strip(), **dict(zip(parts[1::2], parts[2::2], strict=True))}


def _entries(section: str) -> dict[str, str]:
    """Return name and text of each entry of a section."""
    found: dict[str, str] = {}
    for line in inspect.cleandoc(section).splitlines():
        match = re.match(r"(\w+): (.*)", line)
        if match:
            found[match[1]] = match[2]
        elif found:
            found[list(found)[-1]] += " " + line.strip()
    return found


def settings_page() -> str:
    """Return the page of settings."""
    told = _entries(_sections(Settings.__doc__ or "")["Attributes"])
    lines = [
        "# Settings",
        "",
        "What `configure()` takes. Each is also read from the environment, as `SPANFORGE_` and its name in capitals;",
        "keywords win over the environment, which wins over the defaults. Lists are written `a, b` in the environment.",
        "Every call of `configure()` begins anew: what it does not name, even the sinks, is as without that call.",
        "",
        "| setting | default | meaning |",
        "|---|---|---|",
    ]
    for name, field in Settings.model_fields.items():
        lines.append(f"| `{name}` | `{field.get_default()!r}` | {told[name]} |")
    return "\n".join(lines) + "\n"


def events_page() -> str:
    """Return the page of payloads."""
    lines = [
        "# Events",
        "",
        "Payloads by type of event; [the envelope](envelope.md) is the same for all. Classes are in",
        "`spanforge.namespaces.retrieval` and `spanforge.namespaces.feedback`: frozen, by keyword or position, with",
        "`to_dict()` and `from_dict()`; an invalid value raises `ValueError` naming the field.",
    ]
    for event_type, payload in _EVENTS.items():
        sections = _sections(payload.__doc__ or "")
        told = _entries(sections["Attributes"])
        head = sections[""].partition(": ")[2] or sections[""]
        lines += ["", f"## {event_type}", "", f"`{payload.__name__}`. {head[:1].upper()}{head[1:]}", ""]
        lines += ["| field | type | meaning |", "|---|---|---|"]
        for field in fields(payload):
            lines.append(f"| `{field.name}` | `{_type(field.type)}` | {told[field.name]} |")
    return "\n".join(lines) + "\n"


def _type(annotation: Any) -> str:
    return str(annotation).replace("typing.", "").replace("|", "or")


def calls_page() -> str:
    """Return the page of trace calls."""
    lines = ["# Trace calls", "", _INPUTS.strip(), ""]
    for client, title, names in (
        (SFRAGClient, "sf_rag", _CALLS),
        (SFFeedbackClient, "sf_feedback", ["submit", "get_feedback", "get_summary", "get_status"]),
        (auto, "spanforge.auto", ["trace_rag", "setup", "teardown", "status", "paused", "patched_integrations"]),
    ):
        for name in names:
            method = getattr(client, name)
            sections = _sections(method.__doc__ or "")
            lines += [f"## {title}.{name}", "", "```text", _signature(name, method), "```", "", sections[""], ""]
            if "Args" in sections:
                lines += ["| argument | meaning |", "|---|---|"]
                lines += [f"| `{key}` | {text} |" for key, text in _entries(sections["Args"]).items()]
                lines.append("")
            for part in ("Returns", "Raises"):
                if part in sections:
                    lines += [f"**{part}.** {' '.join(sections[part].split())}", ""]
    rules = ", ".join(f"`{name}`" for name in RULES)
    return "\n".join(lines).replace("{rules}", rules).rstrip() + "\n"


def _signature(name: str, method: Any) -> str:
    """Write a signature without the instance, one parameter a line where it is long."""
    signature = inspect.signature(method)
    kept = [parameter for key, parameter in signature.parameters.items() if key != "self"]
    # Annotations are strings, which print in quotes; the quotes of defaults are theirs.
    text = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(signature.replace(parameters=kept)))
    if len(text) < _LONG:
        return name + text
    opened = re.sub(r", (?![^\[]*\])", ",\n    ", text).replace("(", "(\n    ", 1)
    return name + re.sub(r"\)( ->|$)", r",\n)\1", opened)


def standards_page() -> str:
    """Return the page of other standards' names."""
    lines = [
        "# Standards",
        "",
        "What spanforge writes in the words of other standards. All span attributes stand on the same spans.",
        "`query`, `retrieved`, `reranked`, `generated`, `evaluated`, `session`, `escalated` and `submitted` are the",
        "payloads of the [events](events.md) of those names.",
    ]
    for standard in STANDARDS:
        lines += ["", f"## {standard.name}", "", f"Version: {standard.version}.", "", standard.note, ""]
        lines += [f"Left unsaid: {standard.unsaid}", "", f"Checked with: {standard.checked}"]
        for section in standard.sections:
            judged = any(row.compliance for row in section.rows)
            lines += ["", f"### {section.title}", ""]
            lines.append("| name | level | where it comes from |" + (" compliance |" if judged else ""))
            lines.append("|---|---|---|" + ("---|" if judged else ""))
            for row in section.rows:
                compliance = f" {row.compliance} |" if judged else ""
                key = row.key.replace("{n}", "N")
                lines.append(f"| `{key}` | {row.level.value} | {row.origin} |{compliance}")
    return "\n".join((*lines, *_metrics())) + "\n"


def _metrics() -> list[str]:
    """Return what is measured under the names of other standards, and what has read it."""
    lines = ["", "## Metrics", "", _MEASURED]
    for title, instruments in (
        ('GenAI 0.1, `metric_names=("genai",)`', GENAI),
        ('Before 0.1, `"genai-earlier"`', EARLIER),
        ('AITF, `"aitf"`', AITF),
    ):
        lines += ["", f"### {title}", "", "| name | unit | kind | what |", "|---|---|---|---|"]
        for one in instruments:
            kind = f"histogram, {one.bounds[0]:.9g} to {one.bounds[-1]:.9g}" if one.bounds else "counter"
            lines.append(f"| `{one.name}` | {one.unit} | {kind} | {one.description} |")
    return lines


def http_page() -> str:
    """Return the page of the HTTP API."""
    document = _openapi()
    lines = [
        "# HTTP API",
        "",
        "What `spanforge serve` answers. `GET /docs` shows the same, `GET /openapi.json` tells it to programs;",
        "[how to serve](../how-to/serve.md) shows it at work.",
    ]
    schemas = document["components"]["schemas"]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            lines += ["", f"## {method.upper()} {path}", "", operation["description"]]
            body = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if body:
                lines += ["", *_fields(schemas[body["schema"]["$ref"].rpartition("/")[2]])]
            lines += ["", "| status | |", "|---|---|"]
            lines += [f"| {status} | {answer['description']} |" for status, answer in operation["responses"].items()]
    lines += [
        "",
        "## Problems",
        "",
        "Every error is `application/problem+json` (RFC 9457); `code` is one of these.",
        "",
    ]
    lines += ["| code | status | detail |", "|---|---|---|"]
    lines += [f"| `{code}` | {kind.status} | {kind.detail} |" for code, kind in sorted(KINDS.items())]
    lines += ["", "## Roles", "", "| route | " + " | ".join(ROLES) + " |", "|---|" + "---|" * len(ROLES)]
    for (method, path), allowed in TABLE.items():
        cells = ["yes" if role in allowed or allowed is ANYONE else "" for role in ROLES]
        lines.append(f"| {method} `{path}` | " + " | ".join(cells) + " |")
    told = _entries(_sections(ServerSettings.__doc__ or "")["Attributes"])
    lines += ["", "## Settings", "", "Each is read from `SPANFORGE_SERVER_` and its name in capitals.", ""]
    lines += ["| setting | default | meaning |", "|---|---|---|"]
    for name, field in ServerSettings.model_fields.items():
        default = field.get_default()
        shown = ", ".join(sorted(default)) if isinstance(default, frozenset) else str(default)
        lines.append(f"| `{name}` | {f'`{shown}`' if shown else ''} | {told[name]} |")
    return "\n".join(lines) + "\n"


def _openapi() -> dict[str, Any]:
    with TemporaryDirectory() as home:
        app = create_app(ServerSettings(home=Path(home)))
        document = describe(app, app.state.service.tenants.modes())
        app.state.service.close()
    return document


def _fields(schema: dict[str, Any]) -> list[str]:
    """Return a table of a body's fields."""
    lines = ["| field | takes | default |", "|---|---|---|"]
    for name, field in schema["properties"].items():
        default = f"`{json.dumps(field['default'])}`" if "default" in field else "required"
        lines.append(f"| `{name}` | {_takes(field)} | {default} |")
    return lines


def _takes(field: dict[str, Any]) -> str:
    """Say what a field takes, without its pattern."""
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(_takes(one) for one in field["anyOf"] if one.get("type") != "null"))
    if "enum" in field:
        return " or ".join(f"`{value}`" for value in field["enum"] if value is not None)
    if "$ref" in field:
        return f"`{field['$ref'].rpartition('/')[2]}`"
    bounds = [
        f"{word} {field[key]}"
        for key, word in (
            ("minimum", "from"), ("maximum", "to"), ("minLength", "length from"), ("maxLength", "length to"),
            ("minItems", "items from"), ("maxItems", "items to"),
        )
        if key in field
    ]  # fmt: skip
    kind = f"array of {_takes(field['items'])}" if field.get("type") == "array" else field.get("type", "any")
    return ", ".join([kind, *bounds])


PAGES = {
    "settings.md": settings_page,
    "events.md": events_page,
    "trace-calls.md": calls_page,
    "standards.md": standards_page,
    "http-api.md": http_page,
}

if __name__ == "__main__":
    for page, write in PAGES.items():
        (_HERE / page).write_text(write(), encoding="utf-8")
