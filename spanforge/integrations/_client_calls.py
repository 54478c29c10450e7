"""A client's call to a model: what its request and its answer say, and the stage that it is."""

# What is handed over has no types that hold in all versions of a framework.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol, cast

from spanforge.integrations._questions import question_of
from spanforge.integrations._quiet import quiet
from spanforge.integrations._runs import Run, current_run
from spanforge.integrations._stage import Stage, current_call

__all__ = ["Call", "Provider", "as_mapping", "field", "take"]

_ASKED: Final = ("messages", "input", "prompt")


class Provider(Protocol):
    """What is particular to one provider.

    Attributes:
        name: As in events.
        paths: The ends of the paths of calls that generate.
    """

    name: str
    paths: tuple[str, ...]

    def read(self, said: Mapping[str, Any], known: dict[str, Any]) -> bool:
        """Add what an answer, or a piece of one, says of itself; True where it has something of the answer's text."""
        ...


class Call:
    """One call that generates: the framework's, if one has announced it, else a stage of its own."""

    def __init__(self, provider: Provider, body: Mapping[str, Any]) -> None:
        self._provider = provider
        self._known: dict[str, Any] = {"provider": provider.name, **(_asked_of(body) or {})}
        announced = current_call.get()
        # A framework's call is taken up by the first request; whatever else is called is a call of its own.
        self._is_taken_up = announced is not None and not announced.is_done
        if announced is not None:
            current_call.set(None)
        self._is_alone = False
        self.stage = announced if announced is not None and self._is_taken_up else self._begin(body)
        self.stage.model = self._known.pop("model", "") or self.stage.model
        self.stage.beside = self._known

    def _begin(self, body: Mapping[str, Any]) -> Stage:
        question = question_of({name: body.get(name) for name in _ASKED})
        run = current_run()
        if run is None:
            run, self._is_alone = Run(question), True
        stage = run.stage("generation")
        run.called(question)
        return stage

    def __enter__(self) -> None:
        """The request is on its way."""

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if error is not None:
            self.fail(error)

    @quiet
    def piece(self, said: Any) -> None:
        """Read a piece of a streamed answer."""
        self._known["stream"] = True
        if self._provider.read(as_mapping(said), self._known):
            self.stage.first_token()

    def whole(self, said: Any) -> None:
        """Read a whole answer; one that cannot be read has come all the same."""
        self._read(said)
        self.end()

    @quiet
    def _read(self, said: Any) -> None:
        self._provider.read(as_mapping(said), self._known)

    @quiet
    def end(self) -> None:
        """The answer is complete."""
        if not self._is_taken_up:
            self.stage.finish()
            self._end_run()

    @quiet
    def fail(self, error: BaseException) -> None:
        """The call has failed, or nobody waits for the rest of the answer."""
        if not self._is_taken_up or type(error).__name__ in {"CancelledError", "GeneratorExit"}:
            self.stage.fail(error)
        self._end_run()

    def leave(self) -> None:
        """Nobody has the answer any more."""
        if not self._is_taken_up:
            self.fail(GeneratorExit())

    def _end_run(self) -> None:
        if self._is_alone:
            self.stage.run.end()


@quiet
def _asked_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a request says of the model."""
    temperature = body.get("temperature")
    said = {"temperature": temperature} if isinstance(temperature, (int, float)) else {}
    return {"model": str(body.get("model") or ""), **said}


def as_mapping(said: Any) -> Mapping[str, Any]:
    """Return an answer's fields; an object's own, since asking it to dump itself would read and check all of it."""
    if isinstance(said, Mapping):
        return cast("Mapping[str, Any]", said)
    return vars(said) if hasattr(said, "__dict__") else {}


def field(said: Any, *names: str) -> Any:
    """Return a field within fields, None where there is none."""
    for name in names:
        said = said.get(name) if isinstance(said, Mapping) else getattr(said, name, None)
    return said


def take(said: Mapping[str, Any], fields: Mapping[str, tuple[str, ...]], known: dict[str, Any]) -> None:
    """Add the fields that are there, each by the names of the fields it is within."""
    for name, path in fields.items():
        if (value := field(said, *path)) is not None:
            known[name] = value
