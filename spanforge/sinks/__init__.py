"""Where events go. `from_spec` turns what a setting says into a sink, importing each only when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from pydantic import SecretStr

from spanforge.exceptions import ConfigError
from spanforge.sinks.base import BaseSink, Sink

__all__ = ["BaseSink", "Sink", "from_spec"]

_Maker: TypeAlias = Callable[[str, SecretStr | None], Sink]


def _structlog(_target: str, _signing_key: SecretStr | None) -> Sink:
    from spanforge.sinks.structlog import StructlogSink  # noqa: PLC0415  loaded only when used

    return StructlogSink()


def _memory(_target: str, _signing_key: SecretStr | None) -> Sink:
    from spanforge.sinks.memory import MemorySink  # noqa: PLC0415  loaded only when used

    return MemorySink()


def _jsonl(target: str, signing_key: SecretStr | None) -> Sink:
    from spanforge.sinks.jsonl import JsonlSink  # noqa: PLC0415  loaded only when used

    return JsonlSink(target, signing_key=signing_key)


def _sqlite(target: str, _signing_key: SecretStr | None) -> Sink:
    from spanforge.sinks.sqlite import SqliteSink  # noqa: PLC0415  loads sqlite3 only when used

    return SqliteSink(target)


def _otlp(target: str, _signing_key: SecretStr | None) -> Sink:
    from spanforge.sinks.otlp import OtlpSink  # noqa: PLC0415  needs the extra 'otel'

    return OtlpSink(target or None)


def _spool(target: str, signing_key: SecretStr | None) -> Sink:
    from spanforge.sinks.spool import Spool  # noqa: PLC0415  loaded only when used

    folder, receiver, url = target.partition(_SPOOLED)
    if not folder or not receiver or url[:1] not in {"", ":"}:
        raise ConfigError(f"sinks: write {_written('spool', _SPECS['spool'][0])}")
    return Spool(_otlp(url[1:], signing_key), folder)


def _ocsf(target: str, _signing_key: SecretStr | None) -> Sink:
    from spanforge.sinks.ocsf import OcsfSink  # noqa: PLC0415  loaded only when used

    return OcsfSink(target)


def _ocsf_aitf(target: str, _signing_key: SecretStr | None) -> Sink:
    from spanforge.sinks.ocsf import OcsfSink  # noqa: PLC0415  loaded only when used

    return OcsfSink(target, flavour="ocsf-aitf")


def _kafka(target: str, _signing_key: SecretStr | None) -> Sink:
    from spanforge.sinks.kafka import KafkaSink  # noqa: PLC0415  needs the extra 'kafka'

    servers, _, topic = target.partition("/")
    return KafkaSink(servers, topic or "spanforge")


_SPOOLED: Final = "+otlp"

_SPECS: Final[dict[str, tuple[str, _Maker]]] = {
    "structlog": ("", _structlog),
    "memory": ("", _memory),
    "jsonl": ("PATH", _jsonl),
    "sqlite": ("PATH", _sqlite),
    "otlp": ("[URL]", _otlp),
    "spool": ("FOLDER+otlp[:URL]", _spool),
    "ocsf": ("PATH", _ocsf),
    "ocsf-aitf": ("PATH", _ocsf_aitf),
    "kafka": ("HOST:PORT/TOPIC", _kafka),
}
"""By name: what follows the colon (empty where nothing does, in brackets where it may), and what makes the sink."""


def from_spec(spec: object, *, signing_key: SecretStr | None = None) -> Sink:
    """Return the sink a setting stands for.

    Args:
        spec: `structlog`, `memory`, `jsonl:PATH`, `sqlite:PATH`, `otlp` (the endpoint from the environment),
            `otlp:URL`, `spool:FOLDER+otlp`, `spool:FOLDER+otlp:URL`, `ocsf:PATH`, `ocsf-aitf:PATH`,
            `kafka:HOST:PORT/TOPIC`, or an object with the methods of `spanforge.sinks.base.Sink`, which is returned
            as it is.
        signing_key: Signs the hash chain of sinks that keep one.

    Raises:
        ConfigError: There is no such sink, or the object is none. The message does not repeat the value, which
            may hold credentials.
        MissingExtraError: The packages of the sink's extra are not installed.
    """
    if not isinstance(spec, str):
        if isinstance(spec, Sink) and not isinstance(spec, type):
            if not isinstance(spec.name, str) or not spec.name:  # pyright: ignore[reportUnnecessaryIsInstance]  callers are not all typed
                raise ConfigError("sinks: a sink's `name` must be a str that is not empty")
            return spec
        raise ConfigError(
            f"sinks: an object of type {type(spec).__name__} is not a sink; "
            "derive from spanforge.sinks.BaseSink and give it `name` and `write`"
        )
    name, _, target = spec.strip().partition(":")
    known = _SPECS.get(name.lower())
    if known is None:
        raise ConfigError(f"sinks: unknown kind of sink; use {_choices()}, or a sink object")
    wanted, make = known
    if bool(wanted) != bool(target) and not wanted.startswith("["):
        raise ConfigError(f"sinks: write {_written(name.lower(), wanted)}")
    return make(target, signing_key)


def _written(name: str, target: str) -> str:
    return f"{name}:{target}".replace(":[", "[:") if target else name


def _choices() -> str:
    return ", ".join(_written(name, target) for name, (target, _) in _SPECS.items())
