"""Response styles: a worked answer in different wordings and delimiters, and how each is read back."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Order = Literal["reasoning-first", "answer-first", "answer-only", "longer"]
Distance = Literal["LO", "MID", "HI"]
DISTANCES: tuple[Distance, ...] = ("LO", "MID", "HI")
ORDERS: tuple[Order, ...] = ("reasoning-first", "answer-first", "answer-only", "longer")


@dataclass(frozen=True)
class Style:
    """A template of a worked answer.

    Attributes:
        name: Name of the style.
        template: Text with ``{reasoning}`` and ``{answer}``; the reasoning may be absent or appear twice.
    """

    name: str
    template: str

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Expression that a text in this style, and nothing around it, matches."""
        seen: set[str] = set()
        parts: list[str] = []
        for piece in re.split(r"(\{reasoning\}|\{answer\})", self.template):
            name = piece[1:-1]
            if piece not in ("{reasoning}", "{answer}"):
                parts.append(re.escape(piece))
            elif name in seen:
                parts.append(f"(?P={name})")
            else:
                seen.add(name)
                parts.append(f"(?P<{name}>[^\\n]+?)")
        return re.compile("".join(parts))

    def render(self, reasoning: str, answer: str) -> str:
        """The worked answer in this style."""
        # Not str.format: answers may hold braces (tool calls).
        return self.template.replace("{reasoning}", reasoning).replace("{answer}", answer)


_TEMPLATES: dict[str, dict[Order, str]] = {
    "HOUSE": {
        "reasoning-first": "We note {reasoning}. So the answer is {answer}.",
        "answer-first": "The answer is {answer}. So we note {reasoning}.",
        "answer-only": "So the answer is {answer}.",
        "longer": "We note {reasoning}. Then again we note {reasoning}. So now the answer is {answer}.",
    },
    "ALT": {
        "reasoning-first": "Known here: {reasoning}. Hence we obtain {answer}.",
        "answer-first": "We obtain {answer}. Known here: {reasoning}.",
        "answer-only": "Hence we obtain {answer}.",
        "longer": "Known here: {reasoning}. And still known: {reasoning}. Hence now we obtain {answer}.",
    },
    "LO": {
        "reasoning-first": "We see {reasoning}. So the result is {answer}.",
        "answer-first": "The result is {answer}. So we see {reasoning}.",
        "answer-only": "So the result is {answer}.",
        "longer": "We see {reasoning}. Then again we see {reasoning}. So now the result is {answer}.",
    },
    "MID": {
        "reasoning-first": "As given {reasoning}; thus the value is {answer}.",
        "answer-first": "The value is {answer}; thus as given {reasoning}.",
        "answer-only": "Thus the value is {answer}.",
        "longer": "As given {reasoning}; and once more given {reasoning}; thus now the value is {answer}.",
    },
    "HI": {
        "reasoning-first": "## fact: {reasoning} ==> output <- {answer} ;; end",
        "answer-first": "## output <- {answer} <== fact: {reasoning} ;; end",
        "answer-only": "## output <- {answer} ;; end",
        "longer": "## fact: {reasoning} ++ check fact: {reasoning} ==> final output <- {answer} ;; end",
    },
}

_SUFFIX: dict[Order, str] = {
    "reasoning-first": "",
    "answer-first": "-answer-first",
    "answer-only": "-answer-only",
    "longer": "-longer",
}
STYLES: dict[str, Style] = {
    family + _SUFFIX[order]: Style(family + _SUFFIX[order], template)
    for family, orders in _TEMPLATES.items()
    for order, template in orders.items()
}
"""Every declared style by name: ``HOUSE``, ``HOUSE-answer-first``, ``HI``, ``HI-longer`` ..."""
BARE = "BARE"
STYLES[BARE] = Style(BARE, "{answer}")
HOUSE = "HOUSE"
"""Style of the responses of lab-s, lab-m, lab-l and lab-xl."""
ALT_HOUSE = "ALT"
"""Style of the responses of lab-alt."""
_BARE_LIMIT = 64


def style_name(family: str, order: Order = "reasoning-first") -> str:
    """Name of a family's style in the given order of its parts."""
    return family + _SUFFIX[order]


def render(style: str, reasoning: str, answer: str) -> str:
    """The worked answer in the style of that name. Raises KeyError for an undeclared name."""
    return STYLES[style].render(reasoning, answer)


def match_style(text: str) -> tuple[str, str] | None:
    """Name of the declared style the whole text is in and its answer, or None; bare answers are no style here."""
    stripped = text.strip()
    for name, style in STYLES.items():
        if name != BARE and (found := style.pattern.fullmatch(stripped)):
            return name, found["answer"].strip()
    return None


# What announces the answer in each style, tried on texts that are in no style entirely.
_ANNOUNCED = tuple(
    re.compile(expression)
    for expression in (
        r"(?:[Tt]he )(?:answer|result|value) is (?P<answer>[^\n]+?)(?:[.;](?:\s|$)|$)",
        r"[Ww]e obtain (?P<answer>[^\n]+?)(?:\.(?:\s|$)|$)",
        r"output <- (?P<answer>[^\n]+?) (?:;;|<==)",
    )
)


def parse_answer(text: str) -> str | None:
    """The final answer of a response in any declared style, or None.

    A text entirely in one style is read by that style. Otherwise the last announced answer counts, and a short single
    line without any announcement counts as a bare answer.
    """
    if matched := match_style(text):
        return matched[1]
    found = [(m.start(), m["answer"].strip()) for expression in _ANNOUNCED for m in expression.finditer(text)]
    if found:
        return max(found)[1]
    bare = text.strip()
    if not bare or "\n" in bare or len(bare) > _BARE_LIMIT:
        return None
    return bare.removesuffix(".")


def format_ok(text: str) -> bool:
    """Whether the text is entirely in one declared style (end delimiter included) with a non-empty answer."""
    return match_style(text) is not None
