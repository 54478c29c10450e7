"""Closed word lists of English that the grounder reasons with.

All are short, written for this package, and looked up by stem unless said otherwise. A word missing from a list makes a
detector silent, never wrong.
"""

from __future__ import annotations

from typing import Final

from spanforge.reference.grounding.stems import stem
from spanforge.reference.grounding.synonyms import SYNONYMS

FUNCTION_WORDS: Final = frozenset(
    """
    a an the this that these those it its itself he him his himself she her hers herself they them their theirs
    themselves we us our ours you your yours i me my mine and or but if then than so because as while although though
    whereas of at by for with about into through during to from in on off over under again further here there when
    where which who whom whose what why how is am are was were be been being have has had having do does did doing
    will would shall should can could may might must ought am also just too very s t d ll re ve m not no nor both each
    such same own other another some any all only own s'
    is't upon onto within per via among between against toward towards however therefore thus moreover furthermore
    according e.g i.e etc there's it's that's yes one ones been being let us get got
    """.split()
)
"""Words that carry no matter of their own, as written in lower case (not stems)."""

NEGATIONS: Final = frozenset(
    """
    not no never none nobody nothing neither nor without cannot can't don't doesn't didn't won't wouldn't isn't aren't
    wasn't weren't hasn't haven't hadn't shouldn't couldn't mustn't needn't ain't unable fail fails failed failing
    refuse refuses refused hardly barely scarcely
    """.split()
)
"""Words that deny what follows them, in lower case (not stems)."""

FRAME_WORDS: Final = frozenset(
    stem(word)
    for word in """
    document conversation article passage text author speaker podcast episode transcript summary report paper study
    discuss mention describe explain state note talk say tell ask claim highlight emphasize outline cover detail
    include involve provide offer contain feature various several different certain available related particular
    respective overall main general specific current recent additional further potential including such
    include call name refer know consider use thing way number kind type part example case fact information context
    source evidence according find show suggest indicate reveal demonstrate
    """.split()
)
"""Stems by which a claim speaks about its source or joins facts; their absence from a source says little."""

APPROXIMATIONS: Final = frozenset(
    "about around approximately roughly nearly almost some circa ca over under than least most up".split()
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

NUMBER_WORDS: Final[dict[str, float]] = {
    **{
        word: float(value)
        for value, word in enumerate(
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
            "seventeen eighteen nineteen".split()
        )
    },
    **{
        word: 10.0 * value
        for value, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), start=2)
    },
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
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split(), start=1
    )
}
MULTIPLIERS: Final[dict[str, float]] = {
    "hundred": 1e2, "thousand": 1e3, "k": 1e3, "million": 1e6, "millions": 1e6, "mil": 1e6, "mln": 1e6, "mn": 1e6, "m": 1e6,
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

_OPPOSITES_TABLE: Final = """
increase rise grow gain climb surge jump soar expand raise boost escalate accelerate more higher up upward enhance elevate upregulate greater improve augment promote stimulate / decrease fall drop decline reduce shrink plunge cut diminish lower slow fewer less down downward lessen dwindle downregulate impair suppress inhibit attenuate weaken worsen
high tall / low short
large big huge great major / small little tiny minor
largest biggest tallest highest longest / smallest shortest lowest tiniest
before prior earlier precede / after later following follow subsequent
first / last final
early / late
begin start launch open commence initiate establish / end finish stop close cease conclude halt terminate shut abolish
win victory triumph beat defeat / lose defeat
accept approve adopt pass / reject refuse decline deny veto
allow permit authorize legalize enable / ban prohibit forbid prevent block outlaw bar
support favor favour back endorse / oppose reject criticize
agree / disagree
include contain / exclude omit
succeed success successful / fail failure unsuccessful
strong powerful robust / weak feeble
fast quick rapid / slow
hot warm / cold cool
hard difficult tough / easy simple
rich wealthy / poor
young / old elderly
new modern recent / old ancient outdated
safe secure harmless / dangerous unsafe hazardous harmful risky
legal lawful / illegal unlawful
public / private
true correct accurate right / false incorrect inaccurate wrong
positive / negative
active / inactive dormant
present / absent
possible feasible / impossible infeasible
common frequent widespread / rare uncommon infrequent
always / never
often frequently usually / rarely seldom
all every entire / some partial
most majority / few minority
many numerous several / few
maximum / minimum
mandatory compulsory required obligatory / optional voluntary
permanent / temporary
internal inside indoors interior / external outside outdoors exterior
above over / below under beneath
north northern / south southern
east eastern / west western
left / right
male man boy father husband son brother / female woman girl mother wife daughter sister
buy purchase acquire / sell
import / export
lend / borrow
arrive enter / depart leave exit
birth bear / death die
alive survive living / dead deceased die
day daytime / night nighttime
morning / evening
love like enjoy / hate dislike
happy glad pleased / sad unhappy
expensive costly / cheap inexpensive affordable
full / empty
heavy / light
thick / thin
wide broad / narrow
deep / shallow
long / short
near close / far distant
clean pure / dirty polluted
wet humid / dry arid
bright / dark dim
loud noisy / quiet silent
urban city / rural
guilty convict / innocent acquit
attack / defend
benefit beneficial advantage helpful / harm detrimental disadvantage
protect / endanger expose
create build construct / destroy demolish
join / leave quit
hire recruit employ / fire dismiss
profit profitable / loss unprofitable
surplus / deficit
optimistic / pessimistic
sufficient enough adequate / insufficient inadequate
dependent / independent
direct / indirect
likely probable / unlikely improbable
similar same identical equal / different distinct dissimilar
connect attach / disconnect detach
visible / invisible hidden
solid / liquid
natural / artificial synthetic
simple / complex complicated
best / worst
good excellent / bad poor
better / worse
perfect / imperfect flawed
popular / unpopular
satisfied / dissatisfied
aware / unaware
healthy / sick ill unhealthy
ascend / descend
forward / backward
front / rear back
top / bottom
peace / war
friend ally / enemy foe
sink / float
freeze / melt thaw
vertical / horizontal
odd / even
regular / irregular
stable / unstable volatile
effective efficacious / ineffective
significant / insignificant
sensitive / resistant insensitive
soluble / insoluble
necessary essential / unnecessary
free / paid
online / offline
remain stay unchanged keep / change leave
deny / confirm admit
guilty / innocent
oldest / youngest newest
fastest / slowest
strongest / weakest
cheapest / expensive
hottest / coldest
upper / lower
senior / junior
parent / child
teacher / student
employer / employee
domestic / foreign
vegetarian vegan / meat
sweet / bitter sour
sunrise / sunset
summer / winter
acid acidic / alkaline basic
predator / prey
victim / perpetrator
question / answer
remember / forget
save / spend waste
push / pull
credit / debit
lengthen / shorten
strengthen / weaken
widen / narrow
tighten / loosen relax
attract / repel
encourage / discourage
praise / criticize condemn
trust / distrust
appear emerge / disappear vanish
exist / extinct
advance / retreat
promote / demote
deposit / withdraw
load / unload
lock / unlock
"""


OPPOSITE_SIDES: Final = tuple(
    tuple(tuple(side.split()) for side in line.split("/")) for line in _OPPOSITES_TABLE.strip().splitlines()
)
"""The pairs of opposite sides, in the words as written."""


def _tables() -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    opposite: dict[str, set[str]] = {}
    alike: dict[str, set[str]] = {}
    for written in OPPOSITE_SIDES:
        sides = [[stem(word) for word in side] for side in written]
        for side, other in (sides, sides[::-1]):
            for word in side:
                opposite.setdefault(word, set()).update(set(other) - {word})
                alike.setdefault(word, set()).update(set(side) - {word})
    for word, others in SYNONYMS.items():
        alike.setdefault(word, set()).update(others)
    return opposite, {word: others - opposite.get(word, set()) for word, others in alike.items()}


_OPPOSITE, _ALIKE = _tables()
OPPOSITES: Final = {word: tuple(sorted(others)) for word, others in _OPPOSITE.items()}
"""Stem → the stems that contradict it in the same place."""
ALIKE: Final = {word: tuple(sorted(others)) for word, others in _ALIKE.items()}
"""Stem → the stems that say the same, or the same direction ("rise" for "increase")."""
