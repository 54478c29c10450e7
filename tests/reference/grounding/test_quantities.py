from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanforge.reference.grounding.amounts import AmountIndex, same_amount
from spanforge.reference.grounding.quantities import quantities


def only(text: str):
    (amount,) = quantities(text)
    return amount


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1 km", "1,000 metres"),
        ("57 kilometres", "57,000 m"),
        ("$5bn", "5 billion dollars"),
        ("50 mg", "0.05 grams"),
        ("25 percent", "25%"),
        ("a quarter", "25 per cent"),
        ("half", "50%"),
        ("twelve people", "a dozen people"),
        ("twenty-five cows", "25 cows"),
        ("three hundred", "300"),
        ("a decade", "ten years"),
        ("7:30 pm", "19:30"),
        ("3 pm", "15:00"),
        ("2 hours", "120 minutes"),
        ("3,000,000 copies", "three million copies"),
        ("the 3rd house", "the third house"),
        ("Monday", "on Mon"),
        ("in May", "in May"),
        ("about 5 million", "4.8 million"),
        ("19.0 tons", "19 tonnes"),
    ],
)
def test_the_same_amount_in_other_words(one: str, other: str):
    assert same_amount(only(one), only(other))
    assert same_amount(only(other), only(one))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("5 km", "5 miles"),
        ("5 km", "5 kg"),
        ("1999", "1998"),
        ("10 days", "10 weeks"),
        ("100 people", "98 people"),
        ("19:30", "7:30 am"),
        ("Monday", "Friday"),
        ("in May", "in June"),
        ("$5", "5 euros"),
        ("25 percent", "52 percent"),
        ("the third", "the fourth"),
    ],
)
def test_other_amounts(one: str, other: str):
    assert not same_amount(only(one), only(other))


def test_a_date_is_its_parts_in_any_notation():
    expected = {("year", 2021.0), ("month", 3.0), ("day", 5.0)}
    for written in ("2021-03-05", "5 March 2021", "March 5, 2021", "5th of March 2021"):
        assert {(amount.kind, amount.value) for amount in quantities(written)} == expected


@pytest.mark.parametrize("name", ["UCP1", "COVID-19", "3T3 cells", "OCT3/4", "H2A", "one of them", "he may march"])
def test_names_and_pronouns_are_no_amounts(name: str):
    assert quantities(name) == ()


def test_an_index_finds_what_the_texts_have():
    index = AmountIndex(quantities("It cost 12 euros in 1990, about 5,000 more; we met at 7, half of us."))
    for claimed in ("12 euros", "in 1990", "5,100", "7 pm", "50 percent"):
        assert index.has(only(claimed)), claimed
    for claimed in ("13 euros", "in 1991", "9 pm", "60 percent"):
        assert not index.has(only(claimed)), claimed


@given(st.text(alphabet=st.sampled_from("0123456789.,:-/$% kmpahunderdtwfiMoay\u0663\u00b2"), max_size=60))
def test_any_jumble_of_digits_is_read_without_error(text: str):
    found = quantities(text)
    index = AmountIndex(found)
    assert all(index.has(amount) for amount in found)
