"""How much of what a column forgot comes back by probes that teach none of its items, beside items never right.

An item that was right and is wrong after a stage may still be known: the model may no longer get to the answer. What a
probe brings back was not lost; only what none of them brings back may be called lost knowledge. A probe also makes
some answers right that the model never knew: items that were never right go through the same probes, and their rate of
recovery is the rate of false ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from cl_bench.harness.measure.evaluation import fixed_indices
from cl_bench.harness.measure.items import forced_opening, option_likelihood, relearning
from cl_bench.harness.measure.items.causes import Cause
from cl_bench.harness.measure.items.probed import Attempt, ProbeInput
from cl_bench.harness.measure.items.relearning import Relearning

Group = Literal["forgotten", "never_right"]
Probe = Callable[[ProbeInput], Attempt]
PROBE_NAMES: tuple[str, ...] = (option_likelihood.NAME, forced_opening.NAME, relearning.NAME)
MOST_CONTROLS = 100
"""Never right items of a column that are probed, at most; a fixed choice by hash."""


def probes(settings: Relearning) -> dict[str, Probe]:
    """The probes by name."""
    return {
        option_likelihood.NAME: option_likelihood.option_likelihood,
        forced_opening.NAME: forced_opening.forced_opening,
        relearning.NAME: lambda given: relearning.relearning(given, settings),
    }


@dataclass(frozen=True, slots=True)
class Rate:
    """Items tried and recovered, counts."""

    tried: int
    recovered: int


@dataclass(frozen=True, slots=True)
class ProbedItem:
    """One item under all probes.

    Attributes:
        id: Its id.
        group: Forgotten between base and the row, or never right in any row up to it.
        cause: Why its answer after the row is wrong.
        recovered: Whether each probe makes it right; None where the probe cannot be applied.
    """

    id: str
    group: Group
    cause: Cause
    recovered: Mapping[str, bool | None]

    @property
    def by_any(self) -> bool | None:
        """Whether any probe makes it right; None where none could be applied."""
        known = [right for right in self.recovered.values() if right is not None]
        return any(known) if known else None


@dataclass(frozen=True, slots=True)
class ColumnRecovery:
    """What the probes found on one column.

    Attributes:
        column: Name of the column.
        reason: Why nothing was probed, else None.
        forgotten: Forgotten items.
        never_right: Items never right in any row up to this one; of them at most ``MOST_CONTROLS`` were probed.
        probes: Of each probe ``reason`` (why it cannot be applied here, or None) and ``details``.
        items: The probed items.
    """

    column: str
    reason: str | None = None
    forgotten: int = 0
    never_right: int = 0
    probes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    items: tuple[ProbedItem, ...] = ()

    def rate(self, group: Group, probe: str | None = None, cause: Cause | None = None) -> Rate:
        """Items of a group that a probe (None: any of them) was tried on and recovered, of one cause or of both."""
        chosen = [item for item in self.items if item.group == group and cause in (None, item.cause)]
        outcomes = [item.by_any if probe is None else item.recovered[probe] for item in chosen]
        return Rate(sum(outcome is not None for outcome in outcomes), sum(outcome is True for outcome in outcomes))

    def to_json(self) -> dict[str, Any]:
        """The column's part of ``recovery.json``."""
        return {
            "column": self.column,
            "reason": self.reason,
            "forgotten": self._group("forgotten", self.forgotten),
            "never_right": self._group("never_right", self.never_right),
            "probes": {name: dict(found) for name, found in self.probes.items()},
            "items": [
                {"id": item.id, "group": item.group, "cause": item.cause, "recovered": dict(item.recovered)}
                for item in self.items
            ],
        }

    def _group(self, group: Group, count: int) -> dict[str, Any]:
        anyhow = self.rate(group)
        causes: tuple[Cause, ...] = ("format failure", "wrong answer")
        return {
            "n": count,
            "any": _pair(anyhow),
            "not_recovered": anyhow.tried - anyhow.recovered,
            "probes": {name: _pair(self.rate(group, name)) for name in self.probes},
            "causes": {cause: _pair(self.rate(group, cause=cause)) for cause in causes},
        }


def _pair(rate: Rate) -> dict[str, int]:
    return {"tried": rate.tried, "recovered": rate.recovered}


def recover_column(
    given: Callable[[Sequence[str]], ProbeInput],
    column: str,
    forgotten: Mapping[str, Cause],
    never_right: Mapping[str, Cause],
    tried: Mapping[str, Probe],
) -> ColumnRecovery:
    """Put the forgotten items of a column, and its controls, through the probes.

    Args:
        given: Input of a probe for items.
        column: Name of the column.
        forgotten: Causes by id of items that were right in base and are wrong now.
        never_right: Causes by id of items that were wrong in every row.
        tried: Probes by name.
    """
    ids = list(never_right)
    controls = [ids[index] for index in fixed_indices(ids, MOST_CONTROLS)]
    asked = given([*forgotten, *controls])
    attempts = {name: probe(asked) for name, probe in tried.items()}

    def item(name: str, group: Group, cause: Cause) -> ProbedItem:
        return ProbedItem(name, group, cause, {probe: found.right.get(name) for probe, found in attempts.items()})

    return ColumnRecovery(
        column,
        forgotten=len(forgotten),
        never_right=len(never_right),
        probes={name: {"reason": found.reason, "details": dict(found.details)} for name, found in attempts.items()},
        items=(
            *(item(name, "forgotten", cause) for name, cause in forgotten.items()),
            *(item(name, "never_right", never_right[name]) for name in controls),
        ),
    )
