"""Finds sentences whose subject is an option and that call it right: "B (water) is correct", "only B fits"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cl_bench.tasks.scoring.options import Options

_PARENTHESIS = re.compile(r"\s?\([^()\n]{0,80}\)")
_APPOSITION = re.compile(r",\s[^,.\n;]{1,80},")
_ANY_WORDS = re.compile(r"[.:]\s[^.\n;:]{1,80}?(?=\s(?:is|was|must|would)\s)")
_RIGHT = re.compile(
    r"\s+(?:is|was|must be|would be|has to be|should be|will be|remains|(?:seems|appears|looks)(?: to be)?)\s+"
    r"(?:(?:indeed|clearly|therefore|thus|hence|definitely|certainly|obviously|actually|most likely|likely|probably|"
    r"then)\s+)*"
    r"(?:(?P<definite>(?:the|my|our)\s+(?:(?!wrong|incorrect|least|worst)\w+\s+){0,3}?"
    r"(?:answer|(?:correct|right|best|true)\s+(?:\w+\s+)?"
    r"(?:answer|option|choice|one|solution|match|selection|statement|response)))\b"
    r"|(?:correct|right|true|valid|best|accurate|the (?:correct|right|best|most \w+|closest))(?![\w-]))"
    r"(?!\s+(?:only|if|when)\b)",
    re.IGNORECASE,
)
_FITS = re.compile(
    r"\s+(?:(?:fits|matches|suits|satisfies|agrees with|explains)\s+(?:best|the|all|this|these|both|our|with|every|"
    r"well|it|perfectly|exactly)\b|works(?: best)?\s*(?=$|[.\n;!])|is\s+(?:the\s+)?better(?!\s+(?:than|if|when|to)\b)"
    r"|is\s+the\s+(?:most|only)\s+(?:consistent|plausible|reasonable|likely)\b)",
    re.IGNORECASE,
)
_ALONE_FITS = re.compile(
    r"\s+(?:is\s+(?:consistent|possible|valid|plausible|viable|left)|works|fits|match(?:es)?|remains|holds|satisfies|agrees|"
    r"makes sense|meets|fulfill?s|survives)\b",
    re.IGNORECASE,
)
_THE_ANSWER = re.compile(
    r"\s+(?:is|was|must be)\s[^.\n]{0,40}\b(?:the|my|our)\s(?:\w{1,10}\s){0,2}answer(?=\s*(?:$|[\n.;!\x03]))",
    re.IGNORECASE,
)
_ONLY_BEFORE = re.compile(r"\bonly\s(?:option\s|choice\s|answer\s)?$", re.IGNORECASE)
# "Graph B matches the data" is about a graph.
_SUBJECT_BEFORE = re.compile(
    r"(?:\A|[.,;:!?\n(]\s?|\b(?:only|option|choice|answer|statement|so|but|and|then|thus|hence|therefore|that|because|since|"
    r"as|while|think|believe)\s)$",
    re.IGNORECASE,
)


def verdict_at(text: str, start: int, before: str) -> re.Match[str] | None:
    """What calls the option right whose name ends at ``start``."""
    if verdict := _RIGHT.match(text, start):
        return verdict
    verdict = _ALONE_FITS.match(text, start)
    if verdict and _ONLY_BEFORE.search(before[-30:]):
        return verdict
    verdict = _FITS.match(text, start)
    return verdict if verdict and _SUBJECT_BEFORE.search(before[-30:]) else None


def subject_ends(text: str, token: re.Match[str], options: Options) -> Iterator[int]:
    """Where the subject that a letter begins may end: "B", "B (water)", "B, water,", "B. Water"."""
    yield token.end()
    own = options.own_end(token.group(2), text, token.end())
    if own is not None:
        yield own
    patterns = (_PARENTHESIS, _APPOSITION) if options.texts else (_PARENTHESIS, _APPOSITION, _ANY_WORDS)
    for pattern in patterns:
        if match := pattern.match(text, token.end()):
            yield match.end()


def calls_it_the_answer(text: str, verdict: re.Match[str]) -> bool:
    """Whether a verdict is "is the (correct) answer" and no more, rather than "is the best choice for …"."""
    return _THE_ANSWER.match(text, verdict.start()) is not None
