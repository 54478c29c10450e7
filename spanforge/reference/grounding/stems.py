"""A light English stemmer, so that the grounder needs no dependency.

It removes inflection and the commonest derivational endings ("activation", "activated" and "activity" share a stem),
which is what matching a claim to its evidence needs. It does not aim at linguistically right stems.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

_MIN_STEM: Final = 3
"""Letters an ending must leave behind; shorter remains are rarely the same word."""

_DERIVATIONAL: Final = (
    ("ization", ""), ("isation", ""), ("ational", ""), ("fulness", ""), ("iveness", ""), ("ousness", ""),
    ("ation", ""), ("ition", ""), ("ingly", ""), ("ement", ""), ("ility", ""), ("ivity", ""),
    ("ness", ""), ("ment", ""), ("ably", ""), ("ibly", ""), ("able", ""), ("ible", ""), ("ance", ""), ("ence", ""),
    ("tion", "t"), ("sion", "s"), ("ical", ""), ("ally", ""), ("ity", ""), ("ive", ""), ("ize", ""), ("ise", ""),
    ("ate", ""), ("ful", ""), ("ous", ""), ("ic", ""), ("al", ""), ("ly", ""),
)  # fmt: skip
"""Ending and what replaces it; the first that fits is taken, so longer ones stand first."""

_DERIVED_MIN_STEM: Final = 4
_IRREGULAR: Final = {
    irregular: base
    for base, forms in {
        "be": "is are was were been being am",
        "have": "has had having",
        "do": "does did done doing",
        "go": "went gone goes",
        "win": "won wins winning",
        "lose": "lost loses losing loss",
        "rise": "rose risen",
        "fall": "fell fallen",
        "grow": "grew grown growth",
        "begin": "began begun beginning",
        "buy": "bought",
        "sell": "sold sale sales",
        "lead": "led",
        "make": "made making",
        "take": "took taken taking",
        "give": "gave given giving",
        "write": "wrote written writing",
        "find": "found",
        "hold": "held",
        "build": "built",
        "say": "said says",
        "see": "saw seen",
        "know": "knew known",
        "think": "thought",
        "tell": "told",
        "teach": "taught",
        "pay": "paid",
        "send": "sent",
        "sing": "sang sung",
        "speak": "spoke spoken",
        "choose": "chose chosen choosing",
        "meet": "met",
        "run": "ran running",
        "bear": "born bore",
        "die": "died dying death dead dies",
        "child": "children",
        "man": "men",
        "woman": "women",
        "person": "people persons",
        "foot": "feet",
        "mouse": "mice",
        "good": "better best",
        "bad": "worse worst",
        "become": "became",
        "come": "came",
        "bring": "brought",
        "catch": "caught",
        "fight": "fought",
        "forget": "forgot forgotten",
        "freeze": "froze frozen",
        "get": "got gotten",
        "hear": "heard",
        "keep": "kept",
        "lay": "laid",
        "mean": "meant",
        "ride": "rode ridden",
        "ring": "rang rung",
        "shoot": "shot",
        "sleep": "slept",
        "spend": "spent",
        "stand": "stood",
        "steal": "stole stolen theft",
        "strike": "struck",
        "swim": "swam swum",
        "throw": "threw thrown",
        "understand": "understood",
        "wake": "woke woken",
        "wear": "wore worn",
        "fly": "flew flown flight",
        "draw": "drew drawn",
        "drive": "drove driven",
        "eat": "ate eaten",
        "drink": "drank drunk",
        "feel": "felt",
        "break": "broke broken",
        "seek": "sought",
        "shrink": "shrank shrunk",
        "sink": "sank sunk",
        "tear": "tore torn",
        "swear": "swore sworn",
        "hide": "hid hidden",
        "feed": "fed",
        "bind": "bound",
        "act": "action actions",
        "inhibit": "inhibition inhibitor inhibitors",
        "exhibit": "exhibition exhibitions",
        "prohibit": "prohibition",
        "expand": "expansion",
        "extend": "extension extent",
        "decide": "decision decisions",
        "invade": "invasion",
        "conclude": "conclusion conclusions",
        "include": "inclusion",
        "exclude": "exclusion",
        "divide": "division",
        "explode": "explosion explosions",
        "destroy": "destruction",
        "choice": "choices",
        "prove": "proof proven",
        "believe": "belief beliefs",
        "weigh": "weight",
        "strong": "strength",
        "long": "length",
        "wide": "width",
        "deep": "depth",
        "high": "height",
        "fail": "failure failures",
        "depart": "departure",
        "close": "closure",
        "expose": "exposure",
        "marry": "marriage",
        "sign": "signature",
    }.items()
    for irregular in forms.split()
}


def _strip_inflection(word: str) -> str:
    if word.endswith("ies") and len(word) > _MIN_STEM + 1:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    for ending in ("ing", "ied", "ed"):
        root = word[: -len(ending)]
        if word.endswith(ending) and len(root) >= _MIN_STEM and any(letter in "aeiouy" for letter in root):
            if ending == "ied":
                return root + "y"
            return root[:-1] if root[-1] == root[-2] and root[-1] not in "lsz" else root
    return word


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return the stem of one lower-case word.

    Args:
        word: A lower-case token. Tokens with digits or outside ASCII letters come back unchanged.

    Returns:
        The stem, at least three letters unless the word itself is shorter.
    """
    word = _IRREGULAR.get(word, word)
    if len(word) <= _MIN_STEM or not (word.isascii() and word.isalpha()):
        return word
    word = _strip_inflection(word)
    for ending, replacement in _DERIVATIONAL:
        if word.endswith(ending) and len(word) - len(ending) >= _DERIVED_MIN_STEM:
            word = word[: len(word) - len(ending)] + replacement
            break
    if word.endswith("e") and len(word) > _MIN_STEM:
        word = word[:-1]
    if word.endswith(("ct", "ss")):
        word = word[:-1]  # "reduction" and "reduce", "suppression" and "suppress"
    if word.endswith("y") and len(word) > _MIN_STEM:
        word = word[:-1] + "i"
    return word
