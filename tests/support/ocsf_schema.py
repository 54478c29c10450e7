"""The offline OCSF validator: JSON Schemas of one OCSF version, from the `ocsf-json-schema` package."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from ocsf_json_schema import get_ocsf_schema
from ocsf_json_schema.embedded import OcsfJsonSchemaEmbedded

VERSION = "1.8.0"
_OTHER = 99


@cache
def _validator(class_uid: int, profiles: tuple[str, ...]) -> Draft202012Validator:
    schema = OcsfJsonSchemaEmbedded(get_ocsf_schema(version=VERSION))
    name = schema.lookup_class_name_from_uid(class_uid)
    return Draft202012Validator(schema.get_class_schema(name, list(profiles)))


def errors(event: dict[str, Any]) -> list[str]:
    """Return what the schema of the event's class, with the event's profiles, finds wrong."""
    validator = _validator(event["class_uid"], tuple(event["metadata"].get("profiles", ())))
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(event)]


def misnamed(event: dict[str, Any]) -> list[str]:
    """Return the names beside numbers that are not the numbers' captions, in an event and the objects in it."""
    attributes = _raw()["classes"][_class_name(event["class_uid"])]["attributes"]
    return list(_misnamed(event, attributes))


@cache
def _raw() -> dict[str, Any]:
    return get_ocsf_schema(version=VERSION)


def _class_name(class_uid: int) -> str:
    return OcsfJsonSchemaEmbedded(_raw()).lookup_class_name_from_uid(class_uid)


def _misnamed(value: dict[str, Any], attributes: dict[str, Any]) -> Iterator[str]:
    for key, said in value.items():
        told = attributes.get(key, {})
        sibling = told.get("sibling")
        if sibling in value and said != _OTHER and value[sibling] != told["enum"][str(said)]["caption"]:
            yield f"{sibling}: {value[sibling]}"
        for inner in said if isinstance(said, list) else [said]:
            if isinstance(inner, dict) and told.get("object_type") in _raw()["objects"]:
                yield from _misnamed(inner, _raw()["objects"][told["object_type"]]["attributes"])
