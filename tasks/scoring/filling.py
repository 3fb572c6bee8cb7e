"""Compares short free-text answers: formulas, equations, names."""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from collections.abc import Iterator

from cl_bench.tasks.base import Example, Score
from cl_bench.tasks.scoring.reading import LONGEST, answer_part, last_boxed, stated, tag_form, tagged

_ARROW = re.compile(r"\s?(?:→|⟶|⇒|⇌|⇄|-{1,2}>|={1,2}>|\\(?:long)?(?:right|left)*arrow|\\to\b|\\rightleftharpoons)\s?")
_LATEX_TEXT = re.compile(r"\\(?:ce|text(?:bf|it|rm)?|math(?:rm|bf)|mbox)\s?\{([^{}]*)\}")
_SUBSCRIPT = re.compile(r"_\{(\w{1,6})\}|_(?=\d)")
_DOLLARS = re.compile(r"\\[()\[\]]|\\?\$")
_AROUND = re.compile(r"\s*([^\w\s])\s*")
_COEFFICIENT = re.compile(r"(?<=\d)\s+(?=[A-Z(\[])")
_HYDRATE_DOT = str.maketrans("·•⋅∙", "****")
_ORDINARY_WORDS = re.compile(r"[A-Za-z]?[a-z]{2,}(?:[ ,'-]+[A-Za-z]?[a-z]+)*")
_NAMED = re.compile(
    r"\b(?:equation|formula|product|compound|molecule|smiles|name|result|solution)\b[^:\n=.]{0,40}?(?:\bis\b\s*:?|:)",
    re.IGNORECASE,
)
_LINE = re.compile(r"\s*([^\n]{0,1000})")
_REASON = re.compile(r",?\s+(?=(?:because|since|which)\b)")
_NEXT_SENTENCE = re.compile(r"\.\s+(?=[A-Z])|" + _REASON.pattern)
_EXPLANATION = re.compile(r"\s*\n\s*(?:\**\s?)?(?:explanation|reasoning|note|because)\b", re.IGNORECASE)


def normalise_filling(text: str) -> str:
    """A short answer without what does not matter: white space, markup, the notation of arrows, a final full stop.

    Case stays: in formulas and SMILES it tells carbon monoxide (CO) from cobalt (Co), aromatic c from aliphatic C.
    """
    text = unicodedata.normalize("NFKC", text).translate(_HYDRATE_DOT)
    for _ in range(2):  # commands within commands
        text = _LATEX_TEXT.sub(r"\1", text)
    text = _ARROW.sub("=", _SUBSCRIPT.sub(r"\1", _DOLLARS.sub("", text)))
    text = text.strip(" \t\n\"'`").removeprefix("**").removesuffix("**").rstrip(". \n")
    return _COEFFICIENT.sub("", _AROUND.sub(r"\1", " ".join(text.split()))).removesuffix("**").rstrip(".")


def same_filling(parsed: str, gold: str) -> bool:
    """Whether two short answers agree; the case of letters matters unless gold is made of ordinary words."""
    given, wanted = normalise_filling(parsed), normalise_filling(gold)
    if _ORDINARY_WORDS.fullmatch(wanted):
        given, wanted = given.casefold(), wanted.casefold()
    return given == wanted != ""


def _readings(text: str) -> Iterator[str]:
    """The answer as the first rule that applies reads it, then without the sentence or reason that may follow it."""
    content = tagged(text)
    if content is not None:
        yield last_boxed(content) or content
        return
    text = text[-LONGEST:].strip()
    if boxed := last_boxed(text):
        yield boxed
    elif line := next((line for _, line in stated(text)), None) or _after_noun(text):
        yield from (line, _NEXT_SENTENCE.split(line, maxsplit=1)[0])
    else:
        alone = _alone(text)
        yield from (alone, _REASON.split(alone, maxsplit=1)[0])


def _after_noun(text: str) -> str | None:
    lines = (_LINE.match(text, match.end()) for match in reversed(deque(_NAMED.finditer(text), maxlen=20)))
    return next((line.group(1).strip() for line in lines if line and line.group(1).strip()), None)


def _alone(text: str) -> str:
    explained = _EXPLANATION.search(text)
    if explained:
        return text[: explained.start()]
    head, _, last = text.rpartition("\n")
    return last if head.rstrip().endswith(":") else text


def score_filling(example: Example, text: str) -> Score:
    r"""Score a short free-text answer by equality with gold.

    Read is, in this order: the last ``<answer>`` that is not empty; the last ``\boxed{…}``; what follows the last
    "answer is" or "answer:", then the last "equation is", "formula:" and the like; the text before an explanation, or a
    last line that a colon introduces; the whole text. It must be gold and nothing else, up to white space, markup,
    arrows (→ and = alike), a final full stop and, for ordinary words, case. (The official scorer asks only that gold be
    somewhere in the response, so that a list of everything is right.)

    ``format_ok``: the answer alone on one line, or in the tag form.
    """
    gold = example.answer or ""
    readings = [" ".join(reading.split()) for reading in _readings(answer_part(text))]
    parsed = next((reading for reading in readings if same_filling(reading, gold)), readings[-1])
    alone = text.strip()
    format_ok = bool(tag_form(text)) or (bool(alone) and "\n" not in alone and parsed == " ".join(alone.split()))
    return Score(correct=same_filling(parsed, gold), parsed=parsed or None, format_ok=format_ok)
