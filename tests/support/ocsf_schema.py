"""The offline OCSF validator: JSON Schemas of one OCSF version, from the `ocsf-json-schema` package."""

from __future__ import annotations

from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from ocsf_json_schema import get_ocsf_schema
from ocsf_json_schema.embedded import OcsfJsonSchemaEmbedded

VERSION = "1.8.0"


@cache
def _validator(class_uid: int, profiles: tuple[str, ...]) -> Draft202012Validator:
    schema = OcsfJsonSchemaEmbedded(get_ocsf_schema(version=VERSION))
    name = schema.lookup_class_name_from_uid(class_uid)
    return Draft202012Validator(schema.get_class_schema(name, list(profiles)))


def errors(event: dict[str, Any]) -> list[str]:
    """Return what the schema of the event's class, with the event's profiles, finds wrong."""
    validator = _validator(event["class_uid"], tuple(event["metadata"].get("profiles", ())))
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(event)]
