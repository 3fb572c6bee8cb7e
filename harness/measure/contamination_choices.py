"""Multiple-choice questions that come back with their options permuted, extended, or under another stem."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cached_property
from itertools import islice

from cl_bench.harness.measure.contamination_text import normal_form, sentences, words

Options = frozenset[str]
COMMON_STEMS = 3
"""Options that come with more different stems than this, those that hold a stem aside, do not name its question."""
CONTAINED_AT_LEAST = 3
"""A set with fewer options than this is not looked for within larger ones."""
EDITED_AT_LEAST = 8
EDITED_SHARE = 0.8
_SHORTEST_RUN = 4
_MOST_AROUND = 12
_LONGEST_ALIGNED = 2000


def same_options(one: Options, other: Options) -> bool:
    """Whether options are equal, or the fewer (three at least) are among the others, as MMLU's among MMLU-Pro's."""
    small, large = sorted((one, other), key=len)
    return one == other or (len(small) >= CONTAINED_AT_LEAST and small <= large)


class Stem:
    """A stem as it is compared."""

    def __init__(self, text: str) -> None:
        """Take the text of a question without options."""
        self.text, self.form = text, normal_form(text)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Its words."""
        return tuple(words(self.text))

    @cached_property
    def sentences(self) -> list[str]:
        """Its sentences."""
        return sentences(self.text)

    @cached_property
    def runs(self) -> frozenset[str]:
        """Its sentences without some at the beginning, or some at the end, as texts of four words at least."""
        pieces, dropped = self.sentences, range(min(len(self.sentences), _MOST_AROUND + 1))
        ends = [pieces[: len(pieces) - n] for n in dropped] + [pieces[n:] for n in dropped]
        return frozenset(" ".join(run) for run in ends if sum(len(piece.split()) for piece in run) >= _SHORTEST_RUN)

    @cached_property
    def whole(self) -> str:
        """All its sentences, in the form of ``runs``."""
        return " ".join(self.sentences)

    def surrounds(self, other: Stem) -> bool:
        """Whether it is the other stem with plain words around it."""
        return _surrounded(other.words, self.words)

    def nearly(self, other: Stem) -> bool:
        """Whether the words are those of the other stem, in order, but for a few plain ones.

        Few are the words around all of one stem, or a fifth of eight or more. Plain words have no digit and more than
        one character: questions of one template differ in numbers and symbols.
        """
        few, many = sorted((self.words, other.words), key=len)
        if not few or len(many) > _LONGEST_ALIGNED:
            return False
        return _surrounded(few, many) or _edited(few, many)


def _surrounded(few: Sequence[str], many: Sequence[str]) -> bool:
    if len(few) < _SHORTEST_RUN:
        return False
    before, found, after = f" {' '.join(many)} ".partition(f" {' '.join(few)} ")
    return bool(found) and _plain(before.split() + after.split())


def _edited(few: Sequence[str], many: Sequence[str]) -> bool:
    if len(few) < EDITED_AT_LEAST or (Counter(many) & Counter(few)).total() < EDITED_SHARE * len(many):
        return False
    blocks = SequenceMatcher(None, few, many, autojunk=False).get_opcodes()
    changed = [block for block in blocks if block[0] != "equal"]
    kept = len(few) - sum(end - start for _, start, end, _, _ in changed)
    differing = [word for _, i, j, k, m in changed for word in (*few[i:j], *many[k:m])]
    return kept >= EDITED_SHARE * len(many) and _plain(differing)


def _plain(differing: Sequence[str]) -> bool:
    return all(len(word) > 1 and not any(map(str.isdigit, word)) for word in differing)


class _Stems:
    """Stems that come with the same options."""

    def __init__(self) -> None:
        self.by_form: dict[str, Stem] = {}

    @cached_property
    def _wholes(self) -> frozenset[str]:
        return frozenset(stem.whole for stem in self.by_form.values())

    @cached_property
    def _runs(self) -> frozenset[str]:
        return frozenset(run for stem in self.by_form.values() for run in stem.runs)

    def hold(self, stem: Stem) -> bool:
        """Whether one of them is the stem, or one is the other with sentences before or after it."""
        same = bool(stem.form) and stem.form in self.by_form
        return same or stem.whole in self._runs or not self._wholes.isdisjoint(stem.runs)


class OptionSets:
    """Option sets with the stems they come with."""

    def __init__(self) -> None:
        """Start empty."""
        self._stems: dict[Options, _Stems] = {}

    def add(self, options: Options, stem: Stem) -> None:
        """Add a question; all are added before anything is asked."""
        self._stems.setdefault(options, _Stems()).by_form.setdefault(stem.form, stem)

    def ask(self, options: Options, stem: Stem, naming: bool) -> bool:
        """Whether a question is among these.

        Its options are the same (``same_options``) and its stem is, or either has sentences around it. Where the
        options come with few stems on both sides, stems that are nearly the same count too.

        Args:
            options: Its options.
            stem: Its stem.
            naming: Its options come with few stems where it is from.
        """
        for found in self._like(options):
            stems = self._stems[found]
            if stems.hold(stem):
                return True
            if naming and self.naming(found, stem) and any(stem.nearly(other) for other in stems.by_form.values()):
                return True
        return False

    def naming(self, options: Options, stem: Stem) -> bool:
        """Whether the options come with few stems, those with the words of this one aside, so that they name it."""
        stems = self._stems[options].by_form.values() if options in self._stems else ()
        others = (other for other in stems if other.form != stem.form and not other.surrounds(stem))
        return next(islice(others, COMMON_STEMS, None), None) is None

    def _like(self, options: Options) -> Iterator[Options]:
        holders = self._holders
        if not any(option in holders for option in options):
            return iter(())
        rarest = min(options, key=lambda option: (len(holders.get(option, ())), option))
        # A larger set has all of these options; a smaller one is found by its own rarest.
        candidates = [*holders.get(rarest, ()), *(c for option in options for c in self._by_rarest.get(option, ()))]
        return (found for found in dict.fromkeys(candidates) if same_options(options, found))

    @cached_property
    def _holders(self) -> Mapping[str, list[Options]]:
        found: dict[str, list[Options]] = {}
        for options in self._stems:
            for option in options:
                found.setdefault(option, []).append(options)
        return found

    @cached_property
    def _by_rarest(self) -> Mapping[str, list[Options]]:
        found: dict[str, list[Options]] = {}
        for options in self._stems:
            rarest = min(options, key=lambda option: (len(self._holders[option]), option))
            found.setdefault(rarest, []).append(options)
        return found
