"""Words of English that commonly stand for each other in a paraphrase.

Written for this package; general vocabulary only, no domain's terms. Words between two bars belong together when a
summary may swap one for the other without changing what is said. A wrong pair costs more than a missing one, so groups
are short.
"""

from __future__ import annotations

from typing import Final

from spanforge.reference.grounding.stems import stem

_GROUPS: Final = """
ability capacity capability | abroad overseas | accident crash collision | accomplish achieve attain |
accurate precise exact | acquire obtain get gain receive | acquisition takeover | act behave |
activity action | actor performer | actress performer | actual real | address tackle handle | adult grown-up |
advice guidance counsel | advise recommend suggest | affect influence impact |
agent representative salesperson rep | agency bureau | agreement deal accord pact |
aid help assist assistance support | aim goal objective target purpose | airplane plane aircraft jet |
allow permit enable let | almost nearly | also additionally moreover furthermore | amount quantity sum |
amusing funny humorous | analysis examination assessment | analyze examine assess evaluate |
ancestor forebear | anger fury rage | angry furious mad | announce declare reveal unveil disclose |
annual yearly | answer reply respond response | anxious worried nervous | apartment flat |
apparent evident obvious | appear seem | apply use | appoint name | area region zone |
argue contend maintain | army military troops forces | arrest detain | arrive reach | article piece |
ask inquire enquire query | assemble gather collect | assert claim | attempt try effort |
attractive appealing | author writer | automobile car vehicle | available obtainable accessible |
avoid evade | award prize honor | baby infant newborn | bacteria bacterium microbe |
basic fundamental essential | beautiful lovely gorgeous | begin start commence | behavior behaviour conduct |
believe think | besides addition | bicycle bike | big large huge | bill legislation | blaze fire |
border boundary frontier | boss manager supervisor | brave courageous | break shatter | bring deliver |
broad wide | build construct erect | building structure | business company firm enterprise corporation |
buy purchase | calculate compute | call phone telephone contact | calm peaceful | cancel scrap |
careful cautious | cause lead trigger induce result | center centre middle | certain sure |
challenge difficulty problem | chance opportunity possibility likelihood | change alter modify |
chairman chair chairperson | cheap inexpensive affordable | chief head leader | child kid youngster |
choose select pick opt | cinema theater | citizen resident inhabitant | city town | class course |
clear obvious | clever smart intelligent bright | client customer | close shut near |
clothes clothing garment apparel | coach trainer | collaborate cooperate | color colour |
combine merge unite join | come arrive | comment remark | common frequent | compare contrast | compete vie |
complete finish | complex complicated | comprise consist include | concept idea notion | concern worry |
condition state | conference meeting | confirm verify | conflict war fight | consider regard deem |
constant steady | consume eat | contain include hold | contest competition | continue persist proceed remain |
contribute donate | control regulate manage | conversation discussion dialogue talk chat discourse |
convert transform turn | cost price | country nation | couple pair | courage bravery |
create produce generate make form | crime offense offence | crisis emergency |
critical crucial vital essential important key | crowd audience | cure heal remedy |
current present existing | currently presently now | custom tradition | customized tailored personalized |
damage harm hurt injury | danger risk hazard threat | daring bold | data information | deadly lethal fatal |
debate argue | decide determine resolve | decision ruling | decrease reduce decline drop fall |
defend protect guard | define describe | delay postpone defer | deliver provide | demand request require |
demonstrate show prove reveal indicate | describe depict portray | design plan develop | desire wish want |
destroy demolish ruin wreck | detail specific | detect find discover identify | determine establish find |
develop create | device gadget tool | die perish pass | different distinct various diverse varying |
difficult hard tough | diminish lessen reduce | dinner supper | director manager | disappear vanish |
disaster catastrophe | discover find uncover | discuss talk mention |
disease illness disorder condition sickness | disperse scatter | display show exhibit | distribute spread |
divide split separate | doctor physician | document paper | drawback disadvantage |
drug medicine medication pharmaceutical | due owing | early initial | earn make | ease facilitate |
easy simple straightforward | economic financial | edge border | effective efficient | elect choose vote |
element component part | eliminate remove eradicate | emerge appear | emotion feeling |
emphasize stress highlight underscore | employ hire use | employee worker staff | encounter meet |
end finish conclude | endure last | enemy foe | engage involve | enjoy like | enormous huge massive |
ensure guarantee | enter join | entire whole | environment surroundings | equal same | error mistake fault |
escape flee | especially particularly | establish found set create | estimate gauge | event occasion |
evidence proof | examine study investigate | example instance | exceed surpass |
excellent superb outstanding | exchange trade swap | exhausted tired | expand extend grow |
expect anticipate | expedite accelerate | expensive costly pricey | experience undergo | expert specialist |
explain clarify describe | explore investigate | express convey | extra additional | extreme severe |
facility plant | factory plant | factor cause | fair just | famous renowned well-known | fan supporter |
fast quick rapid swift speedy | father dad | feature characteristic attribute | fee charge | female woman |
festival celebration | fight battle combat | film movie picture | final last | finance fund | fix repair |
follow pursue | food meal | force compel | forecast predict projection | foreign overseas | forest woods |
forever permanently | form shape | former previous ex | fortunate lucky | free complimentary |
freedom liberty | frequently often regularly | friend pal buddy | function role | funds money |
furthermore addition | future upcoming | game match | garbage trash rubbish waste | general overall |
gift present | give provide offer grant | global worldwide international | good great nice | govern rule |
government administration | grab seize | gradually slowly | graduate alumnus | great major significant |
group team band | guess estimate | guest visitor | guide lead | happy glad pleased delighted |
headquarters base | healthy fit | hide conceal | history past | holiday vacation | home house residence |
honest truthful | hope wish | hospital clinic | hostile aggressive | hotel inn | human person |
hurt injure harm | identical same | identify recognize pinpoint | ignore disregard neglect |
illegal unlawful | illustrate demonstrate | image picture photo photograph | imagine envision |
immediately instantly straightaway promptly | impact effect influence consequence | implement execute |
important significant crucial | improve enhance better |
include contain comprise involve incorporate encompass | income earnings revenue | incorrect wrong |
increase rise grow growth | indicate suggest show | industry sector | inform tell notify | initial first |
initiate launch start | injure wound | innovative novel | insect bug | inspect check | inspire motivate |
insurance coverage | intend plan | interesting fascinating | invent devise | invest fund |
investigation probe inquiry | issue problem matter | jail prison | job work position occupation |
journey trip travel voyage | judge assess | jump leap | keep retain maintain | kill slay murder |
kind type sort variety | know understand | lack absence shortage | land ground | landmark monument |
language tongue | laptop computer | later afterwards subsequently | launch introduce release |
law legislation statute | lawyer attorney | learn study | leave depart quit | lecture talk | legal lawful |
level degree | like similar | limit restrict | link connect connection association relation tie |
list enumerate | live reside dwell | locate situate place | location place site position spot | long lengthy |
look appear | loss defeat | loud noisy | low little | machine device | mail post |
main primary principal chief major | maintain keep preserve | majority most | male man |
manager boss executive | manufacture produce make | many numerous several | mark grade | market marketplace |
marry wed | marriage wedding | material substance | maximum highest | maybe perhaps | mean signify |
measure gauge | meet satisfy | member participant | memory recollection | mention state note |
merchant trader | method approach technique way procedure | minimum lowest | minor small | miss lose |
mission task | mix blend | mobile cellular | modern contemporary | money cash | monitor track observe |
mother mom mum | motive reason | mountain peak | mystery puzzle | necessary needed required essential |
need require | negotiate bargain | new novel recent latest | news report | normal usual typical standard |
novel book | number figure | obey follow | object thing | observe see watch notice | occur happen arise |
odd strange unusual | office bureau | official officer | old elderly | online internet web |
operate run work function | operation surgery | opinion view perspective viewpoint | oppose resist |
option choice alternative | order command | ordinary common |
organization organisation institution group association | organize arrange | origin source |
original initial | owner proprietor | pain ache | paper study | parents parent |
part portion section component segment | participate take join | particular specific | partner spouse |
party celebration | pattern trend | pay compensate | payment fee | perform execute carry |
period era time phase | person individual people | personnel staff | persuade convince | piece part |
pilot flyer | place put | plan scheme strategy | player athlete | pleasant nice | point dot | police officer |
policy rule | poll survey | poor impoverished | popular well-liked | population people | position post |
possess own have | possible potential feasible prospective | power energy | powerful strong | practice habit |
prefer favor | prepare ready | presentation talk | presenter host | preserve conserve | president leader |
press media | pressure stress | prevent stop avert | previous prior earlier former | prior previous before |
problem issue trouble | procedure process | product item goods | professor teacher |
program programme scheme | progress advance | prohibit ban forbid | project undertaking | promise pledge vow |
promote encourage | proper appropriate suitable | property real-estate | proposal suggestion |
propose suggest | protect safeguard shield | provide give offer supply | pupil student | pursue chase |
quality standard | quarrel argue | question query | quit leave resign | race competition |
raise lift increase | rare uncommon | rate speed | react respond | ready prepared | real genuine authentic |
realize understand | reason cause | rebellion revolt uprising | recover recuperate |
reduce lower cut decrease | reflect mirror | refuse decline | regular usual | reject refuse | relate connect |
related linked associated | release publish issue | reliable dependable trustworthy | religion faith |
rely depend | remain stay | remarkable extraordinary | remember recall | remove eliminate delete |
rent lease | replace substitute | report account | represent symbolize | reproduce copy | request ask |
requirement need | rescue save | researcher scientist investigator | reserve book | resolve solve settle |
responsible accountable | rest remainder | result outcome finding | retire withdraw | return comeback |
reveal show disclose | revenue income sales | review assess | reward prize | rich wealthy affluent |
right correct | ring circle | road street highway | role part | rule regulation | rush hurry | sad unhappy |
safe secure | salary wage pay | satisfied content | say state tell mention | scared afraid frightened |
scene setting | schedule timetable | school academy | science research | search seek | seat chair | see view |
sell vend | send dispatch | senior elderly | series show | serious severe grave | service offering |
several many various multiple | share portion | ship vessel boat | shop store | short brief |
show display demonstrate indicate | sick ill | sign indication |
significant important considerable substantial | similar alike comparable | since because |
skill ability talent | skilled experienced | sleep slumber | small little tiny | smell odor scent |
society community | soldier troop | solution answer | song track tune | soon shortly | special particular |
speech address | speed velocity | stage phase | statement declaration | steal rob | stone rock |
stop halt cease | story tale | strange odd weird | strengthen reinforce | strike hit |
study research investigation | stuff things | style fashion | succeed prosper | success achievement |
sufficient enough | suggest recommend indicate | suit fit | summary overview | support back | suppose assume |
surgeon doctor | surprise astonish | survive live | suspect doubt | symbol sign | system structure |
take grab | talk speak chat | task job | tax levy | teach instruct educate | teacher instructor |
team group squad | teenager adolescent teen | term phrase | test examine | text passage | therapy treatment |
thin slim | thorough comprehensive | tool instrument | topic subject theme | total whole | tour visit |
toxic poisonous | trade commerce | train coach | transport transportation | treat handle | trend tendency |
trial test | trick deceive | true real | trust rely | turn rotate | type kind category |
understand comprehend | unique distinctive | university college | update renew | upset sad | urge encourage |
use utilize employ usage utilization | useful helpful | valid legitimate | valley dale | value worth |
variety range selection | various different several diverse | vast huge | version edition | victim casualty |
victory win | violent aggressive | voice speech | vote ballot | wait await | walk stroll |
warn caution alert | watch view | weak feeble | wealth riches | weapon arms | weather climate |
website site webpage | wife spouse | husband spouse | wise sensible | wonderful great | word term |
work labor labour | world globe earth | write author compose | young youthful | youth young |
animal creature | brain cerebral | heart cardiac | lung pulmonary | kidney renal | liver hepatic |
cancer tumor tumour carcinoma | mouse murine mice | child pediatric paediatric | tooth dental |
mortality death | participant subject volunteer | trial study | america american usa u.s us united-states |
britain british uk | england english | france french | germany german | spain spanish | italy italian |
china chinese | japan japanese | india indian | russia russian | canada canadian | australia australian |
mexico mexican | brazil brazilian | europe european | africa african | asia asian | greece greek |
ireland irish | scotland scottish | wales welsh | israel israeli | iran iranian | iraq iraqi |
egypt egyptian | turkey turkish | poland polish | sweden swedish | norway norwegian | denmark danish |
finland finnish | netherlands dutch | switzerland swiss | austria austrian | portugal portuguese |
ukraine ukrainian | korea korean | vietnam vietnamese | thailand thai | pakistan pakistani |
argentina argentine
"""


GROUPS: Final = tuple(tuple(group.split()) for group in _GROUPS.split("|"))
"""The groups, in the words as written."""


def _table() -> dict[str, frozenset[str]]:
    table: dict[str, set[str]] = {}
    for words in GROUPS:
        group = {stem(word) for word in words}
        for word in group:
            table.setdefault(word, set()).update(group - {word})
    return {word: frozenset(others) for word, others in table.items()}


SYNONYMS: Final = _table()
"""Stem → stems that may stand for it."""
