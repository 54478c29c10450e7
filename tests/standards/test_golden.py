from __future__ import annotations

import json
import random

import pytest
from support.golden import VARIANTS
from support.renditions import FOLDER, RENDITIONS, rendered

from spanforge.standards.tree.session import Session


@pytest.mark.parametrize("name", RENDITIONS)
def test_every_variant_reads_as_its_golden_file(name: str):
    assert json.loads(rendered(name)) == json.loads((FOLDER / f"{name}.json").read_text())


@pytest.mark.parametrize("name", RENDITIONS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_neither_order_nor_repeats_change_a_rendition(name: str, variant: str):
    events = VARIANTS[variant]()
    shuffled = [*events, *events]
    random.Random(7).shuffle(shuffled)  # noqa: S311  the order of a test, not a secret
    assert RENDITIONS[name](Session(shuffled)) == RENDITIONS[name](Session(events))
