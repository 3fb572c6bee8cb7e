"""Word n-grams of evaluated questions as sorted hashes, and which of them stand in training texts."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cl_bench.harness.measure.contamination_wholes import WholeQuestions

GRAM = 13
"""Words of an n-gram, as for GPT-3 (2005.14165, appendix C)."""
COMMON_SHARE = 0.01
COMMON_ROWS = (5, 10)
TELLING_WORDS = 8
"""Words of two characters or more that an n-gram must have: rows of sites, bases or digits are alike by chance."""
_ON_BOTH_SIDES = 2
_BATCH_WORDS = 500_000
_UNKNOWN = -1
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)

Hashes = NDArray[np.uint64]
Indices = NDArray[np.int64]


def common_above(rows: int) -> int:
    """What stands in rows of more different questions than this is boilerplate.

    One per cent of the rows, but at least five and at most ten: GPT-3's authors ignored 13-grams that matched more than
    ten training documents (2005.14165, appendix C), and small sets show the same templates in fewer rows.
    """
    least, most = COMMON_ROWS
    return min(most, max(least, int(COMMON_SHARE * rows)))


class Vocabulary(dict[str, int]):
    """Numbers of the words of all evaluated questions; no other word has one, for it can be in no n-gram of theirs.

    Words of one character have even numbers, longer ones odd numbers.
    """

    def __missing__(self, word: str) -> int:
        """A new number for a new word."""
        number = self[word] = 2 * len(self) + (len(word) > 1)
        return number

    def learn(self, words: Iterable[str]) -> list[int]:
        """Numbers of words; new words get new ones."""
        return [self[word] for word in words]

    def numbers(self, words: Iterable[str]) -> list[int]:
        """Numbers of words; -1 for those that no evaluated question has."""
        find = self.get
        return [find(word, _UNKNOWN) for word in words]


class Grams(NamedTuple):
    """N-grams in the order of their texts.

    Attributes:
        hashes: Their hashes.
        owners: Owner of the text that each is from.
        starts: Where each begins among ``words``; n-grams of two texts never overlap.
        texts: Number of the text that each is from.
        words: Word numbers of all texts, -1 after each text.
        begins: Where each text begins among them, and where they end.
    """

    hashes: Hashes
    owners: Indices
    starts: Indices
    texts: Indices
    words: Indices
    begins: Indices


class Texts:
    """Texts as word numbers, one after another."""

    def __init__(self) -> None:
        """Start empty."""
        self._numbers, self._owners, self._lengths = array("q"), array("q"), array("q")

    def __len__(self) -> int:
        """Words."""
        return len(self._numbers)

    def add(self, numbers: Sequence[int], owner: int) -> None:
        """Add a text; n-grams do not reach from one text into the next."""
        if len(numbers) >= GRAM:
            self._numbers.extend(numbers)
            self._numbers.append(_UNKNOWN)
            self._owners.append(owner)
            self._lengths.append(len(numbers) + 1)

    def grams(self) -> Grams:
        """The n-grams of known words that have enough telling words."""
        numbers = np.asarray(self._numbers, dtype=np.int64)
        lengths = np.asarray(self._lengths, dtype=np.int64)
        texts = np.repeat(np.arange(len(lengths)), lengths)
        count = max(0, len(numbers) - GRAM + 1)
        wanted = _within_gram(numbers == _UNKNOWN) == 0
        wanted &= _within_gram(numbers % 2 == 1) >= TELLING_WORDS
        mixed = _mixed(numbers)
        hashes: Hashes = np.zeros(count, dtype=np.uint64)
        for place in range(GRAM):
            hashes = hashes * _MULTIPLIER + mixed[place : place + count]
        starts = np.flatnonzero(wanted)
        owners = np.asarray(self._owners, dtype=np.int64)[texts[starts]]
        begins = np.concatenate([[0], np.cumsum(lengths)])
        return Grams(hashes[starts], owners, starts, texts[starts], numbers, begins)


class Found(NamedTuple):
    """What one part of the training data has of a column.

    Attributes:
        pairs: (n-gram, owner), each once.
        wholes: (number of a question, owner) where the whole question stands in a text of the owner's.
    """

    pairs: Indices
    wholes: frozenset[tuple[int, int]]


def _within_gram(words: NDArray[np.bool_]) -> Indices:
    """How many of the words that begin at each place, as many as an n-gram has, are marked."""
    marked = np.concatenate([[0], np.cumsum(words)])
    return np.asarray(marked[GRAM:] - marked[:-GRAM], dtype=np.int64)


def _mixed(numbers: Indices) -> Hashes:
    """Word numbers spread over 64 bits (the finaliser of splitmix64): equal hashes of unequal n-grams do not happen."""
    found = (numbers.astype(np.uint64) + np.uint64(1)) * _MULTIPLIER
    found = (found ^ (found >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    found = (found ^ (found >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return found ^ (found >> np.uint64(31))


class ColumnGrams:
    """The n-grams of one column's questions.

    Attributes:
        wholes: The questions as a whole.
    """

    def __init__(self, texts: Texts, questions: Sequence[int]) -> None:
        """Index.

        Args:
            texts: The questions; the owner of a text is the item's place in the column, each has one text at most.
            questions: Number of each item's question: items that ask the same have the same.
        """
        grams = texts.grams()
        self._items, self._starts = grams.owners, grams.starts
        self._known, places = np.unique(grams.hashes, return_inverse=True)
        self._places = places.astype(np.int64)
        asked = _pairs(self._places, np.asarray(questions, dtype=np.int64)[self._items])
        self._asked = np.bincount(asked[:, 0], minlength=len(self._known))
        self._common = common_above(len(set(questions)))
        self.wholes = WholeQuestions(grams, self._places, self._asked)

    def found_in(self, grams: Grams) -> Found:
        """What of the column stands in training texts."""
        if not len(self._known):
            return Found(np.empty((0, 2), dtype=np.int64), frozenset())
        places = np.searchsorted(self._known, grams.hashes).clip(max=len(self._known) - 1)
        hits = np.flatnonzero(self._known[places] == grams.hashes)
        wholes = self.wholes.found_in(grams, hits, places[hits])
        return Found(_pairs(places[hits], grams.owners[hits]), frozenset(wholes))

    def items_with(self, found: Sequence[Found], rows: int) -> list[int]:
        """Items that share an n-gram with the training texts, boilerplate cut out of their questions before.

        Whole questions are not among what is looked at here: see ``Found.wholes``.

        An n-gram is boilerplate where it stands in too many training rows of different questions, or in too many
        different questions of the column (``common_above``), or in two of both, as every template does. No word of it
        counts for another n-gram: else its end and the first words of a question would be taken for a repeat.

        Args:
            found: What ``found_in`` gave for all parts of the training data; an owner is a training question.
            rows: Number of training questions.
        """
        pairs = _unique(np.concatenate([np.empty((0, 2), dtype=np.int64), *(part.pairs for part in found)]))
        trained = np.bincount(pairs[:, 0], minlength=len(self._known))
        shared = (trained >= _ON_BOTH_SIDES) & (self._asked >= _ON_BOTH_SIDES)
        boilerplate = shared | (trained > common_above(rows)) | (self._asked > self._common)
        hit = (trained > 0)[self._places] & ~self._touched(boilerplate[self._places])
        return [int(item) for item in np.unique(self._items[hit])]

    def _touched(self, boilerplate: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which n-grams, in the order of the texts, have a word in common with one that is boilerplate."""
        first = np.searchsorted(self._starts, self._starts - GRAM, side="right")
        last = np.searchsorted(self._starts, self._starts + GRAM, side="left")
        before = np.concatenate([[0], np.cumsum(boilerplate)])
        return np.asarray(before[last] > before[first])


def batches(texts: Iterable[tuple[Sequence[int], int]]) -> Iterator[Grams]:
    """N-grams of many texts (word numbers, owner), some hundred thousand words at a time."""
    batch = Texts()
    for numbers, owner in texts:
        batch.add(numbers, owner)
        if len(batch) >= _BATCH_WORDS:
            yield batch.grams()
            batch = Texts()
    yield batch.grams()


def _pairs(first: Indices, second: Indices) -> Indices:
    return _unique(np.stack([first, second], axis=1))


def _unique(pairs: Indices) -> Indices:
    """Each row of an (n, 2) array of small non-negative numbers once, in order."""
    if not len(pairs):
        return pairs
    width = int(pairs[:, 1].max()) + 1
    # Several times as fast as np.unique, which hashes.
    joined = np.sort(pairs[:, 0] * width + pairs[:, 1])
    joined = joined[np.concatenate([[True], joined[1:] != joined[:-1]])]
    return np.stack([joined // width, joined % width], axis=1)
