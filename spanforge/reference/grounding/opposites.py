"""Words of English that contradict each other in the same place, and words that say the same.

Written for this package. Between two bars stand the two sides of one opposition, parted by a slash; words of one side
also count as alike in direction ("rise" and "increase").
"""

from __future__ import annotations

from typing import Final

from spanforge.reference.grounding.stems import stem
from spanforge.reference.grounding.synonyms import SYNONYMS

_OPPOSITIONS: Final = """
increase rise grow gain climb surge jump soar expand raise boost escalate accelerate more higher up upward
enhance elevate upregulate greater improve augment promote stimulate encourage induce optimize streamline
facilitate elongate / decrease fall drop decline reduce shrink plunge cut diminish lower slow fewer less
down downward lessen dwindle downregulate impair suppress inhibit attenuate weaken worsen hinder obstruct
impede prevent block shorten disrupt minimize | high tall / low short | large big huge great major / small
little tiny minor | largest biggest tallest highest longest / smallest shortest lowest tiniest | before
prior earlier precede / after later following follow subsequent | first / last final | early / late | begin
start launch open commence initiate establish / end finish stop close cease conclude halt terminate shut
abolish | win victory triumph beat defeat / lose defeat | accept approve adopt pass / reject refuse decline
deny veto | allow permit authorize legalize enable / ban prohibit forbid prevent block outlaw bar | support
favor favour back endorse / oppose reject criticize | agree / disagree | include contain / exclude omit |
succeed success successful / fail failure unsuccessful | strong powerful robust / weak feeble | fast quick
rapid / slow | hot warm / cold cool | hard difficult tough / easy simple | rich wealthy / poor | young / old
elderly | new modern recent / old ancient outdated | safe secure harmless / dangerous unsafe hazardous
harmful risky | legal lawful / illegal unlawful | public / private | true correct accurate right / false
incorrect inaccurate wrong | positive / negative | active / inactive dormant | present / absent | possible
feasible / impossible infeasible | common frequent widespread / rare uncommon infrequent | always / never |
often frequently usually / rarely seldom | all every entire / some partial | most majority / few minority |
many numerous several / few | maximum / minimum | mandatory compulsory required obligatory / optional
voluntary | permanent / temporary | internal inside indoors interior / external outside outdoors exterior |
above over / below under beneath | north northern / south southern | east eastern / west western | left /
right | male man boy father husband son brother / female woman girl mother wife daughter sister | buy
purchase acquire / sell | import / export | lend / borrow | arrive enter / depart leave exit | birth bear /
death die | alive survive living / dead deceased die | day daytime / night nighttime | morning / evening |
love like enjoy / hate dislike | happy glad pleased / sad unhappy | expensive costly / cheap inexpensive
affordable | full / empty | heavy / light | thick / thin | wide broad / narrow | deep / shallow | long /
short | near close / far distant | clean pure / dirty polluted | wet humid / dry arid | bright / dark dim |
loud noisy / quiet silent | urban city / rural | guilty convict / innocent acquit | attack / defend |
benefit beneficial advantage helpful / harm detrimental disadvantage | protect / endanger expose | create
build construct / destroy demolish | join / leave quit | hire recruit employ / fire dismiss | profit
profitable / loss unprofitable | surplus / deficit | optimistic / pessimistic | sufficient enough adequate /
insufficient inadequate | dependent / independent | direct / indirect | likely probable / unlikely
improbable | similar same identical equal / different distinct dissimilar | connect attach / disconnect
detach | visible / invisible hidden | solid / liquid | natural / artificial synthetic | simple / complex
complicated | best / worst | good excellent / bad poor | better / worse | perfect / imperfect flawed |
popular / unpopular | satisfied / dissatisfied | aware / unaware | healthy / sick ill unhealthy | ascend /
descend | forward / backward | front / rear back | top / bottom | peace / war | friend ally / enemy foe |
sink / float | freeze / melt thaw | vertical / horizontal | odd / even | regular / irregular | stable /
unstable volatile | effective efficacious / ineffective | significant / insignificant | sensitive /
resistant insensitive | soluble / insoluble | necessary essential / unnecessary | free / paid | online /
offline | remain stay unchanged keep / change leave | deny / confirm admit | guilty / innocent | oldest /
youngest newest | fastest / slowest | strongest / weakest | cheapest / expensive | hottest / coldest | upper
/ lower | senior / junior | parent / child | teacher / student | employer / employee | domestic / foreign |
vegetarian vegan / meat | sweet / bitter sour | sunrise / sunset | summer / winter | acid acidic / alkaline
basic | predator / prey | victim / perpetrator | question / answer | remember / forget | save / spend waste
| push / pull | credit / debit | lengthen / shorten | strengthen / weaken | widen / narrow | tighten /
loosen relax | attract / repel | encourage / discourage | praise / criticize condemn | trust / distrust |
appear emerge / disappear vanish | exist / extinct | advance / retreat | promote / demote | deposit /
withdraw | load / unload | lock / unlock | flexible adaptable / rigid | superior / inferior | generous /
stingy | polite courteous / rude | calm peaceful / violent turbulent | patient / impatient | proud / ashamed
| brave / coward cowardly | ancestor / descendant | winner / loser | buyer / seller | lender / borrower |
landlord / tenant | plaintiff / defendant | upstream / downstream | inbound / outbound | incoming / outgoing
| ahead / behind | plus / minus | multiply / divide | add / remove subtract | append / delete | install /
uninstall | enable activate / disable deactivate | encrypt / decrypt | connect / disconnect | compress /
decompress | success / failure | strength / weakness | increase / unchanged constant stable | outperform
exceed surpass / underperform | overestimate / underestimate | majority / minority | everybody everyone /
nobody | everything / nothing | everywhere / nowhere | together jointly / separately alone | single sole /
multiple several | biggest / smallest | cause trigger / prevent | build / demolish | raise / lower | appoint
/ dismiss | enter / exit | attend / skip miss | complete finish / abandon | retain keep / discard lose |
genuine authentic real / fake counterfeit | literate / illiterate | mature / immature | tropical / polar
arctic | fresh / stale rotten | raw / cooked | smooth / rough | sharp / blunt dull | tight / loose |
straight / curved bent | transparent / opaque | shiny / matte | plural / singular | noun / verb | asset /
liability | income / expense | gain / loss | optimist / pessimist | extrovert / introvert | nocturnal /
diurnal | carnivore carnivorous / herbivore herbivorous | vertebrate / invertebrate | benign / malignant |
acute / chronic | systolic / diastolic | anterior / posterior | dorsal / ventral | proximal / distal |
inhale / exhale | contract / dilate expand | aerobic / anaerobic | dominant / recessive | homogeneous /
heterogeneous
"""


OPPOSITE_SIDES: Final = tuple(
    tuple(tuple(side.split()) for side in opposition.split("/")) for opposition in _OPPOSITIONS.split("|")
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
