"""Closed word lists of English that the grounder reasons with.

All are short, written for this package, and looked up by stem unless said otherwise. A word missing from a list makes a
detector silent, never wrong.
"""

from __future__ import annotations

from typing import Final

from spanforge.reference.grounding.stems import stem


def _words(text: str) -> list[str]:
    return text.split()


FUNCTION_WORDS: Final = frozenset(
    _words(
        """
    a an the this that these those it its itself he him his himself she her hers herself they them their theirs
    themselves we us our ours you your yours i me my mine and or but if then than so because as while although though
    whereas of at by for with about into through during to from in on off over under again further here there when
    where which who whom whose what why how is am are was were be been being have has had having do does did doing
    will would shall should can could may might must ought am also just too very s t d ll re ve m not no nor both each
    such same own other another some any all only own
    upon onto within per via among between against toward towards however therefore thus moreover furthermore
    according e.g i.e etc there's it's that's yes one ones been being let us get got
        """
    )
)
"""Words that carry no matter of their own, as written in lower case (not stems)."""

NEGATIONS: Final = frozenset(
    _words(
        """
    not no never none nobody nothing neither nor without cannot can't don't doesn't didn't won't wouldn't isn't aren't
    wasn't weren't hasn't haven't hadn't shouldn't couldn't mustn't needn't ain't unable fail fails failed failing
    refuse refuses refused hardly barely scarcely
        """
    )
)
"""Words that deny what follows them, in lower case (not stems)."""

FRAME_WORDS: Final = frozenset(
    stem(word)
    for word in _words(
        """
    document conversation article passage text author speaker podcast episode transcript summary report paper study
    discuss mention describe explain state note talk say tell ask claim highlight emphasize outline cover detail
    include involve provide offer contain feature various several different certain available related particular
    respective overall main general specific current recent additional further potential including such
    include call name refer know consider use thing way number kind type part example case fact information context
    source evidence according find show suggest indicate reveal demonstrate
        """
    )
)
"""Stems by which a claim speaks about its source or joins facts; their absence from a source says little."""

APPROXIMATIONS: Final = frozenset(
    _words("about around approximately roughly nearly almost some circa ca over under than least most up")
)
"""Words that loosen the number after them, in lower case."""

MONTHS: Final = {
    name: number
    for number, names in enumerate(
        (
            "january jan", "february feb", "march", "april apr", "may", "june jun", "july jul", "august aug",
            "september sept sep", "october oct", "november nov", "december dec",
        ), start=1,
    )
    for name in names.split()
}  # fmt: skip

WEEKDAYS: Final = {
    name: number
    for number, names in enumerate(
        ("monday mon", "tuesday tue tues", "wednesday wed", "thursday thu thur thurs", "friday fri", "saturday sat",
         "sunday sun"), start=1,
    )
    for name in names.split()
}  # fmt: skip

ONES: Final = {
    word: float(value) for value, word in enumerate(_words("one two three four five six seven eight nine"), start=1)
}
_TEENS: Final = _words("ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen")
TENS: Final = {
    word: 10.0 * value
    for value, word in enumerate(_words("twenty thirty forty fifty sixty seventy eighty ninety"), start=2)
}
NUMBER_WORDS: Final = {
    **ONES,
    **{word: float(value) for value, word in enumerate(_TEENS, start=10)},
    **TENS,
    "zero": 0.0,
    "dozen": 12.0,
    "half": 0.5,
    "quarter": 0.25,
    "once": 1.0,
    "twice": 2.0,
    "doubled": 2.0,
    "thrice": 3.0,
    "tripled": 3.0,
}
ORDINAL_WORDS: Final[dict[str, float]] = {
    word: float(value)
    for value, word in enumerate(
        _words("first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"), start=1
    )
}
MULTIPLIERS: Final[dict[str, float]] = {
    "hundred": 1e2, "thousand": 1e3, "k": 1e3, "million": 1e6, "millions": 1e6, "mil": 1e6, "mln": 1e6,
    "mn": 1e6, "m": 1e6,
    "billion": 1e9, "billions": 1e9, "bn": 1e9, "b": 1e9, "trillion": 1e12, "tn": 1e12,
}  # fmt: skip

_UNIT_TABLE: Final = """
length 1e-9 nm nanometre nanometer nanometres nanometers
length 1e-6 µm μm micrometre micrometer micrometres micrometers micron microns
length 1e-3 mm millimetre millimeter millimetres millimeters
length 1e-2 cm centimetre centimeter centimetres centimeters
length 1 m metre meter metres meters
length 1e3 km kilometre kilometer kilometres kilometers
length 1609.344 mile miles
length 0.3048 foot feet ft
length 0.0254 inch inches
length 0.9144 yard yards
mass 1e-9 µg μg mcg microgram micrograms
mass 1e-6 mg milligram milligrams
mass 1e-3 g gram grams
mass 1 kg kilogram kilograms kilo kilos
mass 1e3 ton tons tonne tonnes
mass 0.45359237 lb lbs pound pounds
mass 0.028349523 ounce ounces oz
time 1e-3 ms millisecond milliseconds
time 1 second seconds sec secs
time 60 minute minutes min mins
time 3600 hour hours hr hrs
time 86400 day days
time 604800 week weeks
time 2629800 month months
time 31557600 year years yr yrs
time 315576000 decade decades
time 3155760000 century centuries
volume 1e-3 ml millilitre milliliter millilitres milliliters
volume 1 litre liter litres liters
volume 3.785411784 gallon gallons
data 1e3 kb kilobyte kilobytes
data 1e6 mb megabyte megabytes
data 1e9 gb gigabyte gigabytes
data 1e12 tb terabyte terabytes
power 1 watt watts
power 1e3 kw kilowatt kilowatts
power 1e6 mw megawatt megawatts
power 1e9 gw gigawatt gigawatts
energy 1 kwh
energy 1e3 mwh
speed 1 mph
speed 0.621371192 kmh kph
area 1 hectare hectares ha
area 0.404685642 acre acres
temperature_c 1 celsius centigrade
temperature_f 1 fahrenheit
temperature_k 1 kelvin
percent 1 percent % percentage
money_usd 1 $ dollar dollars usd
money_eur 1 € euro euros eur
money_gbp 1 £ sterling gbp
money_jpy 1 ¥ yen jpy
money_inr 1 ₹ rupee rupees inr
frequency 1 hz hertz
frequency 1e3 khz kilohertz
frequency 1e6 mhz megahertz
frequency 1e9 ghz gigahertz
"""
UNITS: Final[dict[str, tuple[str, float]]] = {
    name: (line.split()[0], float(line.split()[1]))
    for line in _UNIT_TABLE.strip().splitlines()
    for name in line.split()[2:]
}
"""Unit as written → (dimension, factor to that dimension's base unit)."""
