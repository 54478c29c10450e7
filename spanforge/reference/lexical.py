"""From text to terms: the analysis shared by search, reranking and answering.

Lower-cased words, English stop words left out, Snowball stems. Everything that compares words of a question
with words of a document goes through here, so that all stages mean the same by "the same word".
"""

from __future__ import annotations

import math
import re
import threading
import unicodedata
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from spanforge.reference._extras import load

K1, B = 1.2, 0.75
"""BM25's saturation and length normalisation, the same in every engine."""
UNSEEN_PASSAGES = 20
"""Passages supposed to exist beside the given ones, without the terms: over one or two passages, frequency says
nothing, and a word that all of them hold is not thereby a common one."""
_SHORTEST_SLIP = 5
"""Letters of a word from which a slip in it is looked for; shorter words are too often another word ..."""
_SHORTEST_SWAP = 3
"""... unless two of their letters have only changed places."""
_WORD = re.compile(r"[^\W_]+(?:[.,]\d+)*")  # "price_eur" is two words, "1.5" is one
_IDEOGRAPHS = r"\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_UNSPACED = re.compile(f"[{_IDEOGRAPHS}]")
_RUN = re.compile(f"[{_IDEOGRAPHS}]+|[^{_IDEOGRAPHS}]+")
_GREEK = re.compile(r"[\u0370-\u03ff\u1f00-\u1fff]+")
_STOP_WORDS = """
a about above after again against all am an and any are as at be because been before being below between both but by
can could did do does doing don down during each few for from further had has have having he her here hers herself him
himself his how i if in into is it its itself just me more most my myself no nor not now of off on once only or other
our ours ourselves out over own s same she should so some such t than that the their theirs them themselves then there
these they this those through to too under until up upon us very was we were what when where which while who whom
whose why will with would you your yours yourself yourselves
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
_stemmer_of_thread = threading.local()


def under_heading(heading: str, text: str) -> str:
    """Return a passage with the headings over it, unless it begins with its own."""
    return f"{heading}\n{text}" if heading and not text.startswith("#") else text


def words(text: str) -> list[str]:
    """Return the lower-cased words and numbers of ``text``, compatibility forms folded.

    Scripts that write no blanks between words give each two neighbouring characters; Greek loses its accents, which
    capitals do not have.
    """
    if text.isascii():
        return _WORD.findall(text.lower())
    folded = _GREEK.sub(_without_accents, unicodedata.normalize("NFKC", text).lower())
    return [piece for word in _WORD.findall(folded) for piece in ([word] if word.isascii() else _pieces(word))]


def _pieces(word: str) -> Iterator[str]:
    for run in _RUN.findall(word):
        if len(run) > 1 and _UNSPACED.match(run):
            yield from (run[i : i + 2] for i in range(len(run) - 1))
        else:
            yield run


def _without_accents(match: re.Match[str]) -> str:
    letters = (c for c in unicodedata.normalize("NFD", match[0]) if not unicodedata.combining(c))
    return "".join(letters).replace("\u03c2", "\u03c3")


def terms(text: str) -> list[str]:
    """Return the stems of the words of ``text`` that are not stop words, in order, with repeats."""
    return [stem(word) for word in words(text) if word not in STOP_WORDS]


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Return the English Snowball stem of a lower-cased word."""
    # A Stemmer object keeps state and is not safe to share between threads.
    stemmer = getattr(_stemmer_of_thread, "stemmer", None)
    if stemmer is None:
        stemmer = _stemmer_of_thread.stemmer = load("Stemmer", "reference").Stemmer("english")
    return stemmer.stemWord(word)


def rarity(wanted: Iterable[str], passages: Sequence[Container[str]]) -> dict[str, float]:
    """Return the inverse document frequency of some terms over a few passages.

    Args:
        wanted: The terms to weigh.
        passages: The terms of each passage.

    Returns:
        ``log(1 + (n - df + 0.5) / (df + 0.5))`` by term (Robertson and Spärck Jones' weight, kept positive), where
        ``n`` counts a few unseen passages as well; a term that is in no passage has the greatest weight.
    """
    total = len(passages) + UNSEEN_PASSAGES
    frequency = {term: sum(term in passage for passage in passages) for term in set(wanted)}
    return {term: math.log1p((total - df + 0.5) / (df + 0.5)) for term, df in frequency.items()}


def coverage(weights: Mapping[str, float], passage: Container[str]) -> float:
    """Return the share in [0, 1] of the weight whose terms occur in the passage; 0 where there is no weight."""
    total = sum(weights.values())
    found = sum(weight for term, weight in weights.items() if term in passage)
    return min(1.0, found / total) if total > 0.0 else 0.0


def meant_by(word: str, known: Mapping[str, str]) -> str:
    """Return the one known word of which a lower-cased word is a slip, and the word itself where not just one is.

    Args:
        word: A word that is not known.
        known: Known words, and the stem of each: forms of one word are one.
    """
    if len(word) < _SHORTEST_SWAP or not word.isalpha():
        return word
    near = [other for other in known if abs(len(other) - len(word)) <= 1 and _is_slip(word, other)]
    if len(word) < _SHORTEST_SLIP:
        near = [other for other in near if sorted(other) == sorted(word)]
    return near[0] if len({known[other] for other in near}) == 1 else word


def _is_slip(word: str, other: str) -> bool:
    """Tell whether one letter too many, too few, wrong, or two that changed places make one word of the other."""
    start = next((i for i, (a, b) in enumerate(zip(word, other, strict=False)) if a != b), min(len(word), len(other)))
    if start == 0:
        return False
    left, right = word[start:], other[start:]
    return (
        left[1:] == right
        or left == right[1:]
        or left[1:] == right[1:]
        or (left[:2] == right[1::-1] and left[2:] == right[2:])
    )
