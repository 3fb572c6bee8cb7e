"""One evaluation set in comparable form, what a training set could share with it, and which items it flags."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain
from typing import Any

from cl_bench.harness.measure.contamination import KINDS, Item, TrainingRow
from cl_bench.harness.measure.contamination_choices import Options, OptionSets, Stem, same_options
from cl_bench.harness.measure.contamination_grams import (
    GRAM,
    ColumnGrams,
    Found,
    Texts,
    Vocabulary,
    batches,
    common_above,
)
from cl_bench.harness.measure.contamination_text import first_sentence, normal_form, sentences, take_apart, words

Place = tuple[str, int]
"""Name of a column and place of an item in it."""
_SHORTEST_PASSAGE = 3
_TELLING_PASSAGE = 8
"""A question of so many words that stands in many rows is a repeat; a shorter one may be a turn of phrase."""
_MOST_SETS = {True: 2, False: 10}
"""Most sets of options that a stem of fewer than 13 words (True), or a longer one, comes with as one question."""


class Column:
    """One evaluation set."""

    def __init__(self, items: Sequence[Item], vocabulary: Vocabulary) -> None:
        """Take the items apart, once.

        Args:
            items: The items.
            vocabulary: Of all evaluation sets; new words are added.
        """
        self.ids = [item.id for item in items]
        self.forms: dict[str, list[int]] = {}
        self.beginnings: dict[str, list[int]] = {}
        self.stems: list[Stem] = []
        self._options: list[Options | None] = []
        self._sets = OptionSets()
        texts, questions = Texts(), []
        numbers: dict[Any, int] = {}
        for place, item in enumerate(items):
            asked = take_apart(item.question, item.choices)
            stem = Stem(asked.stem)
            self.stems.append(stem)
            self._options.append(asked.options)
            for form in {stem.form, normal_form(item.question)} - {""}:
                self.forms.setdefault(form, []).append(place)
            if asked.options is not None:
                self._sets.add(asked.options, stem)
            questions.append(numbers.setdefault((stem.form, asked.options), len(numbers)))
            found = words(asked.stem)
            texts.add(vocabulary.learn(found), place)
            if len(found) >= (_SHORTEST_PASSAGE if asked.options is None else GRAM):
                self.beginnings.setdefault(first_sentence(asked.stem), []).append(place)
        self.grams = ColumnGrams(texts, questions)

    def flagged(self, trained: Trained, name: str) -> dict[str, tuple[str, ...]]:
        """Ids of the items that a training set has, by kind, in the column's order.

        Args:
            trained: The training set.
            name: The column's name.
        """
        wholes = self._wholes(trained.grams[name])
        bare = self._bare(trained, name, wholes)
        whole = (place for place in wholes if self.stems[place].form not in bare)
        places = {
            "exact": self._exact(trained, name, bare),
            "ngram": chain(self.grams.items_with(trained.grams[name], trained.questions), whole),
            "choices": self._choices(trained),
        }
        return {kind: tuple(self.ids[place] for place in sorted(set(places[kind]))) for kind in KINDS}

    def _wholes(self, found: Sequence[Found]) -> dict[int, set[int]]:
        """Items whose whole question stands in a training text, word for word, with the numbers of the rows."""
        rows: dict[int, set[int]] = {}
        for number, row in chain.from_iterable(part.wholes for part in found):
            rows.setdefault(number, set()).add(row)
        return {place: held for number, held in rows.items() for place in self.grams.wholes.items[number]}

    def _exact(self, trained: Trained, name: str, bare: Set[str]) -> Iterator[int]:
        limit = common_above(trained.questions)
        for place, rows in trained.passages[name].items():
            stem = self.stems[place]
            if stem.form not in bare and (len(rows) <= limit or len(stem.words) >= _TELLING_PASSAGE):
                yield place
        for form, others in trained.asked.items():
            for place in self.forms.get(form, ()):
                own = self._options[place]
                if form not in bare or own is None or any(other and same_options(own, other) for other in others):
                    yield place

    def _bare(self, trained: Trained, name: str, wholes: Mapping[int, Set[int]]) -> set[str]:
        """Stems that come with so many sets of options that they ask nothing without them."""
        bare = set()
        for form, places in self.forms.items():
            sets = {self._options[place] for place in places} | trained.asked.get(form, set())
            found = (rows[place] for rows in (trained.passages[name], wholes) for place in places if place in rows)
            holders = set[int]().union(*found)
            if holders:
                sets |= trained.options_with(self.stems[places[0]], holders)
            if len(sets - {None}) > _MOST_SETS[len(form.split()) < GRAM]:
                bare.add(form)
        return bare

    def _choices(self, trained: Trained) -> Iterator[int]:
        for place, own in enumerate(self._options):
            stem = self.stems[place]
            if own is not None and trained.sets.ask(own, stem, self._sets.naming(own, stem)):
                yield place


class Evaluated:
    """All evaluation sets, with what a walk through training rows asks them.

    Attributes:
        vocabulary: Words of their questions.
        columns: The sets by name.
        forms: Normal forms of their questions.
        beginnings: First sentences of the questions that are looked for within texts.
    """

    def __init__(self, items: Mapping[str, Sequence[Item]]) -> None:
        """Take the items by column."""
        self.vocabulary = Vocabulary()
        self.columns = {name: Column(found, self.vocabulary) for name, found in items.items()}
        self.forms = {form for column in self.columns.values() for form in column.forms}
        self.beginnings = {beginning for column in self.columns.values() for beginning in column.beginnings}
        self._passages: dict[str, dict[int, dict[tuple[str, ...], list[Place]]]] = {}

    def beginning_with(self, sentence: str) -> Mapping[int, Mapping[tuple[str, ...], Sequence[Place]]]:
        """Questions looked for within texts that begin with a sentence, as sentences, by their number."""
        if sentence not in self._passages:
            found = self._passages[sentence] = {}
            for name, column in self.columns.items():
                for place in column.beginnings.get(sentence, ()):
                    passage = tuple(column.stems[place].sentences)
                    found.setdefault(len(passage), {}).setdefault(passage, []).append((name, place))
        return self._passages[sentence]


class Trained:
    """What the evaluated items could share with one training set.

    Attributes:
        asked: Training questions that are evaluated too, each with the sets of options it came with.
        passages: By column: items whose question stands within training texts, with the numbers of the rows' questions.
        sets: Options of the training questions.
        grams: By column: n-grams and whole questions of it, with the numbers of the rows' questions.
        questions: Number of different training questions.
    """

    def __init__(self, evaluated: Evaluated, rows: Iterable[TrainingRow]) -> None:
        """Go through the rows, once."""
        self.asked: dict[str, set[Options | None]] = {}
        self.passages: dict[str, dict[int, set[int]]] = {name: {} for name in evaluated.columns}
        self.sets = OptionSets()
        self.grams: dict[str, list[Found]] = {name: [] for name in evaluated.columns}
        self.questions = 0
        self._multiple_choice: dict[int, tuple[str, Options]] = {}
        self._evaluated = evaluated
        for grams in batches(self._texts(rows)):
            for name, column in evaluated.columns.items():
                self.grams[name].append(column.grams.found_in(grams))

    def options_with(self, stem: Stem, rows: Iterable[int]) -> set[Options | None]:
        """Sets of options under the training questions, among some, that have a stem's words in a row."""
        asked = (self._multiple_choice[row] for row in rows if row in self._multiple_choice)
        run = f" {' '.join(stem.words)} "
        return {options for question, options in asked if run in f" {' '.join(words(question))} "}

    def _texts(self, rows: Iterable[TrainingRow]) -> Iterator[tuple[list[int], int]]:
        numbers: dict[Any, int] = {}
        for row in rows:
            asked = take_apart(row.question, row.choices)
            stem = Stem(asked.stem)
            number = numbers.setdefault((stem.form, asked.options) if stem.form else len(numbers), len(numbers))
            self.questions = len(numbers)
            for form in {stem.form, normal_form(row.question)} & self._evaluated.forms:
                self.asked.setdefault(form, set()).add(asked.options)
            if asked.options is not None:
                self.sets.add(asked.options, stem)
                self._multiple_choice[number] = asked.stem, asked.options
            whole = () if any(row.question in text for text in row.texts) else (row.question,)
            for text in (*whole, *row.texts):
                self._find_passages(text, number)
                yield self._evaluated.vocabulary.numbers(words(text)), number

    def _find_passages(self, text: str, number: int) -> None:
        pieces = sentences(text)
        for start, piece in enumerate(pieces):
            if piece not in self._evaluated.beginnings:
                continue
            for length, passages in self._evaluated.beginning_with(piece).items():
                for name, place in passages.get(tuple(pieces[start : start + length]), ()):
                    self.passages[name].setdefault(place, set()).add(number)
