"""Settings: what `configure()` takes, and the only reader of the environment.

Keywords win over `SPANFORGE_*` variables, which win over the defaults below.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError
from pydantic.dataclasses import dataclass as validated_dataclass

from spanforge._hashing import MIN_KEY_BYTES, utf8
from spanforge._version import __version__
from spanforge._warnings import warn
from spanforge.exceptions import ConfigError

__all__ = [
    "DEFAULT_SOURCE",
    "OtlpEnvironment",
    "SFClientConfig",
    "SecretStr",
    "ServerSettings",
    "Settings",
    "auto_is_wanted",
    "openinference_hidden",
    "otlp_environment",
]

DEFAULT_SOURCE: Final = f"spanforge@{__version__}"
"""Who emits, where nobody says."""

_PREFIX = "SPANFORGE_"


def _split(value: Any) -> Any:
    """Let lists be written as `a, b` in the environment, and a single sink be given without a list around it."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return tuple(cast("Iterable[Any]", value)) if isinstance(value, (list, set, frozenset)) else value


def _one_or_many(value: Any) -> Any:
    """As `_split`; a sink object that stands alone is a list of one."""
    split = _split(value)
    return cast("tuple[Any, ...]", split) if isinstance(split, tuple) else (split,)


_Asymmetric = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
_LONGEST_S: Final = 1e6
"""Eleven days: longer than anybody waits, short enough for every clock and lock."""


class Settings(BaseModel):
    """Everything that can be configured, frozen. Each field is also read from `SPANFORGE_<FIELD IN CAPITALS>`.

    Attributes:
        sinks: Where events go: `structlog`, `jsonl:PATH`, `sqlite:PATH`, `memory`, `otlp`, `otlp:URL`,
            `spool:FOLDER+otlp`, `spool:FOLDER+otlp:URL`, `ocsf:PATH`, `ocsf-aitf:PATH`, `kafka:HOST:PORT/TOPIC`,
            or objects with the methods of `spanforge.sinks.base.Sink`.
        disabled: Every call becomes a cheap no-op that still returns a session id.
        sandbox: Events go to memory only, whatever `sinks` says.
        delivery: `thread` gives each sink a worker; `sync` delivers in the calling thread before the call
            returns (function hosts, tests).
        source: Who emits, as `name@version`.
        org_id: Default organisation of every event; `sf_rag.bind` overrides it for a block.
        team_id: Default team, likewise.
        project_id: Sent as the tag `project_id` when set.
        hash_key: At least 32 bytes: digests become HMAC-SHA-256 under this key.
        signing_key: Makes `jsonl:PATH` sinks sign their hash chain.
        capture_messages: Keep free text scrubbed and cut at 512 characters, not as a digest.
        metadata_allow: Keys whose string values in metadata and filters are kept (scrubbed and cut).
        sample_rate: Share of sessions whose stages are sent, in [0, 1], decided by session id.
        keep_grounding_below: Sessions with a grounding score under this are kept whole whatever the rate.
        max_sessions: Open sessions kept at once; the least recently used is ended to make room.
        retained_sessions: Summaries of ended sessions kept for `end_session` and `get_session`.
        session_idle_s: Seconds without a call after which an open session is ended.
        max_chunk_ids: Distinct chunk ids a session remembers, and chunks kept of one result.
        max_open_chunk_ids: Distinct chunk ids that all open sessions remember together. With less than an eighth of it
            left, the least recently used sessions are ended to make room; with nothing left, summaries say that ids are
            missing.
        queue_events: Events that may wait for the slowest sink; the oldest are dropped beyond it, and counted.
        queue_bytes: Estimated bytes that may wait, likewise.
        batch_events: Most events handed to a sink at once.
        batch_delay_s: Seconds a worker waits for company before it writes.
        max_attempts: Tries a batch gets before its events are tried one by one.
        backoff_s: Wait after the first failed try; doubles with each, up to `max_backoff_s`.
        max_backoff_s: Longest wait between tries, and of an open circuit.
        exit_timeout_s: Seconds that leaving the process may spend on delivery; after 1.5 seconds in which no sink has
            taken anything it is given up before.
        handle_sigterm: Deliver on SIGTERM, then do what would have been done without us.
        strict: Raise on inputs that would be replaced and counted (for tests).
    """

    # Built now, not at the first use: pydantic locks while it builds, and a child forked meanwhile would wait forever.
    model_config = ConfigDict(
        frozen=True, extra="forbid", arbitrary_types_allowed=True, hide_input_in_errors=True, allow_inf_nan=False
    )

    sinks: Annotated[tuple[Any, ...], BeforeValidator(_one_or_many)] = Field(default=("structlog",), repr=False)
    disabled: bool = False
    sandbox: bool = False
    delivery: Literal["thread", "sync"] = "thread"
    source: str = Field(default=DEFAULT_SOURCE, pattern=r"^[^@\s]+@[^@\s]+$")
    org_id: str = ""
    team_id: str = ""
    project_id: str = ""
    hash_key: SecretStr | None = None
    signing_key: SecretStr | None = None
    capture_messages: bool = False
    metadata_allow: Annotated[frozenset[str], BeforeValidator(_split)] = frozenset()
    sample_rate: float = Field(default=1.0, ge=0.0, le=1.0)
    keep_grounding_below: float = Field(default=0.5, ge=0.0, le=1.0)
    max_sessions: int = Field(default=10_000, ge=1)
    retained_sessions: int = Field(default=1_000, ge=0)
    session_idle_s: float = Field(default=1_800.0, gt=0, le=_LONGEST_S)
    max_chunk_ids: int = Field(default=10_000, ge=1)
    max_open_chunk_ids: int = Field(default=200_000, ge=1)
    queue_events: int = Field(default=10_000, ge=1)
    queue_bytes: int = Field(default=32 << 20, ge=1 << 16)
    batch_events: int = Field(default=512, ge=1)
    batch_delay_s: float = Field(default=0.1, ge=0, le=_LONGEST_S)
    max_attempts: int = Field(default=4, ge=1)
    backoff_s: float = Field(default=0.05, ge=0, le=_LONGEST_S)
    max_backoff_s: float = Field(default=30.0, ge=0, le=_LONGEST_S)
    exit_timeout_s: float = Field(default=5.0, ge=0, le=_LONGEST_S)
    handle_sigterm: bool = False
    strict: bool = False

    @classmethod
    def load(cls, overrides: Mapping[str, object] | None = None) -> Self:
        """Build settings from keywords, then the environment, then the defaults.

        Raises:
            ConfigError: A value cannot be used; the message names the setting, not the value.
        """
        return cls._validated({**_from_environment(), **(overrides or {})})

    @classmethod
    def load_leniently(cls, overrides: Mapping[str, object] | None = None) -> Self:
        """Build settings as `load` does where nobody can catch an error: bad values are logged and left out."""
        values = {**_from_environment(), **(overrides or {})}
        while True:
            try:
                return cls._validated(values)
            except ConfigError as error:
                warn("spanforge setting left at its default: %s", error)
                bad = str(error).partition(":")[0]
                if bad == "hash_key":
                    # Plain digests where keyed ones were asked for would give away what the key was to protect.
                    warn("spanforge is disabled until hash_key can be used")
                    return cls(disabled=True)
                del values[bad]

    @classmethod
    def _validated(cls, values: Mapping[str, object]) -> Self:
        problem = ""
        try:
            settings = cls.model_validate(dict(values))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            problem = f"{first['loc'][0]}: {_remedy(first['type'], first['msg'])}"
        else:
            if settings.hash_key is None or len(utf8(settings.hash_key.get_secret_value())) >= MIN_KEY_BYTES:
                return settings
            problem = f"hash_key: needs at least {MIN_KEY_BYTES} bytes; secrets.token_urlsafe(32) makes one"
        raise ConfigError(problem)

    @cached_property
    def default_tags(self) -> dict[str, str]:
        """Tags every event carries."""
        return {"project_id": self.project_id} if self.project_id else {}


_KNOWN_ELSEWHERE = frozenset(
    {"ENDPOINT", "API_KEY", "TIMEOUT_MS", "MAX_RETRIES", "LOCAL_FALLBACK", "TLS_VERIFY", "PROXY", "MAGIC_SECRET"}
    | {"OTLP_ENDPOINT", "OTLP_HEADERS", "OTLP_PROTOCOL", "AUTO"}
)
"""What other functions here read from the environment: no settings, and no reason for a warning."""


def auto_is_wanted() -> bool:
    """Tell whether `SPANFORGE_AUTO` asks for frameworks to be traced as soon as the package is imported."""
    return os.environ.get("SPANFORGE_AUTO", "").strip().lower() in {"1", "true", "yes", "on"}


def _from_environment() -> dict[str, object]:
    names = {name.removeprefix(_PREFIX): name for name in os.environ if name.startswith(_PREFIX)}
    values: dict[str, object] = {}
    for short, name in names.items():
        if short.lower() in Settings.model_fields:
            if os.environ[name]:
                values[short.lower()] = os.environ[name]
        elif short not in _KNOWN_ELSEWHERE and not short.startswith("SERVER_"):
            warn("unknown environment variable %s: it has no effect; see `spanforge doctor`", name)
    return values


def _remedy(kind: str, message: str) -> str:
    if kind == "extra_forbidden":
        return "there is no such setting; see the reference of `configure` for the list"
    return f"{message[:1].lower()}{message[1:]}"


class ServerSettings(BaseModel):
    """What the HTTP server can be told, frozen. Each field is also read from `SPANFORGE_SERVER_<FIELD IN CAPITALS>`.

    Attributes:
        host: Address to listen on; anything but loopback needs a key or an issuer.
        port: Port to listen on; 0 takes a free one.
        home: Folder of everything the server keeps: keys, documents, uploads, events.
        allowed_hosts: Names that the `Host` header may carry, without port. Empty: the names of loopback on a
            loopback address, any name elsewhere.
        max_body_bytes: Longest body of a request, but for uploads.
        max_upload_bytes: Longest body of an upload.
        max_unfolded_bytes: What one uploaded document may unfold to; one stream of a PDF to half of it.
        max_json_depth: Deepest nesting of a JSON body.
        requests_per_minute: Requests an organisation may make in a minute, on average.
        burst: Requests an organisation may make at once.
        wrong_credentials_per_minute: Wrong keys and tokens that one address may send in a minute, and at once.
        max_connections: Connections at once; a quarter of the descriptors the process may have, where that is less. One
            more takes the place of the one that has been silent the longest.
        max_concurrent: Questions worked on at once; more are answered 503.
        max_concurrent_per_org: Questions of one organisation worked on at once; more are answered 429.
        max_jobs_per_org: Ingestion jobs of one organisation that may wait or run.
        max_waiting_bytes_per_org: Documents of one organisation that may wait for their jobs, in bytes.
        max_chunks_per_org: Storage quota of one organisation, in passages.
        ingest_workers: Ingestion jobs worked on at once; one of several is never given to an organisation that has all
            others.
        open_orgs: Organisations whose indexes are kept open.
        header_timeout_s: Seconds a client may take from connecting, or from its last answer, to the end of a request's
            head.
        body_timeout_s: Seconds a client may take to send a body.
        retrieve_timeout_s: Seconds a search may take.
        query_timeout_s: Seconds an answer may take, from question to result.
        ingest_timeout_s: Seconds an ingestion job may take.
        keep: How long events, ended jobs and remembered answers are kept: hours or days, as in `12h` or `30d`; empty
            for ever.
        model: Model that writes answers, as `spanforge ask --model` takes it; empty for the offline answerer.
        base_url: Server of that model; empty for its maker's own.
        oidc_issuer: Issuer of bearer tokens (`iss`); empty for API keys alone.
        oidc_audience: Audience that tokens must name (`aud`).
        oidc_jwks: Where the issuer's public keys are: a URL, or a file.
        oidc_algorithms: Signature algorithms that are accepted; asymmetric ones only.
        oidc_org_claim: Claim that names the organisation; dots lead into nested claims.
        oidc_user_claim: Claim that names the user.
        oidc_roles_claim: Claim that lists roles.
        oidc_teams_claim: Claim that lists teams.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, allow_inf_nan=False)

    host: str = Field(default="127.0.0.1", min_length=1)
    port: int = Field(default=8000, ge=0, le=65_535)
    home: Path = Path("spanforge-server")
    allowed_hosts: Annotated[frozenset[str], BeforeValidator(_split)] = frozenset()
    max_body_bytes: int = Field(default=1 << 20, ge=1 << 10)
    max_upload_bytes: int = Field(default=64 << 20, ge=1 << 10)
    max_unfolded_bytes: int = Field(default=256 << 20, ge=1 << 20)
    max_json_depth: int = Field(default=16, ge=4, le=100)
    requests_per_minute: float = Field(default=600.0, gt=0)
    burst: int = Field(default=100, ge=1)
    wrong_credentials_per_minute: int = Field(default=30, ge=1)
    max_connections: int = Field(default=1_000, ge=1)
    max_concurrent: int = Field(default=32, ge=1)
    max_concurrent_per_org: int = Field(default=16, ge=1)
    max_jobs_per_org: int = Field(default=16, ge=1)
    max_waiting_bytes_per_org: int = Field(default=256 << 20, ge=1 << 10)
    max_chunks_per_org: int = Field(default=1_000_000, ge=1)
    ingest_workers: int = Field(default=3, ge=1, le=64)
    open_orgs: int = Field(default=64, ge=1)
    header_timeout_s: float = Field(default=10.0, gt=0, le=_LONGEST_S)
    body_timeout_s: float = Field(default=60.0, gt=0, le=_LONGEST_S)
    retrieve_timeout_s: float = Field(default=10.0, gt=0, le=_LONGEST_S)
    query_timeout_s: float = Field(default=60.0, gt=0, le=_LONGEST_S)
    ingest_timeout_s: float = Field(default=3_600.0, gt=0, le=_LONGEST_S)
    keep: str = Field(default="", pattern=r"^([1-9][0-9]{0,4}[hd])?$")
    model: str = ""
    base_url: str = ""
    oidc_issuer: str = ""
    oidc_audience: str = ""
    oidc_jwks: str = ""
    oidc_algorithms: Annotated[frozenset[_Asymmetric], BeforeValidator(_split)] = frozenset({"RS256", "ES256", "EdDSA"})
    oidc_org_claim: str = Field(default="org_id", min_length=1)
    oidc_user_claim: str = Field(default="sub", min_length=1)
    oidc_roles_claim: str = Field(default="roles", min_length=1)
    oidc_teams_claim: str = Field(default="teams", min_length=1)

    @property
    def keep_s(self) -> float | None:
        """How long is kept, in seconds; None for ever."""
        return int(self.keep[:-1]) * {"h": 3_600.0, "d": 86_400.0}[self.keep[-1]] if self.keep else None

    @classmethod
    def load(cls, overrides: Mapping[str, object] | None = None) -> Self:
        """Build settings from keywords, then the environment, then the defaults.

        Raises:
            ConfigError: A value cannot be used; the message names the setting, not the value.
        """
        prefix = f"{_PREFIX}SERVER_"
        names = {name.removeprefix(prefix).lower(): name for name in os.environ if name.startswith(prefix)}
        unknown = sorted(name for field, name in names.items() if field not in cls.model_fields)
        if unknown:
            raise ConfigError(f"{unknown[0]}: there is no such setting of the server")
        values = {field: os.environ[name] for field, name in names.items() if os.environ[name]}
        problem = ""
        try:
            settings = cls.model_validate({**values, **(overrides or {})})
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            problem = f"{first['loc'][0]}: {_remedy(first['type'], first['msg'])}"
        else:
            if not settings.oidc_issuer or (settings.oidc_audience and settings.oidc_jwks):
                return settings
            problem = "oidc_issuer: needs oidc_audience and oidc_jwks beside it"
        raise ConfigError(problem)


_NO_SECRET = SecretStr("")


@validated_dataclass(config=ConfigDict(hide_input_in_errors=True, defer_build=True))
class SFClientConfig:
    """The client configuration of the earlier package, accepted as it is.

    Attributes:
        endpoint: Kept for compatibility and never contacted: events go to sinks.
        api_key: Kept for compatibility, and kept secret.
        project_id: Sent as the tag `project_id` of every event.
        timeout_ms: Kept for compatibility (milliseconds).
        max_retries: Retries after a first failed write to a sink.
        local_fallback_enabled: Kept for compatibility.
        tls_verify: Kept for compatibility; certificates are always verified.
        proxy: Kept for compatibility.
        signing_key: Signs the hash chain of `jsonl:PATH` sinks.
        magic_secret: Kept for compatibility, and kept secret.
    """

    endpoint: str = ""
    api_key: SecretStr = _NO_SECRET
    project_id: str = ""
    timeout_ms: int = 2_000
    max_retries: int = 3
    local_fallback_enabled: bool = True
    tls_verify: bool = True
    proxy: str | None = Field(default=None, repr=False)  # it may hold a password
    signing_key: SecretStr = _NO_SECRET
    magic_secret: SecretStr = _NO_SECRET

    @classmethod
    def from_env(cls) -> SFClientConfig:
        """Build from the `SPANFORGE_*` variables of the same names (`SPANFORGE_LOCAL_FALLBACK` for the fallback).

        Raises:
            ConfigError: A variable has a value that cannot be used; the message names the field.
        """
        values = {
            field: os.environ[_PREFIX + variable]
            for field in cls.__dataclass_fields__
            if (variable := "LOCAL_FALLBACK" if field == "local_fallback_enabled" else field.upper())
            and os.environ.get(_PREFIX + variable)
        }
        problem = ""
        try:
            return cls(**values)  # type: ignore[arg-type]  pydantic parses the text of each variable
        except ValidationError as error:
            problem = str(error.errors(include_url=False, include_input=False, include_context=False)[0]["loc"][0])
        raise ConfigError(f"{problem}: SPANFORGE_{problem.upper()} cannot be read; see SFClientConfig for its type")

    def as_overrides(self) -> dict[str, object]:
        """Return the settings this configuration stands for."""
        overrides: dict[str, object] = {"max_attempts": max(1, self.max_retries + 1)}
        if self.project_id:
            overrides["project_id"] = self.project_id
        if self.signing_key.get_secret_value():
            overrides["signing_key"] = self.signing_key
        return overrides


@dataclass(frozen=True, slots=True)
class OtlpEnvironment:
    """What the environment says of OTLP. Empty where it says nothing; nothing is checked yet.

    Attributes:
        endpoint: Base URL, to which the path of each signal is added.
        traces_endpoint: URL for traces as it is, which wins over the base for them.
        headers: `name=value` pairs, comma-separated, values URL-encoded; they may hold credentials.
        protocol: `http/protobuf` or `grpc`.
        certificate: File of certificate authorities to trust.
        compression: `gzip` or `none`.
        timeout_ms: Longest time for one request, in milliseconds.
        temporality: How metrics are sent: `cumulative`, `delta` or `lowmemory`.
        interval_ms: Time between two exports of metrics, in milliseconds.
        service_name: What the service is called, where its source does not say.
        resource: Further `name=value` pairs of the resource, as for headers.
        disabled: Nothing is to be sent.
    """

    endpoint: str = ""
    traces_endpoint: str = ""
    headers: SecretStr = SecretStr("")  # noqa: RUF009  immutable
    protocol: str = ""
    certificate: str = ""
    compression: str = ""
    timeout_ms: str = ""
    temporality: str = ""
    interval_ms: str = ""
    service_name: str = ""
    resource: str = ""
    disabled: bool = False


def otlp_environment() -> OtlpEnvironment:
    """Read `SPANFORGE_OTLP_*`, then `OTEL_EXPORTER_OTLP_TRACES_*`, then `OTEL_EXPORTER_OTLP_*`; the first wins.

    What is no exporter's is read from `OTEL_*`.
    """

    def first(*names: str) -> str:
        return next((value for name in names if (value := os.environ.get(name, "").strip())), "")

    def either(name: str) -> str:
        return first(f"OTEL_EXPORTER_OTLP_TRACES_{name}", f"OTEL_EXPORTER_OTLP_{name}")

    own = first("SPANFORGE_OTLP_ENDPOINT")
    return OtlpEnvironment(
        endpoint=own or first("OTEL_EXPORTER_OTLP_ENDPOINT"),
        traces_endpoint="" if own else first("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"),
        headers=SecretStr(first("SPANFORGE_OTLP_HEADERS") or either("HEADERS")),
        protocol=first("SPANFORGE_OTLP_PROTOCOL") or either("PROTOCOL"),
        certificate=either("CERTIFICATE"),
        compression=either("COMPRESSION"),
        timeout_ms=either("TIMEOUT"),
        temporality=first("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE").lower(),
        interval_ms=first("OTEL_METRIC_EXPORT_INTERVAL"),
        service_name=first("OTEL_SERVICE_NAME"),
        resource=first("OTEL_RESOURCE_ATTRIBUTES"),
        disabled=first("OTEL_SDK_DISABLED").lower() == "true",
    )


def openinference_hidden() -> frozenset[str]:
    """Return which of `inputs` and `outputs` the `OPENINFERENCE_HIDE_*` variables hide."""
    switches = {
        "inputs": ("OPENINFERENCE_HIDE_INPUTS", "OPENINFERENCE_HIDE_INPUT_TEXT"),
        "outputs": ("OPENINFERENCE_HIDE_OUTPUTS", "OPENINFERENCE_HIDE_OUTPUT_TEXT"),
    }
    return frozenset(
        what for what, names in switches.items() if any(os.environ.get(n, "").lower() == "true" for n in names)
    )
