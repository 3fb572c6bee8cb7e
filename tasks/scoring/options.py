"""The options of a multiple-choice question, and which of them a piece of text names by its words."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cl_bench.tasks.scoring.reading import BOX_CLOSE, BOX_OPEN, plain

LETTERS = "ABCDEFGHIJ"
"""Letters of options: as many as the widest question has (MMLU-Pro, ten)."""

_ARTICLE = re.compile(r"(?:the|an?)\s+", re.IGNORECASE)
# What may follow an option's text for it to be the whole answer: the end, punctuation, a reason.
_ENDS = re.compile(
    rf"\s*$|\s*[,;\n{BOX_CLOSE}]|\.(?:\s|$)|\s+(?:\(|[-–—]\s|(?:because|since|as|which|due|so|and not|not|is)\b)"
)
_NUMBER = re.compile(r"[-+−]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
# After a number: one or two words that can be its unit, and nothing else.
_UNIT = re.compile(
    r"\s?[%°]?\s?(?:(?!(?:or|and|to|not|but|is|are|was|for|than|if)\b)(?<=\s)[^\s\d.,;()][^\s,;()]{0,14}\s?){0,2}\.?\s*(?:$|\n)"
)
_QUANTITY = re.compile(
    r"(?:[≈~]\s?)?([-+−]?\d[\d,]*(?:\.\d+)?)\s?([^\s\d.,;()][^\s,;()]{0,14}(?: [^\s\d,;()]{1,14})?)?"
)
_MARKS = re.compile(r"[ \"'(:.)=\-–—]{0,4}")
_LINE_ENDS = re.compile(rf"\s?[.)\"']{{0,2}}\s?(?:$|[\n{BOX_CLOSE}])")
_EQUATED = re.compile(r"\(?([A-J])\)?\s?=\s?(.+)")
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_ORDINAL = re.compile(
    rf"(?:the\s)?({'|'.join(_ORDINALS)}|last)\s(?:option|choice|answer|alternative|one)"
    rf"(?=[.!]?\s?(?:$|[\n,;{BOX_CLOSE}]))",
    re.IGNORECASE,
)


def bare(text: str) -> str:
    """The text without the quotes, box, spaces and full stop around it."""
    return text.strip(" \n\"'" + BOX_OPEN + BOX_CLOSE).rstrip(". \n")


def _complete(own: str, start: str) -> bool:
    if _ENDS.match(start, len(own)):
        return True
    return _NUMBER.fullmatch(own) is not None and _UNIT.match(start, len(own)) is not None


@dataclass(frozen=True, slots=True)
class Options:
    """Options of one question.

    Attributes:
        letters: The letters that are options.
        texts: Their texts as ``plain`` gives them, in order; empty where they are not known.
    """

    letters: str
    texts: tuple[str, ...] = ()

    @classmethod
    def of(cls, count: int, choices: Sequence[str] = ()) -> Options:
        """Options of a question by their number, with their texts where they are known."""
        letters = LETTERS[:count]
        texts = (bare(plain(choice)) for choice in choices[:count])
        # An option that is itself a letter is named by its own letter only.
        return cls(letters, tuple("" if len(text) == 1 and text.upper() in letters else text for text in texts))

    @property
    def reach(self) -> int:
        """How many characters of a text are enough to compare it with every option."""
        return max(map(len, self.texts), default=0) + 40

    def counted(self, text: str, start: int) -> tuple[str | None, int] | None:
        """Letter of "the second option" at ``start`` (None: there are not so many), and its end; None elsewhere."""
        match = _ORDINAL.match(text, start)
        if match is None:
            return None
        word = match.group(1).lower()
        index = len(self.letters) - 1 if word == "last" else _ORDINALS.index(word)
        return self.letters[index] if index < len(self.letters) else None, match.end()

    def equated(self, text: str) -> str | None:
        """The letter in "B = 18.02", where that is its option's text."""
        match = _EQUATED.fullmatch(text)
        return match.group(1) if match and self.named(match.group(2)) == match.group(1) else None

    def contradicts(self, letter: str, text: str, start: int) -> bool:
        """Whether exactly the text of another option stands at ``start``, to the end of the line, after the letter."""
        marks = _MARKS.match(text, start)
        if marks is None or marks.end() == start or self.own_at(letter, text, start):
            return False
        others = (own for other, own in zip(self.letters, self.texts, strict=False) if own and other != letter)
        for own in others:
            end = marks.end() + len(own)
            if text[marks.end() : end].casefold() == own.casefold() and _LINE_ENDS.match(text, end):
                return True
        return False

    def is_letter(self, letter: str) -> bool:
        """Whether the text of that letter's option is itself a letter, or empty."""
        index = self.letters.find(letter)
        return 0 <= index < len(self.texts) and not self.texts[index]

    def named(self, text: str) -> str | None:
        """Letter of the one option whose text this is, or None; case counts only where it tells options apart."""
        wanted = bare(text)
        for candidate in dict.fromkeys((wanted, _ARTICLE.sub("", wanted, count=1))):
            if letter := self._only(candidate, str) or self._only(candidate, str.casefold):
                return letter
        return self._measured(wanted)

    def _measured(self, wanted: str) -> str | None:
        """Letter of the one option with this number, where the text or all such options have no unit."""
        given = _QUANTITY.fullmatch(wanted)
        if given is None:
            return None
        pairs = zip(self.letters, map(_QUANTITY.fullmatch, self.texts), strict=False)
        same = [(letter, own) for letter, own in pairs if own and own.group(1) == given.group(1)]
        if len(same) != 1 or (given.group(2) and same[0][1].group(2)):
            return None
        return same[0][0]

    def begins(self, text: str) -> str | None:
        """Letter of the one option whose text, the longest that fits, begins this text and is a whole answer in it."""
        start = text.lstrip(" \"'" + BOX_OPEN)
        for fold in (str, str.casefold):
            folded = fold(start)
            fits = [own for own in self.texts if own and folded.startswith(fold(own)) and _complete(own, start)]
            if fits:
                return self._only(max(fits, key=len), fold)
        return None

    def own_at(self, letter: str, text: str, start: int) -> bool:
        """Whether the text of that letter's option stands at ``start``, punctuation before it aside."""
        return self.own_end(letter, text, start) is not None

    def own_end(self, letter: str, text: str, start: int) -> int | None:
        """Where the text of that letter's option ends, if it stands at ``start`` (after punctuation); else None."""
        index = self.letters.find(letter)
        if not 0 <= index < len(self.texts) or not self.texts[index]:
            return None
        own = self.texts[index].casefold()
        marks = _MARKS.match(text, start)
        for begin in range(start, (marks.end() if marks else start) + 1):
            end = begin + len(own)
            inside_word = own[-1].isalnum() and text[end : end + 1].isalnum()
            if not inside_word and text[begin:end].casefold() == own:
                return end
        return None

    def _only(self, wanted: str, fold: Callable[[str], str]) -> str | None:
        pairs = zip(self.letters, self.texts, strict=False)
        found = [letter for letter, own in pairs if own and fold(own) == fold(wanted)]
        return found[0] if len(found) == 1 else None
