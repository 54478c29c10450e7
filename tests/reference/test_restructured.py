"""A PEP, or any reStructuredText, reads as a person reads it rendered."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from spanforge.reference import Document, Pipeline
from spanforge.reference.parsing.restructured import parse_rst

PEP = """PEP: 9999
Title: Retiring the brass gears
Author: Ada Moss <ada@example.org>,
        Bo Lind <bo@example.org>
Status: Final
Created: 04-Feb-2022

Abstract
========

.. note:: Brass is meant as in :pep:`20`.

Gears of brass are replaced, see `the list <https://example.org/gears>`_ and
:mod:`gearbox`::

    turn(gear)

.. a comment of nobody's

.. code-block:: python

   # No heading
   stop(gear)

Schedule
========

First part
----------

- first cut: Monday, 2022-05-02
- last cut: Friday, 2022-06-03

.. csv-table:: Gears
   :header: "Gear", "Removed in", "Replacement"

    pinion,3.11,steel pinion
    worm,3.12,\\-

.. _The mill: https://example.org/mill
"""


def test_markup_is_read_and_nothing_else_is_lost() -> None:
    extract = parse_rst(PEP.encode())
    [section] = extract.sections
    assert extract.title == "PEP 9999: Retiring the brass gears"
    assert section.text.startswith("PEP: 9999; Title: Retiring the brass gears; Author: Ada Moss <ada@example.org>, Bo")
    assert "\n# Abstract\n" in section.text
    assert "\n## First part\n" in section.text
    assert "Brass is meant as in PEP 20." in section.text
    assert "[the list](https://example.org/gears) and\ngearbox:" in section.text
    assert "Gear: pinion; Removed in: 3.11; Replacement: steel pinion" in section.text
    assert "The mill: https://example.org/mill" in section.text
    for markup in ("====", "----", ".. ", ":header:", "::", "nobody"):
        assert markup not in section.text


def test_questions_about_a_pep_are_answered_by_its_fields_its_tables_and_its_schedule() -> None:
    with Pipeline() as pipeline:
        document = Document(document_id="p", name="pep-9999.rst", content=PEP.encode())
        assert pipeline.ingest(document).failures == []
        assert "Ada Moss" in pipeline.ask("Who is the author of PEP 9999?").answer
        assert "Replacement: steel pinion" in pipeline.ask("What is the replacement for the pinion?").answer
        assert "2022-05-02" in pipeline.ask("When is the first cut?").answer


@given(st.text(alphabet="a`:.<>_=-*\n \t[]", max_size=300))
def test_any_text_is_read(text: str) -> None:
    assert len(parse_rst(text.encode()).sections) == 1
