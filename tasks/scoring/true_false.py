"""Reads a verdict: yes or no, true or false."""

from __future__ import annotations

import re
from typing import NamedTuple

from cl_bench.tasks.base import Example, Score
from cl_bench.tasks.scoring.reading import LONGEST, answer_part, plain, tag_form, tagged

_VERDICTS = {
    "yes": True, "true": True, "y": True, "t": True, "correct": True, "right": True,
    "no": False, "false": False, "n": False, "f": False, "incorrect": False, "wrong": False, "untrue": False,
}  # fmt: skip
_ONE = r"(?:yes|no|true|false|correct|incorrect)"
_PAIR = rf"\b{_ONE}\s*(?:\b(?:or|and)\b|/|\|)\s*{_ONE}\b"
_WORD = re.compile(
    rf"(?P<pair>{_PAIR})"
    r"|(?P<doubt>\b(?:maybe|perhaps|possibly|might|may|could|can(?:not|'t) say|if|whether|either|neither|nor)\s+"
    r"(?:(?:be|that|it|the|is|answer|statement|this|a)\s+){0,4})?"
    r"(?P<denied>(?:\b(?:not|never)|n't)\s+(?:(?:really|actually|entirely|strictly|quite|at all|be|necessarily)\s+)?)?"
    r"\b(?P<word>yes|no|true|false|untrue|correct|incorrect|right|wrong)\b",
    re.IGNORECASE,
)
_DETERMINER = re.compile(
    r"\b(?:the|an?|any|its|this|that|all|every|some|both|these|those|with|of|in)\s$", re.IGNORECASE
)
_LINK = re.compile(
    r"(?:^|[^\w\s]\s?|\n|\b(?:is|are|was|be|answers?|say|says|that's|it's|statement|claim|therefore|thus|hence|so|but|"
    r"indeed|clearly|definitely|probably|likely|still|then|also|both|as|considered)\s)$",
    re.IGNORECASE,
)
# What may follow: the end, punctuation or a reason; before another word, "no" and "true" belong to that word.
_ENDS = re.compile(
    r"\s*(?:$|[\n.,;:!)\"'\x03—–\]]|-\s)|\s+(?:because|since|as|that|for|if|given|due|when|it|this|the|in|here)\b"
)
_COPULA = re.compile(r"(?:\b(?:is|are|was|be)|answer:?)\s$", re.IGNORECASE)
_BARE = re.compile(r"[(\[\"'\x02]*([A-Za-z]+)[)\]\"'\x03.!]*")


class _Verdict(NamedTuple):
    word: str
    value: bool | None


def parse_true_false(text: str, vocabulary: str = "yes") -> bool | None:
    """The verdict a response states last, or None.

    Read is the content of the last ``<answer>`` that is not empty, else the text without its reasoning blocks: one word
    alone ("Yes.", "F"), else the last verdict in the text. "not true" is false. A verdict in doubt ("might be true",
    "maybe yes"), both at once ("yes or no", "true/false") and a question are none, and as the last thing stated they
    leave the response without an answer. "no" and "true" that belong to a noun ("no charge", "the true value") are no
    verdicts.

    Args:
        text: The response.
        vocabulary: A gold word. Where the response has verdicts in its vocabulary (yes and no; true and false), others
            do not count: "Yes, that is false" is yes for a question and false for a statement.
    """
    text = answer_part(text)
    content = tagged(text)
    text = plain((text if content is None else content)[-LONGEST:])
    bare = _BARE.fullmatch(text)
    if bare:
        return _VERDICTS.get(bare.group(1).lower())
    found = [verdict for match in _WORD.finditer(text) if (verdict := _read(text, match)) is not None]
    own = {"yes", "no"} if vocabulary.lower() in ("yes", "no") else {"true", "false", "untrue"}
    preferred = [verdict for verdict in found if verdict.word in own or verdict.word == "pair"] or found
    if all(verdict.word == "pair" for verdict in preferred):
        preferred = found
    return preferred[-1].value if preferred else None


def _read(text: str, match: re.Match[str]) -> _Verdict | None:
    if match["pair"]:
        return _Verdict("pair", None)
    word = match["word"].lower()
    before = text[max(0, match.start() - 40) : match.start()]
    linked = bool(match["doubt"] or match["denied"]) or _LINK.search(before) is not None
    if _DETERMINER.search(before) or not linked or not _ENDS.match(text, match.end()):
        return None
    if word in ("right", "wrong", "correct", "incorrect") and not _COPULA.search(before):
        return None
    if match["denied"] and word in ("yes", "no"):
        return None
    value = None if match["doubt"] else _VERDICTS[word] != bool(match["denied"])
    return _Verdict(word, value)


def score_true_false(example: Example, text: str) -> Score:
    """Score a verdict; gold may be Yes, No, True or False in any case.

    ``format_ok``: the verdict alone as one word of gold's vocabulary, or in the tag form. ``parsed`` is in gold's
    vocabulary.
    """
    gold = (example.answer or "").strip()
    wanted = _VERDICTS.get(gold.lower())
    value = parse_true_false(text, gold)
    names = ("Yes", "No") if gold.lower() in ("yes", "no") else ("True", "False")
    parsed = None if value is None else names[0] if value else names[1]
    inside = tag_form(text)
    word = (text if inside is None else inside).strip().rstrip(".")
    format_ok = word.capitalize() in names
    return Score(correct=value is not None and value == wanted, parsed=parsed, format_ok=format_ok)
