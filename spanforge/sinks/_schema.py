"""The tables of the sqlite sink, as numbered steps from an empty file to the newest shape.

A released step is never edited: a database remembers how many it has taken (`PRAGMA user_version`).
"""

from __future__ import annotations

import sqlite3
from typing import Final

from spanforge._text import storable
from spanforge.exceptions import DecodeError
from spanforge.namespaces.event import Event

__all__ = ["APPLICATION_ID", "MIGRATIONS", "NewerSchemaError", "NotAStoreError", "migrate"]

APPLICATION_ID: Final = 0x53504647
"""Stands in the file's header (`PRAGMA application_id`): this is a store of events, and not somebody's database."""

_TABLE: Final = """
CREATE TABLE events (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  event_id TEXT NOT NULL UNIQUE,
  event_type TEXT NOT NULL,
  timestamp TEXT NOT NULL,
  session_id TEXT NOT NULL,
  line TEXT NOT NULL
)
"""


def _sum(number: str) -> str:
    """Add whole numbers exactly; absurd ones as floats, because SQLite fails a whole query over one overflow."""
    return f"SUM(CASE WHEN {number} < 9e15 THEN {number} ELSE {number} * 1.0 END)"


def _said(field: str) -> str:
    return f"json_extract(payload, '$.{field}')"


# The fold of spanforge.sessions in SQL: integer microseconds and billionths, halves rounded up, divided only at the
# end. Sessions without stages (sampled away) show what their summaries say.
_SESSIONS: Final = f"""
CREATE VIEW sessions AS
WITH
part AS (
  SELECT session_id, event_type AS type, timestamp, json_extract(line, '$.payload') AS payload,
    event_type IN (
      'llm.rag.query', 'llm.rag.retrieved', 'llm.rag.reranked', 'llm.rag.generated', 'llm.rag.evaluated'
    ) AS is_stage
  FROM events WHERE session_id <> ''
),
measured AS (
  SELECT *,
    COALESCE(json_extract(payload, '$.latency_ms'), 0) * 1000.0 AS us,
    CASE WHEN type = 'llm.rag.generated' THEN json_extract(payload, '$.grounding_score') * 1e9 END AS nano,
    CASE
      WHEN type IN ('llm.rag.retrieved', 'llm.rag.reranked', 'llm.rag.generated') THEN
        CASE COALESCE(json_extract(payload, '$.status'), 'ok') WHEN 'ok' THEN 0 WHEN 'partial' THEN 1
        WHEN 'cancelled' THEN 1 ELSE 2 END
      WHEN type = 'llm.rag.session' AND COALESCE(json_extract(payload, '$.error_type'), '') <> '' THEN 2
      ELSE 0
    END AS severity
  FROM part
),
rounded AS (
  SELECT *,
    CASE WHEN us < 9e15 THEN CAST(us + 0.5 AS INTEGER) ELSE us END AS whole_us,
    CAST(nano + 0.5 AS INTEGER) AS whole_nano
  FROM measured
),
folded AS (
  SELECT session_id,
    MIN(timestamp) AS first_event_at,
    MAX(timestamp) AS last_event_at,
    COUNT(*) AS events,
    SUM(is_stage) AS stages,
    SUM(type = 'llm.rag.query') AS queries,
    SUM(type = 'llm.rag.retrieved') AS retrievals,
    SUM(type = 'llm.rag.reranked') AS reranks,
    SUM(type = 'llm.rag.generated') AS generations,
    SUM(type = 'llm.rag.evaluated') AS evaluations,
    SUM(json_array_length(payload, '$.chunks')) FILTER (WHERE type = 'llm.rag.retrieved') AS chunks,
    {_sum(_said("prompt_tokens"))} FILTER (WHERE type = 'llm.rag.generated') AS prompt_tokens,
    {_sum(_said("output_tokens"))} FILTER (WHERE type = 'llm.rag.generated') AS output_tokens,
    {_sum("whole_us")} FILTER (WHERE is_stage) AS us,
    SUM(whole_nano) AS nano,
    MIN(whole_nano) AS nano_min,
    COUNT(whole_nano) AS scores,
    SUM(is_stage AND severity = 2) AS errors,
    MAX(severity) AS severity,
    SUM(type = 'llm.rag.session') AS summaries
  FROM rounded GROUP BY session_id
),
summed AS (
  SELECT session_id,
    {_sum(_said("total_queries"))} AS queries,
    {_sum(_said("retrieval_count"))} AS retrievals,
    {_sum(_said("rerank_count"))} AS reranks,
    {_sum(_said("generation_count"))} AS generations,
    {_sum(_said("evaluation_count"))} AS evaluations,
    {_sum(_said("total_chunks_retrieved"))} AS chunks,
    {_sum(_said("total_chunks_used"))} AS chunks_used,
    {_sum(_said("total_input_tokens"))} AS prompt_tokens,
    {_sum(_said("total_output_tokens"))} AS output_tokens,
    {_sum(_said("total_latency_ms"))} AS ms,
    SUM(json_extract(payload, '$.avg_grounding_score') * json_extract(payload, '$.grounding_count'))
      / {_sum(_said("grounding_count"))} AS score,
    MIN(json_extract(payload, '$.min_grounding_score')) AS score_min,
    {_sum(_said("grounding_count"))} AS scores,
    {_sum(_said("error_count"))} AS errors,
    MAX(CASE json_extract(payload, '$.status') WHEN 'error' THEN 2 WHEN 'partial' THEN 1 ELSE 0 END) AS severity,
    MAX(json_extract(payload, '$.retriever_name')) AS retriever
  FROM part WHERE type = 'llm.rag.session' GROUP BY session_id
)
SELECT
  folded.session_id,
  first_event_at,
  last_event_at,
  folded.events,
  folded.summaries > 0 AS ended,
  stages > 0 AS from_stages,
  CASE MAX(folded.severity, CASE WHEN stages THEN 0 ELSE COALESCE(summed.severity, 0) END)
    WHEN 0 THEN 'ok' WHEN 1 THEN 'partial' ELSE 'error' END AS status,
  COALESCE(CASE WHEN stages THEN (
    SELECT json_extract(line, '$.payload.retriever_name') FROM events
    WHERE events.session_id = folded.session_id AND event_type = 'llm.rag.query'
      AND COALESCE(json_extract(line, '$.payload.retriever_name'), '') <> ''
    ORDER BY event_id LIMIT 1
  ) ELSE summed.retriever END, '') AS retriever_name,
  COALESCE(CASE WHEN stages THEN folded.queries ELSE summed.queries END, 0) AS total_queries,
  COALESCE(CASE WHEN stages THEN folded.chunks ELSE summed.chunks END, 0) AS total_chunks_retrieved,
  COALESCE(CASE WHEN stages THEN (
    SELECT COUNT(DISTINCT used.value) FROM events, json_each(events.line, '$.payload.chunk_ids_used') AS used
    WHERE events.session_id = folded.session_id AND event_type = 'llm.rag.generated'
  ) ELSE summed.chunks_used END, 0) AS total_chunks_used,
  COALESCE(CASE WHEN stages THEN folded.prompt_tokens ELSE summed.prompt_tokens END, 0) AS total_input_tokens,
  COALESCE(CASE WHEN stages THEN folded.output_tokens ELSE summed.output_tokens END, 0) AS total_output_tokens,
  CASE WHEN stages THEN folded.nano / (1e9 * folded.scores) ELSE summed.score END AS avg_grounding_score,
  CASE WHEN stages THEN folded.nano_min / 1e9 ELSE summed.score_min END AS min_grounding_score,
  COALESCE(CASE WHEN stages THEN folded.scores ELSE summed.scores END, 0) AS grounding_count,
  COALESCE(CASE WHEN stages THEN folded.us / 1000.0 ELSE summed.ms END, 0.0) AS total_latency_ms,
  COALESCE(CASE WHEN stages THEN folded.retrievals ELSE summed.retrievals END, 0) AS retrieval_count,
  COALESCE(CASE WHEN stages THEN folded.reranks ELSE summed.reranks END, 0) AS rerank_count,
  COALESCE(CASE WHEN stages THEN folded.generations ELSE summed.generations END, 0) AS generation_count,
  COALESCE(CASE WHEN stages THEN folded.evaluations ELSE summed.evaluations END, 0) AS evaluation_count,
  COALESCE(CASE WHEN stages THEN folded.errors ELSE summed.errors END, 0) AS error_count
FROM folded LEFT JOIN summed USING (session_id)
"""  # noqa: S608  put together from the texts above alone

_VIEW: Final = """
CREATE VIEW sessions AS SELECT
  org_id, session_id, first_event_at, last_event_at, events, ended, from_stages, status, retriever_name, total_queries,
  total_chunks_retrieved, total_chunks_used, chunk_ids_truncated, total_input_tokens, total_output_tokens,
  avg_grounding_score, min_grounding_score, grounding_count, total_latency_ms, query_latency_ms, retrieval_latency_ms,
  rerank_latency_ms, generation_latency_ms, evaluation_latency_ms, duration_ms, retrieval_count, rerank_count,
  generation_count, evaluation_count, error_count, error_type, started_at, ended_at, end_reason, partial_view,
  conversation_id,
  escalations, ratings, rating
FROM session
"""

# A session is forgotten with its last event.
_FORGET: Final = """
CREATE TRIGGER forget_session AFTER DELETE ON events
WHEN NOT EXISTS (SELECT 1 FROM events WHERE session_id = OLD.session_id AND org_id = OLD.org_id)
BEGIN
  DELETE FROM session_state WHERE session IN
    (SELECT id FROM session WHERE session_id = OLD.session_id AND org_id = OLD.org_id);
  DELETE FROM session WHERE session_id = OLD.session_id AND org_id = OLD.org_id;
END
"""

# The table `session` is what spanforge.sessions adds up of the events, kept by whoever writes them. An organisation is
# a part of every key: two of them may use the same session id and must not meet. The state of the fold lives apart,
# so that a scan over sessions reads little; `mention` is what sessions are found and counted by. What was stored before
# there was the table is folded as writers go on.
_FOLDED: Final = (
    """
CREATE TABLE session (
  id INTEGER PRIMARY KEY AUTOINCREMENT, org_id TEXT NOT NULL, session_id TEXT NOT NULL,
  started_us INTEGER, first_event_at TEXT, last_event_at TEXT, events INTEGER, ended INTEGER, from_stages INTEGER,
  status TEXT, retriever_name TEXT, error_count INTEGER, error_type TEXT, total_queries INTEGER,
  total_chunks_retrieved INTEGER, total_chunks_used INTEGER, chunk_ids_truncated INTEGER,
  total_input_tokens INTEGER, total_output_tokens INTEGER,
  avg_grounding_score REAL, min_grounding_score REAL, grounding_count INTEGER,
  retrieval_count INTEGER, rerank_count INTEGER, generation_count INTEGER, evaluation_count INTEGER,
  total_latency_ms REAL, query_latency_ms REAL, retrieval_latency_ms REAL, rerank_latency_ms REAL,
  generation_latency_ms REAL, evaluation_latency_ms REAL,
  duration_ms REAL, started_at TEXT, ended_at TEXT, end_reason TEXT, partial_view INTEGER,
  conversation_id TEXT,
  escalations INTEGER, ratings INTEGER, rating REAL,
  UNIQUE (session_id, org_id)
)
""",
    "CREATE INDEX session_by_start ON session (started_us, session_id, org_id)",
    "CREATE INDEX session_by_retriever ON session (retriever_name, org_id)",
    "CREATE INDEX session_by_org ON session (org_id, started_us, session_id)",
    "CREATE INDEX session_by_conversation ON session (conversation_id) WHERE conversation_id IS NOT NULL",
    "CREATE TABLE session_state (session INTEGER PRIMARY KEY, state TEXT NOT NULL)",
    """
CREATE TABLE mention (
  kind TEXT NOT NULL, text TEXT NOT NULL, session INTEGER NOT NULL, times INTEGER NOT NULL,
  PRIMARY KEY (kind, text, session)
) WITHOUT ROWID
""",
    """
CREATE TABLE tally (
  org_id TEXT NOT NULL, event_type TEXT NOT NULL, times INTEGER NOT NULL, PRIMARY KEY (org_id, event_type)
) WITHOUT ROWID
""",
    "CREATE TABLE folded (seq INTEGER NOT NULL, unsessioned INTEGER NOT NULL)",
    "INSERT INTO folded VALUES (0, 0)",
    "CREATE TABLE damage (reason TEXT PRIMARY KEY, times INTEGER NOT NULL) WITHOUT ROWID",
    _FORGET,
    _VIEW,
)

# An event is one by organisation, session and id, where it was by its id alone: SQLite lets go of that only with the
# table. What is copied leaves nothing in free pages; a view that somebody made of the table stays as it is; places in
# the order of arrival are never given twice. What was stored before there were organisations gets its own.
_IDENTITY: Final = (
    "PRAGMA secure_delete = ON",
    "PRAGMA legacy_alter_table = ON",
    """
CREATE TABLE moved (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, org_id TEXT NOT NULL, session_id TEXT NOT NULL, event_id TEXT NOT NULL,
  event_type TEXT NOT NULL, timestamp TEXT NOT NULL, line TEXT NOT NULL
)
""",
    """
INSERT INTO moved
SELECT events.seq, CASE WHEN events.seq > folded.seq THEN org_of(CAST(line AS BLOB)) ELSE org_id END,
  session_id, event_id, event_type, timestamp, line
FROM events, folded ORDER BY events.seq
""",
    "DELETE FROM sqlite_sequence WHERE name = 'moved'",
    "INSERT INTO sqlite_sequence SELECT 'moved', seq FROM sqlite_sequence WHERE name = 'events'",
    "DROP TABLE events",
    "ALTER TABLE moved RENAME TO events",
    "PRAGMA legacy_alter_table = OFF",
    "CREATE UNIQUE INDEX events_by_session ON events (session_id, event_id, org_id)",
    "CREATE INDEX events_by_time ON events (timestamp)",
    "CREATE INDEX events_by_type ON events (event_type, timestamp)",
    _FORGET,
)

# Sessions have a cost, and what answers cited, people found and reranks changed; they are found by pipeline, namespace
# and actor. What is stored is folded anew, as writers go on.
# One of an earlier version that has the store open would fold without: another name of a column makes it fail, counted.
_MORE_FIGURES: Final = (
    "ALTER TABLE session ADD COLUMN total_cost_usd REAL",
    *(
        f"ALTER TABLE session ADD COLUMN {name} INTEGER"
        for name in ("answers", "cited", "judged", "helpful", "reordered")
    ),
    "DROP VIEW sessions",
    _VIEW.replace("conversation_id,", "conversation_id, total_cost_usd,").replace(
        "rating\nFROM", "rating, answers, cited, judged, helpful, reordered\nFROM"
    ),
    *(f"DELETE FROM {table}" for table in ("session", "session_state", "mention", "tally", "damage")),  # noqa: S608
    "ALTER TABLE folded RENAME COLUMN unsessioned TO without_session",
    "UPDATE folded SET seq = 0, without_session = 0",
)

MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    (
        f"PRAGMA application_id = {APPLICATION_ID}",
        _TABLE,
        "CREATE INDEX events_by_session ON events (session_id, event_id)",
        "CREATE INDEX events_by_time ON events (timestamp)",
        "CREATE INDEX events_by_type ON events (event_type, timestamp)",
        _SESSIONS,
    ),
    (
        "DROP VIEW sessions",
        "ALTER TABLE events ADD COLUMN org_id TEXT NOT NULL DEFAULT ''",
        *_FOLDED,
    ),
    _IDENTITY,
    _MORE_FIGURES,
)


class NewerSchemaError(Exception):
    """The file has taken more steps than this version knows."""


class NotAStoreError(Exception):
    """The file is a database of something else."""


def migrate(connection: sqlite3.Connection) -> None:
    """Bring a database to the newest shape, in one transaction; safe where several processes open it at once.

    Args:
        connection: In autocommit mode.

    Raises:
        NewerSchemaError: A newer version of spanforge wrote it; nothing was changed.
        NotAStoreError: It holds other tables; nothing was changed.
        sqlite3.Error: It cannot be read or written.
    """
    if _version(connection) == len(MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _version(connection)  # another process may have been first
        connection.create_function("org_of", 1, _org_of)
        if version > len(MIGRATIONS):
            raise NewerSchemaError
        if not version and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise NotAStoreError
        for step in MIGRATIONS[version:]:
            for statement in step:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _org_of(line: bytes) -> str:
    """Return whose event a line is; nobody's where it is damaged."""
    try:
        return storable(Event.decode(line).org_id)
    except DecodeError:
        return ""


def _version(connection: sqlite3.Connection) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version
