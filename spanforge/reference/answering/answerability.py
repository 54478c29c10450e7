"""Whether chosen sentences answer a question, or only speak of the same things.

A logistic model over named features: how much of the question stands in the sentence, what of it stands nowhere,
whether something of the wanted kind is there, and whether the sentence, read against the question as if that were a
claim, contradicts it. `train` fits it; ``coefficients.json`` is all that is kept of the questions it was fitted on.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from spanforge.reference.answering.spans import candidates
from spanforge.reference.answering.tables import share_known
from spanforge.reference.answering.topics import mean_share, topics_of
from spanforge.reference.grounding.contexts import PreparedContexts
from spanforge.reference.grounding.features import FAULTS, Feature, examine, name_is_known
from spanforge.reference.grounding.features import FEATURES as CLAIM_FEATURES
from spanforge.reference.grounding.model import Model
from spanforge.reference.grounding.sentence import Sentence
from spanforge.reference.grounding.weights import WordWeights
from spanforge.reference.lexical import coverage, rarity, terms
from spanforge.reference.passages import reading_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spanforge.reference.answering.spans import Wanted
    from spanforge.reference.answering.units import Unit
    from spanforge.reference.models import RetrievedDocument

_OWN: Final[tuple[Feature, ...]] = (
    Feature("near", 1, "share of the question's topics in the chosen sentence, its headings and its two neighbours"),
    Feature("matched", 1, "topics in the chosen sentence and its headings, four of them counting as 1"),
    Feature("relevance", 1, "share of the question's weight, rare words weighing more, that the passage has"),
    Feature("name_nowhere", -1, "share of the question's names, word by word, that no passage has"),
    Feature("nowhere", -1, "topics that no passage has, four of them counting as 1"),
    Feature("kind_absent", -1, "1 if the question wants a name, a date or a number and the sentence has none"),
    Feature("uncounted", -1, "1 if the question asks how many of something and no number stands before that"),
)
_SHARED: Final = tuple(one for one in CLAIM_FEATURES if one.name in FAULTS - {"name_missing"})
FEATURES: Final[tuple[Feature, ...]] = (*_OWN, *_SHARED)
"""The features of the model; those it shares with the grounder mean there what they mean here."""
FEATURE_NAMES: Final = tuple(feature.name for feature in FEATURES)

_MANY_MATCHED: Final = 4
_MANY_MISSING: Final = 4
_MAX_QUESTION_CHARS: Final = 4_096


@lru_cache(maxsize=1)
def default_model() -> Model:
    """Return the model of the committed coefficients, read once."""
    return Model.committed("spanforge.reference.answering", FEATURE_NAMES)


def features_of(
    question: str,
    want: Wanted | None,
    chosen: Sequence[Unit],
    units: Sequence[Unit],
    documents: Sequence[RetrievedDocument],
) -> Mapping[str, float]:
    """Return the value of each feature, each in [0, 1].

    Args:
        question: The question.
        want: What kind of answer it wants, where that is known.
        chosen: The sentences that would be quoted, the best first; at least one.
        units: All sentences of the passages.
        documents: The passages, in the order of their numbers.
    """
    asked = Sentence(question[:_MAX_QUESTION_CHARS], 0)
    topics = topics_of(asked, want.measure if want else "")
    best = chosen[0]
    said = best.terms | best.context
    anywhere = frozenset[str]().union(*(unit.terms | unit.context for unit in units))
    # A row that was chosen has been found to hold what is wanted, be it under the name of its column.
    kind = None if best.cells else want
    found = candidates(question, kind, best.text) if kind else []
    counted = kind.counted if kind else None
    quoted = PreparedContexts.of([("\n" if best.cells else " ").join(unit.text for unit in chosen)])
    faults = examine([asked], quoted, WordWeights()).features
    near = mean_share(topics, said.union(*(unit.terms for unit in _neighbours(best, units))))
    matched = min(1.0, sum(topic.share_in(said) for topic in topics) / _MANY_MATCHED)
    relevance = _relevance(question, best.number, documents)
    if best.cells:
        # A row says little else than what it is asked for: the share of the topics that it has stands for all three.
        near = matched = share_known(question, topics, best)
        relevance = max(relevance, near)
    return {
        "near": near,
        "matched": matched,
        "relevance": relevance,
        "name_nowhere": unknown_names(asked, documents),
        "nowhere": min(1.0, sum(1.0 - topic.share_in(anywhere) for topic in topics) / _MANY_MISSING),
        "kind_absent": float(kind is not None and kind.expected and not found),
        "uncounted": float(counted is not None and not any(counted.match(best.text, one.end()) for one in found)),
        **{feature.name: faults[feature.name] for feature in _SHARED},
    }


def unknown_names(question: Sentence, documents: Sequence[RetrievedDocument]) -> float:
    """Return the share in [0, 1] of the words of a question's names that no passage has, nor what they abbreviate.

    It is 0 where there are no names, and where every word is written like one, as in a title.
    """
    names = question.marked_names
    if not names or len(names) == sum(map(bool, question.stems)):
        return 0.0
    contexts = PreparedContexts.of([reading_of(document) for document in documents])
    known = sum(name_is_known(question.stems[index], question.tokens[index], question, contexts) for index in names)
    return 1.0 - known / len(names)


def _neighbours(unit: Unit, units: Sequence[Unit]) -> list[Unit]:
    place = units.index(unit)
    beside = (*units[max(0, place - 1) : place], *units[place + 1 : place + 2])
    return [other for other in beside if other.number == unit.number]


def _relevance(question: str, number: int, documents: Sequence[RetrievedDocument]) -> float:
    """Return the passage's measure from the search, or one over the given passages where no search gave any."""
    if any(document.relevance for document in documents):
        return documents[number - 1].relevance
    passages = [frozenset(terms(f"{document.heading} {document.text}")) for document in documents]
    return coverage(rarity(terms(question), passages), passages[number - 1])
