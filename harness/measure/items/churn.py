"""The noise floor of transitions: how many items differ between two seeds of the same specification."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

from cl_bench.harness.errors import NotComparableError, UnknownNameError
from cl_bench.harness.measure.items.causes import verdict
from cl_bench.harness.measure.items.ledger import Reader, reader
from cl_bench.harness.measure.items.transitions import paired
from cl_bench.harness.run_directory import RunView


@dataclass(frozen=True, slots=True)
class Churn:
    """Verdicts on the same items after the same row in two runs that differ in the seed alone.

    Attributes:
        n: Items that have a verdict in both.
        first_only: Items right in the first run alone.
        second_only: Items right in the second run alone.
    """

    n: int
    first_only: int
    second_only: int

    @property
    def share(self) -> float:
        """Share of items whose verdicts differ."""
        return (self.first_only + self.second_only) / self.n

    @property
    def one_way(self) -> float:
        """Half of it: the share to be expected right in one run and wrong in the other, in a given order.

        What is forgotten (or gained) beyond this share is more than another seed makes.
        """
        return self.share / 2


def churn(first: RunView, second: RunView, row: str, read: tuple[Reader, Reader] | None = None) -> dict[str, Churn]:
    """Churn of every column that both runs measured after a row.

    Args:
        first: One run.
        second: Another seed of the same specification.
        row: Name of the row.
        read: Reads their samples; for several pairs of runs, so that no file is read twice.

    Raises:
        NotComparableError: They differ in more than the seed, or not in the seed; or they do not hold the same items.
        UnknownNameError: A run has no such finished row.
    """
    check_seeds(first, second)
    for view in (first, second):
        if row not in view.stages:
            raise UnknownNameError("row", row, view.stages, f"these rows of {view.directory} are finished")
    one_reader, other_reader = read or (reader(first), reader(second))
    found = {}
    for column in first.matrix.columns:
        name = column.name
        if None in (first.matrix.value(row, name), second.matrix.value(row, name)):
            continue
        pairs = paired(one_reader(row, name), other_reader(row, name), f"{name} after {row}")
        verdicts = [(verdict(one), verdict(other)) for one, other in pairs]
        known = [pair for pair in verdicts if None not in pair]
        if known:
            found[name] = Churn(len(known), known.count((True, False)), known.count((False, True)))
    return found


def mean_churn(views: Sequence[RunView], row: str, readers: Sequence[Reader]) -> dict[str, float]:
    """Share of items whose verdicts differ, by column: the mean over all pairs of seeds.

    Args:
        views: Seeds of one specification, at least two.
        row: Name of the row.
        readers: A reader of each run's samples.

    Raises:
        NotComparableError: Two of them are no seeds of one specification.
        UnknownNameError: A run has no such finished row.
    """
    shares: dict[str, list[float]] = {}
    for (one, read_one), (other, read_other) in combinations(zip(views, readers, strict=True), 2):
        for name, found in churn(one, other, row, (read_one, read_other)).items():
            shares.setdefault(name, []).append(found.share)
    return {name: fmean(values) for name, values in shares.items()}


def check_seeds(first: RunView, second: RunView) -> None:
    """Refuse runs that are not two seeds of one specification. Raises ``NotComparableError`` with the fields."""
    one, other = first.spec.seedless_payload(), second.spec.seedless_payload()
    named = ", ".join(name for name in one if one[name] != other.get(name))
    if not named and first.spec.seed != second.spec.seed:
        return
    raise NotComparableError(
        f"{second.directory} is no other seed of {first.directory}",
        f"they differ in {named}" if named else f"both have seed {first.spec.seed}",
        "the noise floor needs two runs of one specification with different seeds",
    )
