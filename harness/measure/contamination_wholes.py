"""Whole questions, word for word, within training texts: what a template never has, however often it comes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from cl_bench.harness.measure.contamination_grams import Grams, Indices


class _Whole(NamedTuple):
    """A question as it is compared.

    Attributes:
        number: Its number.
        words: Numbers of its words.
        before: Words before the n-gram by which it is found.
    """

    number: int
    words: bytes
    before: int


class WholeQuestions:
    """The questions of one column, found by the n-gram of each that fewest others have.

    Attributes:
        items: By the number of a question: places of the items that ask it.
    """

    def __init__(self, grams: Grams, places: Indices, asked: Indices) -> None:
        """Index.

        Args:
            grams: N-grams of the questions; the owner of a text is the item's place in the column.
            places: Place of each among the column's n-grams.
            asked: Number of different questions with each of the column's n-grams.
        """
        self._by_gram: dict[int, list[_Whole]] = {}
        self.items: list[list[int]] = []
        numbers: dict[bytes, int] = {}
        own = _rarest(grams, asked[places])
        begins, ends = grams.begins[grams.texts[own]], grams.begins[grams.texts[own] + 1] - 1
        columns = (grams.owners[own], places[own], begins, ends, grams.starts[own] - begins)
        for item, place, begin, end, before in zip(*(column.tolist() for column in columns), strict=True):
            words = grams.words[begin:end].tobytes()
            number = numbers.setdefault(words, len(numbers))
            if number == len(self.items):
                self.items.append([])
                self._by_gram.setdefault(place, []).append(_Whole(number, words, before))
            self.items[number].append(item)
        self._searched = np.zeros(len(asked), dtype=np.bool_)
        self._searched[list(self._by_gram)] = True

    def found_in(self, grams: Grams, hits: Indices, places: Indices) -> Iterator[tuple[int, int]]:
        """Numbers of the questions that stand in a text as a whole, each with the text's owner.

        Args:
            grams: N-grams of training texts.
            hits: Which of them the column has.
            places: Place of each of those among the column's n-grams.
        """
        size = grams.words.itemsize
        searched = self._searched[places]
        for hit, place in zip(hits[searched].tolist(), places[searched].tolist(), strict=True):
            for whole in self._by_gram[place]:
                begin = int(grams.starts[hit]) - whole.before
                if begin >= 0 and grams.words[begin : begin + len(whole.words) // size].tobytes() == whole.words:
                    yield whole.number, int(grams.owners[hit])


def _rarest(grams: Grams, asked: Indices) -> Indices:
    """Of each text that has n-grams, the one that fewest questions have."""
    if not len(asked):
        return np.empty(0, dtype=np.int64)
    firsts = np.flatnonzero(np.diff(grams.texts, prepend=-1))
    fewest = np.minimum.reduceat(asked, firsts)
    rare = np.flatnonzero(asked == np.repeat(fewest, np.diff(firsts, append=len(asked))))
    return rare[np.diff(grams.texts[rare], prepend=-1) > 0]
