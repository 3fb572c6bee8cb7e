"""Reads a verdict: yes or no, true or false."""

from __future__ import annotations

import re
from typing import NamedTuple

from cl_bench.tasks.base import Example, Score
from cl_bench.tasks.scoring.reading import LONGEST, answer_part, first_turn, plain, tag_form, tagged_answer
from cl_bench.tasks.scoring.retractions import retraction

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
    r"(?P<denied>(?:\b(?:not|never|cannot)|n't)\s+"
    r"(?:(?:really|actually|entirely|strictly|quite|at all|be|possibly|necessarily)\s+){0,2})?"
    r"\b(?P<word>yes|no|true|false|untrue|correct|incorrect|right|wrong)\b",
    re.IGNORECASE,
)
# What the clause of a verdict begins with may leave it open, turn it round, or only report what others say.
_CLAUSE_START = re.compile(r"[.;:!?\n,]\s|\b(?:but|so|therefore|thus|hence|however)\b", re.IGNORECASE)
_OPEN = re.compile(
    r"\b(?:unlikely|doubtful|unclear|unsure|uncertain|(?<!no )doubt|whether|hard to (?:say|tell)"
    r"|can(?:not|'t| not) (?:say|tell|decide|be sure))\b|(?:\bnot|n't) (?:sure|know|say|certain|clear)\b",
    re.IGNORECASE,
)
_TURNED = re.compile(
    r"\b(?:none of|nothing (?:about|in|of)|(?:wrong|incorrect|false|untrue|inaccurate|a mistake) (?:to|that)|"
    r"misconception|myth|fallacy|impossible|no way|cannot be)\b"
    r"|(?:\bnot|n't) (?:possible|the case|correct to|right to|think|believe)\b",
    re.IGNORECASE,
)
_REPORTED = re.compile(
    r"\b(?:(?:is|are|was|were)\s(?:\w+\s)?(?:said|claimed|believed|thought|assumed)|"
    r"(?:people|many|some|students?)\s(?:\w+\s)?(?:say|claim|believe|think|assume))\b",
    re.IGNORECASE,
)
# What would hold under another condition, or of another statement.
_SUPPOSED = re.compile(
    r"\bwould\s(?:\w+\s){0,2}?(?:be|have\sbeen)\s(?:\w+\s){0,2}$|\botherwise\b[^.\n]*$"
    r"|\bhad\b[^.\n]{0,60}\bbeen\b",
    re.IGNORECASE,
)
_OF_ANOTHER = re.compile(
    r"\b(?:opposite|contrary|converse|negation|reverse|inverse)\b(?:\s(?!of\b)\w+)?\s(?:is|are|was|would be)\s"
    r"(?:\w+\s){0,2}$",
    re.IGNORECASE,
)
_REASON = re.compile(r"\b(?:because|since|as|while|whereas|given that|although|even though)\b|\(", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?](?:\s|$)|\n|\)")
_STATED = re.compile(r"\b(?:answer|verdict|conclusion)\b[^.\n?]{0,60}?(?:\b(?:is|be|was)\b|[:=])\W*$", re.IGNORECASE)
_SAYS_YES_OR_NO = re.compile(r"\b(?:answers?|verdict|conclusion|response|says?|say)\b[^.\n]*$", re.IGNORECASE)
_NEXT_STATEMENT = re.compile(r"\n[ \t]*(?:Statement|Claim):")
_DETERMINER = re.compile(
    r"\b(?:the|an?|any|its|this|that|all|every|some|both|these|those|with|of|in)\s$", re.IGNORECASE
)
_LINK = re.compile(
    r"(?:^|[^\w\s]\s?|\n|\b(?:is|are|was|be|answers?|say|says|that's|it's|statement|claim|therefore|thus|hence|so|but|"
    r"indeed|actually|really|in fact|clearly|definitely|probably|likely|still|then|also|both|as|considered)\s)$",
    re.IGNORECASE,
)
# What may follow: the end, punctuation or a reason; before another word, "no" and "true" belong to that word.
_ENDS = re.compile(
    r"\s*(?:$|[\n.,;:!()}\"'\x03—–\]]|-\s)|\s+(?:because|since|as|that|for|if|given|due|when|it|this|the|in|here|"
    r"they|he|she|we|you|I|these|those|there|its|their)\b"
)
_COPULA = re.compile(r"(?:\b(?:is|are|was|be)|answer:?)\s$", re.IGNORECASE)
_BARE = re.compile(r"[(\[\"'\x02]*([A-Za-z]+)[)\]\"'\x03.!]*")


class _Verdict(NamedTuple):
    word: str
    value: bool | None
    start: int
    end: int
    stated: bool = False
    """It is named as the answer."""
    aside: bool = False
    """It is of another case or of the opposite; it counts where there is no other."""


def parse_true_false(text: str, vocabulary: str = "yes") -> bool | None:
    """The verdict a response states last, or None.

    A question or statement that a base model goes on with is not read, unless no word before it is a verdict. Read is
    the content of the last ``<answer>`` that is not empty, else the text without its reasoning blocks: one word alone
    ("Yes.", "F"), else the last verdict in the text. "not true" is false. A verdict in doubt ("might be true", "maybe
    yes"), both at once ("yes or no", "true/false") and a question are none, and as the last thing stated they
    leave the response without an answer; so does one that is unlikely or doubted. "None of this is true", "it is wrong
    to say it is true" and "a misconception that it is true" are false. "no" and "true" that belong to a noun ("no
    charge", "the true value"), that a reason holds ("true, since the contrary is false") or that others say ("is often
    said to be true") are no verdicts. What would be true otherwise, and what the opposite is, counts only where there
    is nothing else. A verdict named as the answer goes before later ones, unless it is taken back.

    Args:
        text: The response.
        vocabulary: A gold word. Where the response has verdicts in its vocabulary (yes and no; true and false), others
            do not count: "Yes, that is false" is yes for a question and false for a statement.
    """
    text = answer_part(text)
    turn = _NEXT_STATEMENT.split(first_turn(text), maxsplit=1)[0]
    return _parse(turn if _WORD.search(turn) else text, vocabulary)


def _parse(text: str, vocabulary: str) -> bool | None:
    content = tagged_answer(text)
    text = plain((text if content is None else content)[-LONGEST:])
    bare = _BARE.fullmatch(text)
    if bare:
        return _VERDICTS.get(bare.group(1).lower())
    found: list[_Verdict] = []
    for match in _WORD.finditer(text):
        verdict = _read(text, match)
        if verdict is not None and not (found and _gives_reason(text, found[-1], verdict)):
            found.append(verdict)
    found = [verdict for verdict in found if not verdict.aside] or found
    own = {"yes", "no"} if vocabulary.lower() in ("yes", "no") else {"true", "false", "untrue"}
    preferred = [verdict for verdict in found if verdict.word in own or verdict.word == "pair"] or found
    if all(verdict.word == "pair" for verdict in preferred):
        preferred = found
    return _final(text, preferred)


def _final(text: str, found: list[_Verdict]) -> bool | None:
    """The last verdict that is named as the answer, else the last one; a later one where that is taken back."""
    stated = [verdict for verdict in found if verdict.stated]
    if not stated or retraction(text, stated[-1].end):
        return found[-1].value if found else None
    return stated[-1].value


def _gives_reason(text: str, first: _Verdict, second: _Verdict) -> bool:
    """Whether the second of two verdicts stands in the reason for the first."""
    between = text[first.end : second.start][-400:]
    return _SENTENCE_END.search(between) is None and _REASON.search(between) is not None


def _read(text: str, match: re.Match[str]) -> _Verdict | None:
    if match["pair"]:
        return _Verdict("pair", None, match.start(), match.end())
    before = text[max(0, match.start() - 120) : match.start()]
    clause = _CLAUSE_START.split(before)[-1]
    word = match["word"].lower()
    if not _is_verdict(text, match, before) or _REPORTED.search(clause):
        return None
    turned = _TURNED.search(clause) is not None
    left_open = match["doubt"] or (not turned and _OPEN.search(clause + match.group()))
    opposite = _OF_ANOTHER.search(clause)
    turned = turned != (opposite is not None)
    value = None if left_open else _VERDICTS[word] != (bool(match["denied"]) != turned)
    aside = opposite or _SUPPOSED.search(clause)
    return _Verdict(word, value, match.start(), match.end(), _STATED.search(before) is not None, aside is not None)


def _is_verdict(text: str, match: re.Match[str], before: str) -> bool:
    """Whether a word is said of the question, and is no part of a phrase ("no charge", "the product is NO")."""
    word, near = match["word"].lower(), before[-40:]
    linked = match["doubt"] or match["denied"] or _LINK.search(near)
    if not linked or not _ENDS.match(text, match.end()) or (_DETERMINER.search(near) and not match["denied"]):
        return False
    if word in ("yes", "no"):
        return not match["denied"] and (not _COPULA.search(near) or _SAYS_YES_OR_NO.search(before) is not None)
    if word in ("right", "wrong", "correct", "incorrect"):
        return _COPULA.search(near) is not None and text[match.end() : match.end() + 2].strip() != "("
    return True


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
