from __future__ import annotations

import re
from dataclasses import fields
from operator import attrgetter
from typing import Any

import pytest

from spanforge.namespaces import PAYLOADS
from spanforge.standards import STANDARDS
from spanforge.standards._table import Row
from spanforge.standards.tree.session import Facts

GIVEN = [row for one in STANDARDS for part in one.sections for row in part.rows if isinstance(row.read, attrgetter)]
CLASSES = {event_type.rpartition(".")[2]: kind for event_type, kind in PAYLOADS.items()} | {"query": Facts}


@pytest.mark.parametrize("row", GIVEN, ids=lambda row: row.key)
def test_a_row_that_sends_a_field_as_it_was_given_names_one_that_there_is(row: Row[Any]):
    event, field = re.findall(r"^(\w+)\.(\w+)", row.origin)[0]
    assert field in {one.name for one in fields(CLASSES[event])}
