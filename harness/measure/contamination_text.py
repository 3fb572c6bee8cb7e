"""What two texts have in common when only their dress differs: normal forms, words, sentences, stems and options."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_uppercase, punctuation

_ENDS = " .,;:!?…\"'`*_#“”‘’«»"
_NO_WORD = re.compile(r"[^\w\s]|_")
_ASCII_PUNCTUATION = str.maketrans("", "", punctuation)
_SPACE_AT_SIGN = re.compile(r" (?:(?=[^\w\s])|(?<=[^\w\s] ))")
_HEAD = re.compile(r"^[*#\"'> ]*(?:question|q) ?\d* ?[:.)][* ]*")
_TAIL = re.compile(r"(?:^|(?<=[^\w]))(?:answer|a)[* ]*:[* ]*$")
# Blanks after the end of a line, sentence, clause or quotation, or before a quotation.
_BETWEEN_SENTENCES = re.compile(
    r"\s(?:(?<=[\r\n])|(?<=[.?!:;…\"”»]\s)|(?<=[.?!:;…]['’)]\s)|(?=[\"“«]))\s*"
)  # fmt: skip
_LABEL = re.compile(r"(?:^|(?<=\s))(\(?)([A-Z])[.:)][ \t]+(?=\S)", re.MULTILINE)
_OPTIONS_HEAD = re.compile(r"\b(?:answer )?(?:options|choices)\s*:", re.IGNORECASE)
_INLINE_AT_LEAST = 3
"""Labels ``(A) … (B) …`` within a line are options from this number on."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question taken apart.

    Attributes:
        stem: The question without its options.
        options: Normal forms of the options; None where there are fewer than two.
    """

    stem: str
    options: frozenset[str] | None


def normal_form(text: str) -> str:
    """A text without what a copy may change: case, white space, punctuation at the ends, "Question:" and "Answer:".

    White space between words is one blank; beside a sign there is none, so that ``f( x )`` and ``f(x)`` are equal.
    """
    found = " ".join(_folded(text).split())
    head = _HEAD.match(found)
    if head:
        found = found[head.end() :]
    if found.endswith((":", "*")):
        found = _TAIL.sub("", found)
    return _SPACE_AT_SIGN.sub("", found).strip(_ENDS)


def words(text: str) -> list[str]:
    """Words as in the decontamination of GPT-3 (2005.14165, appendix C): lower case, punctuation deleted."""
    folded = _folded(text)
    return (folded.translate(_ASCII_PUNCTUATION) if folded.isascii() else _NO_WORD.sub("", folded)).split()


def sentences(text: str) -> list[str]:
    """Normal forms of a text's lines, sentences, clauses after a colon, and quotations, in order."""
    forms = (normal_form(piece) for piece in _BETWEEN_SENTENCES.split(text))
    return [form for form in forms if form]


def first_sentence(text: str) -> str:
    """The first of ``sentences``; empty where there is none."""
    for piece in _BETWEEN_SENTENCES.split(text, maxsplit=1)[:1]:
        form = normal_form(piece)
        if form:
            return form
    return next(iter(sentences(text)), "")


def take_apart(question: str, choices: Sequence[str] = ()) -> Asked:
    """A question and its options, whether the options stand apart, in the text, or both.

    In the text they are recognised after labels that begin lines (``A: …``, ``B. …``), after labels in brackets
    (``(A) … (B) … (C) …``), and, where they are known, in any order after ``Options:`` or ``Choices:``.

    Args:
        question: Text of the question.
        choices: Its options where they are known; letters alone say nothing.
    """
    known = None if _are_letters(choices) else option_set(choices)
    stem, options = _labelled(question, known) or _headed(question, known) or (question, known)
    return Asked(stem, options)


def option_set(options: Sequence[str]) -> frozenset[str] | None:
    """Normal forms of options in no order, without labels; None where fewer than two differ."""
    labels = [f"{letter}{sign}" for letter in ascii_uppercase[:1] for sign in ".:)"]
    if options and options[0].lstrip("( ")[:2] in labels:
        options = [_LABEL.sub("", option.strip(), count=1) for option in options]
    forms = frozenset(form for form in map(normal_form, options) if form)
    return forms if len(forms) > 1 else None


def _folded(text: str) -> str:
    # The compatibility form turns full-width letters, ligatures and odd blanks into plain ones.
    return (text if text.isascii() else unicodedata.normalize("NFKC", text)).casefold()


def _are_letters(choices: Sequence[str]) -> bool:
    stripped = [choice.strip("(). ") for choice in choices]
    return stripped == list(ascii_uppercase[: len(stripped)])


def _labelled(text: str, known: frozenset[str] | None) -> tuple[str, frozenset[str] | None] | None:
    run = _last_run(list(_LABEL.finditer(text))) if any(f"A{sign}" in text for sign in ".:)") else []
    if not run:
        return None
    at_lines = all(_begins_line(text, match.start()) for match in run)
    ends = [*(match.start() for match in run[1:]), text.find("\n", run[-1].end()) if at_lines else len(text)]
    ends[-1] = len(text) if ends[-1] < 0 else ends[-1]
    found = option_set([text[match.end() : end] for match, end in zip(run, ends, strict=True)])
    bracketed = len(run) >= _INLINE_AT_LEAST and all(match[1] for match in run)
    if found is None or not (at_lines or bracketed or found == known):
        return None
    return _without_head(text[: run[0].start()]), known or found


def _last_run(labels: Sequence[re.Match[str]]) -> list[re.Match[str]]:
    """The last labels A, B, … that follow one another; empty where there are fewer than two."""
    letters = "".join(match[2] for match in labels)
    start = letters.rfind("AB")
    if start < 0:
        return []
    length = 2
    while letters[start + length : start + length + 1] == ascii_uppercase[length : length + 1] != "":
        length += 1
    return list(labels[start : start + length])


def _begins_line(text: str, start: int) -> bool:
    return not text[text.rfind("\n", 0, start) + 1 : start].strip()


def _headed(text: str, known: frozenset[str] | None) -> tuple[str, frozenset[str] | None] | None:
    lowered = text.lower()
    heads = list(_OPTIONS_HEAD.finditer(text)) if "options" in lowered or "choices" in lowered else []
    if known is None or not heads:
        return None
    tail = normal_form(text[heads[-1].end() :])
    return (text[: heads[-1].start()], known) if all(option in tail for option in known) else None


def _without_head(stem: str) -> str:
    heads = list(_OPTIONS_HEAD.finditer(stem))
    return stem[: heads[-1].start()] if heads and not stem[heads[-1].end() :].strip() else stem
