"""Brings the folders of organisations into the form that this version and this key give them, once, at the start."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Final

from spanforge.reference import User
from spanforge.reference.home_files import own_file
from spanforge.reference.ingesting import uploads
from spanforge.reference.ingesting.catalog import Catalog, JobRecord
from spanforge.reference.ingesting.jobs import CATALOG_FILE, UPLOADS
from spanforge.reference.models import IngestionOutput

if TYPE_CHECKING:
    from pathlib import Path

    from spanforge._hashing import Hasher

HOME: Final = "index"
"""Folder of the pipeline in the folder of its organisation."""
_DIGITS: Final = 32
_NAMED_WITH: Final = "orgs.key-id"
_OLD_FILE: Final = "jobs.sqlite"


def folder_name(hasher: Hasher, org_id: str) -> str:
    """Return the name of an organisation's folder: a digest, keyed where digests are."""
    return hasher.digest(org_id)[:_DIGITS]


def upgrade(root: Path, hasher: Hasher) -> None:
    """Bring all folders up to date.

    Args:
        root: Where they are.
        hasher: Gives them their names; where it has another key than the last time, they get new ones.
    """
    named_with = root.with_name(_NAMED_WITH)
    same_key = named_with.is_file() and named_with.read_text() == hasher.key_id
    for folder in [path for path in root.iterdir() if (path / HOME / CATALOG_FILE).is_file()]:
        if same_key and not (folder / _OLD_FILE).is_file():
            continue
        with closing(Catalog(folder / HOME / CATALOG_FILE)) as catalog:
            _take_over(folder, catalog)
            names = [folder_name(hasher, org_id) for org_id in catalog.organisations()]
        if names and folder.name not in names:
            folder.rename(root / names[0])
    own_file(named_with)
    named_with.write_text(hasher.key_id)


def _take_over(folder: Path, catalog: Catalog) -> None:
    """Take names of sources, open jobs and their documents from where an earlier version kept them."""
    file = folder / _OLD_FILE
    if not file.is_file():
        return
    with closing(sqlite3.connect(file)) as old:
        for source_id, name in old.execute("SELECT source_id, name FROM names").fetchall():
            _name(catalog, source_id, name)
        for body, user, cut in old.execute("SELECT body, user, cut FROM jobs WHERE NOT cancelled").fetchall():
            _take_over_job(folder, catalog, IngestionOutput.model_validate_json(body), user, cut)
    uploads.remove(folder / UPLOADS)
    file.unlink()


def _name(catalog: Catalog, source_id: str, name: str) -> None:
    for org_id in catalog.organisations():
        source = catalog.source(org_id, source_id)
        if source is not None:
            catalog.put_source(source.model_copy(update={"name": name}))


def _take_over_job(folder: Path, catalog: Catalog, job: IngestionOutput, user: str, cut: str) -> None:
    if catalog.job(job.job_id) is not None:
        return
    starter = User.model_validate_json(user)
    upload = folder / HOME / UPLOADS / job.job_id
    upload.parent.mkdir(exist_ok=True, mode=0o700)
    with suppress(FileNotFoundError):
        (folder / UPLOADS / job.job_id).rename(upload)
    catalog.put_job(JobRecord(job, starter.org_id, starter.user_id, {**json.loads(cut), "upload": True}))
