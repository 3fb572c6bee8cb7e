"""Compares short free-text answers: formulas, equations, names."""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from collections.abc import Iterator

from cl_bench.tasks.base import Example, Score
from cl_bench.tasks.scoring.reading import (
    LONGEST,
    answer_part,
    boxes,
    last_boxed,
    stated,
    tag_form,
    tagged_answer,
    without_invisible,
)
from cl_bench.tasks.scoring.retractions import replacement

_ARROW = re.compile(r"\s?(?:→|⟶|⇒|⇌|⇄|-{1,2}>|={1,2}>|\\(?:long)?(?:right|left)*arrow|\\to\b|\\rightleftharpoons)\s?")
_LATEX_TEXT = re.compile(r"\\(?:ce|text(?:bf|it|rm)?|math(?:rm|bf)|mbox)\s?\{([^{}]*)\}")
_SUBSCRIPT = re.compile(r"_\{(\w{1,6})\}|_(?=\d)")
_DOLLARS = re.compile(r"\\[()\[\]]|\\?\$")
_AROUND = re.compile(r"\s*([^\w\s])\s*")
# Between a number and a formula or unit: 2 NaX, 5 kg.
_COEFFICIENT = re.compile(r"(?<=\d)\s+(?=[A-Za-zµμΩ°%(\[])")
_CHARGE = re.compile(r"\^\s?\{?\s?(\d{0,2}[+-])\s?\}?(?=$|[\s)\],;.=])")
_CHARACTERS = str.maketrans("·•⋅∙−", "****-")
_HYDRATE_DOT = re.compile(r"(?<=[A-Za-z0-9)\]])\.(?=\d{0,2}(?:H2O|NH3)\b)")
_ORDINARY_WORDS = re.compile(r"[A-Za-z]?[a-z]{2,}(?:[ ,'-]+[A-Za-z]?[a-z]+)*")
_NAMED = re.compile(
    r"\b(?:equation|formula|product|compound|molecule|smiles|name|result|solution)\b[^:\n=.]{0,40}?(?:\bis\b\s*:?|:)",
    re.IGNORECASE,
)
_LINE = re.compile(r"\s*([^\n]{0,1000})")
_REASON = re.compile(
    r",?\s+(?=(?:because|since|which|where)\b)|,\s+(?=(?:and )?not\b)|\s+(?=\([a-z][a-z ,-]{2,60}\)[.\s]*$)"
)
_NEXT_SENTENCE = re.compile(r"\.\s+(?=[A-Z])|" + _REASON.pattern)
_IT_IS = re.compile(r"(?:it|this|that)(?:'s|’s| is| must be)\s+(?:an?\s+|the\s+)?", re.IGNORECASE)
_EQUATION = re.compile(_ARROW.pattern + r"|\s=\s|\+\s?[\w()\[\]]{1,30}\s?=")
_PROSE = re.compile(r"\b(?:the|is|are|on|of|for|each|side|atoms?|left|right|count|so)\b|:", re.IGNORECASE)
_INTRODUCES = re.compile(r":\s*$|(?:\b[A-Za-z']{2,20},?\s){2}[\w()]{1,30}\.\s*$")
_EXPLANATION = re.compile(r"\s*\n\s*(?:\**\s?)?(?:explanation|reasoning|note|because)\b", re.IGNORECASE)


def normalise_filling(text: str) -> str:
    """A short answer without what does not matter: white space, markup, how arrows and charges are put, a full stop.

    Case stays: in formulas and SMILES it tells carbon monoxide (CO) from cobalt (Co), aromatic c from aliphatic C.
    """
    text = unicodedata.normalize("NFKC", without_invisible(text)).translate(_CHARACTERS)
    for _ in range(2):  # commands within commands
        text = _LATEX_TEXT.sub(r"\1", text)
    text = _CHARGE.sub(r"\1", _DOLLARS.sub("", text))
    text = _ARROW.sub("=", _SUBSCRIPT.sub(r"\1", text))
    text = text.strip(" \t\n\"'`").removeprefix("**").removesuffix("**").rstrip(". \n")
    text = _HYDRATE_DOT.sub("*", text)
    return _COEFFICIENT.sub("", _AROUND.sub(r"\1", " ".join(text.split()))).removesuffix("**").rstrip(".")


def same_filling(parsed: str, gold: str) -> bool:
    """Whether two short answers agree; the case of letters matters unless gold is made of ordinary words."""
    given, wanted = normalise_filling(parsed), normalise_filling(gold)
    if _ORDINARY_WORDS.fullmatch(wanted):
        given, wanted = given.casefold(), wanted.casefold()
    return given == wanted != ""


def _readings(text: str, equation: bool) -> Iterator[str]:
    """The answer as the first rule that applies reads it, then without the sentence or reason that may follow it.

    Args:
        text: The response.
        equation: Whether an equation is asked for; statements of the other kind are then no answer.
    """
    content = tagged_answer(text)
    if content is not None:
        yield last_boxed(content) or content
        return
    text = text[-LONGEST:].strip()
    place, answer = _named(text, equation)
    new = replacement(text, place)
    if new is not None:
        yield new
        return
    split = _REASON if answer is text else _NEXT_SENTENCE
    answer = _alone(text, equation) if answer is text else answer
    yield from (answer, split.split(answer, maxsplit=1)[0])
    if lead_in := _IT_IS.match(answer):
        rest = answer[lead_in.end() :]
        yield from (rest, split.split(rest, maxsplit=1)[0])


def _is_equation(text: str) -> bool:
    return _EQUATION.search(text) is not None


def _named(text: str, equation: bool) -> tuple[int, str]:
    """Place and content of the last box, else of the last statement of an answer; the text itself without either."""
    box = next((box for box in reversed(boxes(text)) if box.content), None)
    if box:
        return box.end - 1, box.content
    start, line = next(stated(text), (0, "")) or (0, "")
    if not line:
        start, line = _after_noun(text, equation)
    return (text.find(line, start), line) if line else (0, text)


def _after_noun(text: str, equation: bool) -> tuple[int, str]:
    for match in reversed(deque(_NAMED.finditer(text), maxlen=20)):
        line = _LINE.match(text, match.end())
        said = line.group(1).strip() if line else ""
        if line and said and _is_equation(said) == equation:
            return line.start(), said
    return 0, ""


def _alone(text: str, equation: bool) -> str:
    explained = _EXPLANATION.search(text)
    if explained:
        return text[: explained.start()]
    lines = [line.strip() for line in text.split("\n")]
    if equation:
        equations = [line for line in lines if _is_equation(line) and not _PROSE.search(line)]
        return equations[0] if len(set(map(normalise_filling, equations))) == 1 else text
    above = " ".join(lines[:-1]).strip()
    return lines[-1] if _INTRODUCES.search(above[-200:]) else text


def score_filling(example: Example, text: str) -> Score:
    r"""Score a short free-text answer by equality with gold.

    Read is, in this order: the last ``<answer>`` that is not empty; the last ``\boxed{…}``; what follows the last
    "answer is" or "answer:", then the last "equation is", "formula:" and the like, an equation where gold is one and
    none otherwise; the text before an explanation; the only line that is an equation, or a last line after a colon or a
    sentence; the whole text. It must be gold and nothing else, up to white space, markup,
    arrows (→ and = alike), charges (``Fe^{3+}`` is Fe3+), a final full stop and, for ordinary words, case; a reason, a
    name in parentheses and "not …" may follow it. What is taken back ("wait, no") is what replaces it, if anything
    does. (The official scorer asks only that gold be
    somewhere in the response, so that a list of everything is right.)

    ``format_ok``: the answer alone on one line, or in the tag form.
    """
    gold = example.answer or ""
    found = _readings(answer_part(text), _is_equation(unicodedata.normalize("NFKC", gold)))
    readings = [" ".join(reading.split()) for reading in found]
    parsed = next((reading for reading in readings if same_filling(reading, gold)), readings[-1])
    alone = text.strip()
    format_ok = bool(tag_form(text)) or (bool(alone) and "\n" not in alone and parsed == " ".join(alone.split()))
    return Score(correct=same_filling(parsed, gold), parsed=parsed or None, format_ok=format_ok)
