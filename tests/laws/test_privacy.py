"""Privacy: a text planted anywhere in what an application passes is found nowhere afterwards."""

from __future__ import annotations

import contextlib
import enum
import io
import logging
import pathlib
import pickle
import re
import secrets
import sys
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.door import SESSION, Place, places

from spanforge.exceptions import ConfigError, UnknownSessionError
from spanforge.namespaces.event import Event
from spanforge.sdk import Settings, SFClientConfig, SFFeedbackClient, SFRAGClient
from spanforge.sinks.base import BaseSink
from spanforge.sinks.memory import MemorySink
from spanforge.sinks.structlog import StructlogSink
from spanforge.testing import find_canary

WORD = f"canary{secrets.token_hex(12)}"
PHRASE = f'Ünder "{WORD}"\n\x1b[31m\u2028 the \ud800 rug'
CANARIES = (WORD, PHRASE)

KEPT_ARGUMENTS = frozenset(
    {"session_id", "trace_id", "chunk_ids_used", "source"}
    | {"retriever_name", "embedding_model", "model", "namespace", "pipeline_name", "span_name"}
    | {"provider", "finish_reason", "evaluator", "rule"}
    | {"conversation_id", "embedding_provider", "response_id", "response_model", "finish_reasons", "cost_basis"}
    | {"org_id", "team_id", "actor_id", "project_id", "tags"}
)
KEPT_OF_HITS = frozenset(
    {"chunk_id", "id", "doc_id", "_id", "id_", "node_id"} | {"source", "url", "uri", "file_path", "file_name", "path"}
)
CAPTURED_ARGUMENTS = frozenset({"error_message", "filters", "metadata", "chunks", "hits"})


class Loud(enum.Enum):
    WORD = WORD


class Telling:
    """Says the canary whenever it is asked anything."""

    def __repr__(self) -> str:
        return PHRASE

    __str__ = __repr__

    def __float__(self) -> float:
        raise ValueError(PHRASE)

    @property
    def text(self) -> str:
        raise KeyError(PHRASE)


def _failure() -> BaseException:
    try:
        try:
            raise KeyError(PHRASE)  # noqa: TRY301  a chain of two is wanted
        except KeyError as error:
            raise ValueError(PHRASE, WORD) from error
    except ValueError as error:
        return error


def _hit(text: Any) -> dict[str, Any]:
    """Return a hit with the text in every place but those that are kept as given."""
    return {
        **dict.fromkeys(("content", "text", "page_content", "document", "body", "title", "content_hash"), text),
        **dict.fromkeys(("score", "rank", "raw_score", "node"), text),
        "metadata": {"note": text, "deep": {"er": [text, (text,)]}, f"a key: {text}": 1},
    }


FORMS: dict[str, Callable[[], Any]] = {
    "word": lambda: WORD,
    "phrase": lambda: PHRASE,
    "bytes": WORD.encode,
    "enum": lambda: Loud.WORD,
    "numpy": lambda: np.str_(WORD),
    "path": lambda: pathlib.Path(WORD),
    "exception": _failure,
    "object that tells": Telling,
    "list": lambda: [WORD, [PHRASE]],
    "mapping": lambda: {"key": WORD, "deep": {"er": [PHRASE, {"est": WORD}]}, PHRASE: 1, (WORD,): 2},
    "hit": lambda: [_hit(WORD)],
    "document": lambda: [(SimpleNamespace(**_hit(PHRASE)), 0.5), (WORD, 0.5), (PHRASE, WORD)],
    "columns": lambda: {"ids": ["a"], "documents": [WORD], "metadatas": [{"note": PHRASE}], "distances": [WORD]},
    "feedback": lambda: {"issues": [WORD, PHRASE], "note": PHRASE},
}


WORST_FORMS = ("word", "exception", "mapping", "hit")
"""Enough where another way out is tried than another way in."""


class FailingSink(BaseSink):
    """Fails with an error that quotes what a careless receiver might."""

    name = "failing"

    def write(self, _events: Sequence[Event], /) -> None:
        raise ConnectionError(PHRASE) from _failure()

    def close(self) -> None:
        raise RuntimeError(PHRASE)


class LeakySink(BaseSink):
    """Leaks on purpose, by every way there is."""

    name = "leaky"

    def write(self, _events: Sequence[Event], /) -> None:
        print(WORD)  # noqa: T201  the leak
        print(PHRASE, file=sys.stderr)  # noqa: T201  the leak
        logging.getLogger("leaky").warning("it was about %s", WORD)
        logging.getLogger("leaky").error("failed", exc_info=_failure())


class Watch:
    """Everything that leaves a process while it is open: what is printed, logged and raised."""

    def __init__(self) -> None:
        self.out, self.err, self.log = io.StringIO(), io.StringIO(), io.StringIO()
        self.things: dict[str, bytes] = {}

    @contextlib.contextmanager
    def open(self) -> Generator[None]:
        root, handler = logging.getLogger(), logging.StreamHandler(self.log)
        level = root.level
        root.addHandler(handler)
        root.setLevel(logging.DEBUG)
        try:
            with contextlib.redirect_stdout(self.out), contextlib.redirect_stderr(self.err):
                yield
        finally:
            root.removeHandler(handler)
            root.setLevel(level)

    def see(self, name: str, thing: object) -> None:
        """Look at a thing as anybody could who has it."""
        self.things[f"repr of {name}"] = _bytes(repr(thing))
        with contextlib.suppress(TypeError, AttributeError, pickle.PicklingError):
            self.things[f"pickle of {name}"] = pickle.dumps(thing)

    def see_error(self, error: BaseException) -> None:
        self.things[f"traceback {type(error).__name__}"] = _bytes("".join(traceback.format_exception(error)))
        for one in _chain(error):
            self.see(f"error {type(one).__name__}", one)
            self.things[f"insides of {type(one).__name__}"] = _bytes(f"{one}{one.args}{vars(one)}")

    def found(self) -> list[str]:
        streams = {"stdout": self.out.getvalue(), "stderr": self.err.getvalue(), "log": self.log.getvalue()}
        places_ = {**{name: _bytes(text) for name, text in streams.items()}, **self.things}
        everything = b"\n".join(places_.values())
        if not any(find_canary(text, everything) for text in CANARIES):
            return []
        return [
            f"{name}: {form}"
            for name, content in places_.items()
            for text in CANARIES
            for form in find_canary(text, content)
        ]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            yield one
            waiting += [one.__cause__, one.__context__]


def client_with(*sinks: BaseSink, **options: Any) -> SFRAGClient:
    rag = SFRAGClient(SFClientConfig())
    # Nothing is retained of a session that ended: what was planted in one must not be found in the next.
    rag.configure(**{"sinks": sinks, "delivery": "sync", "retained_sessions": 0, **options})
    return rag


def leaks(place: Place, form: str, rag: SFRAGClient) -> list[str]:
    """Plant the canary in one argument, in one form, and return where it came out."""
    watch, feedback = Watch(), SFFeedbackClient()
    feedback.cell = rag.cell
    with watch.open():
        rag.trace_query("q", session_id=SESSION)
        error = _error_of(lambda: watch.see("result", place.call(rag, feedback, FORMS[form]())))
        with contextlib.suppress(UnknownSessionError):
            watch.see("summary", rag.end_session(SESSION))
    if error is not None:
        watch.see_error(error)
    watch.see("client", rag)
    watch.see("status", rag.get_status())
    watch.see("ratings", feedback.get_feedback(SESSION))
    for sink in rag.cell.get().dispatcher.sinks:
        if isinstance(sink, MemorySink):
            for event in sink.events:
                watch.things[f"{event.event_type} in the sink"] = event.encode()
                watch.see("event", event)
            sink.clear()
    found = watch.found()
    if place.argument in KEPT_ARGUMENTS:
        readable = ("in the sink", "of event", "of result", "of summary", "of ratings", "stderr")
        found = [where for where in found if not any(part in where for part in readable)]
    return found


ALL = [place for place in places() if place.method != "aflush"]
MODES: dict[str, Callable[[], SFRAGClient]] = {
    "success": lambda: client_with(MemorySink(), StructlogSink()),
    "failing sinks": lambda: client_with(FailingSink(), MemorySink()),
    "strict": lambda: client_with(MemorySink(), strict=True),
    "keyed": lambda: client_with(MemorySink(), hash_key="k" * 32),
    "unsampled": lambda: client_with(MemorySink(), sample_rate=0.0),
    "disabled": lambda: client_with(MemorySink(), disabled=True),
}


@pytest.mark.parametrize("mode", MODES)
def test_what_is_planted_in_any_argument_is_found_nowhere(mode: str) -> None:
    rag = MODES[mode]()
    found = {
        f"{place} as {form}": where
        for place in ALL
        if place.method != "shutdown"
        for form in (FORMS if mode in {"success", "strict"} else WORST_FORMS)
        if (where := leaks(place, form, rag))
    }
    # Else it ends when it is collected, and the names it keeps by design are seen by whatever test runs then.
    rag.shutdown(5)
    assert not found
    for ledger in rag.get_status().sinks.values():
        assert ledger.balanced


def test_message_capture_opens_the_documented_places_alone() -> None:
    rag = client_with(MemorySink(), capture_messages=True)
    open_places = {
        place.argument for place in ALL if place.method != "shutdown" for form in WORST_FORMS if leaks(place, form, rag)
    }
    assert open_places == CAPTURED_ARGUMENTS


SECRETS = {
    "anna.smith@example.org": "[email]",
    "+44 20 7946 0958": "[phone]",
    "4111 1111 1111 1111": "[card]",
    "sk-abcdefgh12345678": "[key]",
    "Bearer abcdefghijk": "[token]",
}


@pytest.mark.parametrize(("secret", "mask"), SECRETS.items())
def test_captured_messages_are_scrubbed_and_cut(secret: str, mask: str) -> None:
    sink = MemorySink()
    rag = client_with(sink, capture_messages=True)
    rag.trace_retrieval("s", [], status="error", error_message=f"no luck: {secret}, sorry. " + "so " * 1_000)
    message = sink.of_type("llm.rag.retrieved")[0]["error_message"]
    assert secret not in message
    assert mask in message
    assert len(message) <= 512


def test_an_allowed_key_is_readable_and_its_neighbours_are_not() -> None:
    sink = MemorySink()
    rag = client_with(sink, metadata_allow={"lang"})
    rag.trace_query("q", filters={"lang": "en", "note": "en", "inner": {"lang": ["de"]}})
    filters = sink.of_type("llm.rag.query")[0]["filters"]
    assert filters["lang"] == "en"
    assert filters["inner"] == {"lang": ["de"]}
    assert filters["note"].startswith("str:sha256:")


@pytest.mark.parametrize("field", sorted(Settings.model_fields))
@pytest.mark.parametrize("value", [WORD, [PHRASE], {WORD: PHRASE}, Telling(), b"\xff" + WORD.encode()], ids=type)
def test_a_setting_that_cannot_be_used_is_named_and_not_repeated(field: str, value: object) -> None:
    rag = client_with(MemorySink())
    watch = Watch()
    with watch.open():
        error = _error_of(lambda: rag.configure(**{field: value}))
    if error is not None:
        assert isinstance(error, ConfigError)
        assert str(error).startswith(f"{field}: ")
        watch.see_error(error)
    assert not watch.found()


def _error_of(call: Callable[[], object]) -> Exception | None:
    try:
        call()
    except Exception as error:  # noqa: BLE001  whatever it is, it is looked at
        return error
    return None


def test_a_sink_that_leaks_is_found_by_every_way_it_leaks() -> None:
    rag = client_with(LeakySink())
    found = leaks(next(place for place in ALL if place.method == "trace_query"), "word", rag)
    assert {where.partition(":")[0] for where in found} == {"stdout", "stderr", "log"}


@pytest.mark.parametrize("kind", [str, repr, lambda text: text.encode("utf-8", "surrogatepass").hex()])
def test_an_error_that_carries_text_is_found_in_each_link_of_its_chain(kind: Callable[[str], str]) -> None:
    watch = Watch()
    try:
        try:
            raise KeyError(kind(PHRASE))  # noqa: TRY301  the chain is what is looked at
        except KeyError:
            raise ValueError("clean") from None
    except ValueError as error:
        watch.see_error(error)
    assert any("KeyError" in where for where in watch.found())


# -- the list -------------------------------------------------------------------------------------------------------


def test_the_documented_list_of_what_is_kept_is_the_one_tried_here() -> None:
    page = (pathlib.Path(__file__).parents[2] / "docs/explanation/privacy.md").read_text(encoding="utf-8")
    (listed,) = re.findall(r"<!-- kept-as-given: begin -->(.*?)<!-- kept-as-given: end -->", page, re.DOTALL)
    assert set(re.findall(r"`(\w+)`", listed)) == KEPT_ARGUMENTS | KEPT_OF_HITS


def test_what_is_kept_of_hits_is_kept_of_no_other_place() -> None:
    sink = MemorySink()
    rag = client_with(sink)
    for key in KEPT_OF_HITS:
        rag.trace_retrieval("s", [{key: WORD, "score": 0.5}])
        (chunk,) = sink.of_type("llm.rag.retrieved")[-1]["chunks"]
        assert WORD in {chunk["chunk_id"], chunk["source"]}
    for key in ("content", "text", "title", "summary", "name", "question"):
        rag.trace_retrieval("s", [{key: WORD, "score": 0.5}])
        assert not find_canary(WORD, sink.events[-1].encode())
