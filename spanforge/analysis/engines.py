"""The engines that run the expressions: DuckDB in this process, Spark on a fleet."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Final

from spanforge.exceptions import ConfigError, MissingExtraError

__all__ = ["ENGINES", "connect"]

ENGINES: Final = ("duckdb", "spark")


def connect(engine: str = "duckdb", *, master: str | None = None, scratch: Path) -> Any:
    """Return an Ibis connection.

    Args:
        engine: One of `ENGINES`.
        master: Address of the Spark cluster; `local[*]`, all cores of this machine, without one.
        scratch: Folder for what does not fit into memory.

    Raises:
        ConfigError: There is no such engine, or a master was named for DuckDB.
        MissingExtraError: Its packages are not installed.
    """
    if engine not in ENGINES:
        raise ConfigError(f"engine: use one of {', '.join(ENGINES)}")
    if engine == "spark":
        return _spark(master or "local[*]")
    if master is not None:
        raise ConfigError("master: it is of Spark; use it with --engine spark")
    ibis = _package("ibis", "analysis")
    connection = ibis.duckdb.connect()
    connection.raw_sql("SET memory_limit = '2GB'")
    connection.raw_sql("SET preserve_insertion_order = false")
    connection.raw_sql(f"SET temp_directory = '{str(scratch).replace(chr(39), chr(39) * 2)}'")
    return connection


def _spark(master: str) -> Any:
    ibis, sql = _package("ibis", "spark"), _package("pyspark.sql", "spark")
    builder = sql.SparkSession.builder.master(master).appName("spanforge")
    # Times are texts here; whatever would be read as a time is read as UTC everywhere.
    session = builder.config("spark.sql.session.timeZone", "UTC").config("spark.ui.enabled", "false").getOrCreate()
    return ibis.pyspark.connect(session)


def _package(name: str, extra: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise MissingExtraError("reading stored events in bulk", extra) from None
