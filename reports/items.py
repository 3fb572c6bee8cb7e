"""Tables of items: transitions between rows, the noise floor of two seeds, and what recovery probes bring back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from cl_bench.harness.measure.items.churn import Churn, mean_churn
from cl_bench.harness.measure.items.ledger import column_ledger, last_row, reader, standard_ledgers
from cl_bench.harness.measure.items.recovery_file import read_recovery
from cl_bench.harness.measure.items.transitions import TRANSITIONS, ColumnLedger, MeanTransitions, mean_transitions
from cl_bench.harness.measure.matrix import BASE_ROW, ColumnKind
from cl_bench.harness.run_directory import RunView
from cl_bench.reports.content import MISSING, Grid, percent

_HEADER = ("column", "from", "to", "items", *TRANSITIONS, "format failures", "forgotten %", "above guessing %")
_NOTES = (
    "kept, forgotten, gained, never: items right in both rows, in the first alone, in the second alone, in neither. "
    "format failures: of the forgotten, those whose answer could not be read or did not end.",
    "above guessing (model-based): share forgotten less what guessing explains, if each item is known or guessed with "
    "equal odds; an upper bound where the same items stay unknown; may be negative. Means count each column once.",
)
_ONE_WAY = (
    "one way: half of the share that differs; forgetting (or gaining) less than this share of a column is no more than "
    "another seed makes."
)
PROBES: Mapping[str, str] = {
    "option_likelihood": "by options",
    "forced_opening": "by opening",
    "relearning": "by relearning",
}
"""Labels of the recovery probes."""
_RECOVERY_NOTES = (
    "Items recovered of those that a probe could be tried on. by options: the right option is the likeliest. by "
    "opening: the answer is made to begin as the untouched model's usually do. by relearning: after a few steps on "
    "the untouched model's right answers to other items.",
    "Only what no probe recovers may be called lost knowledge. never right: the same probes on items that were right "
    "in no row, which is how often they recover what was never there.",
)


def items_grid(view: RunView) -> Grid | None:
    """Transitions of every column from base to the last row, and of each task from its own row to the last one.

    None for a run that has no finished stage.
    """
    ledgers = standard_ledgers(view)
    if not ledgers:
        return None
    kinds = {column.name: column.kind for column in view.matrix.columns}
    from_base = [ledger for ledger in ledgers if ledger.before == BASE_ROW]
    rows = [*map(_ledger_row, from_base)]
    labels: dict[ColumnKind, str] = {
        "sequence": "mean of tasks",
        "ood": "mean of ood",
        "retention": "mean of retention",
    }
    for kind, label in labels.items():
        of_kind = [ledger for ledger in from_base if kinds[ledger.column] == kind]
        rows += _mean_row(label, of_kind)
    own = [ledger for ledger in ledgers if ledger.before != BASE_ROW]
    rows += [*map(_ledger_row, own), *_mean_row("mean, since learned", own)]
    return Grid("Items", _HEADER, tuple(rows), (*_NOTES, *_left_out(ledgers)))


def ledgers_grid(ledgers: Sequence[ColumnLedger], title: str = "Items") -> Grid:
    """Transitions of any ledgers, without means."""
    return Grid(title, _HEADER, tuple(map(_ledger_row, ledgers)), (*_NOTES, *_left_out(ledgers)))


def churn_grid(found: Mapping[str, Churn], row: str) -> Grid:
    """Items that differ between two seeds after a row, by column."""
    rows = tuple(
        (name, str(one.n), str(one.first_only), str(one.second_only), percent(one.share), percent(one.one_way))
        for name, one in found.items()
    )
    header = ("column", "items", "right in first alone", "right in second alone", "differ %", "one way %")
    return Grid(f"Noise floor: two seeds after {row}", header, rows, (_ONE_WAY,))


def seeds_items_grid(views: Sequence[RunView]) -> Grid | None:
    """What seeds of one specification forget from base to the last row, beside the noise floor between them.

    None for fewer than two seeds, and where they have not finished the same rows.
    """
    last = {last_row(view) for view in views}
    if len(views) < 2 or len(last) > 1 or last == {BASE_ROW}:
        return None
    row, readers = last.pop(), [reader(view) for view in views]
    floor = mean_churn(views, row, readers)
    rows = []
    for column in views[0].matrix.columns:
        ledgers = [
            column_ledger(view, column.name, BASE_ROW, row, read) for view, read in zip(views, readers, strict=True)
        ]
        shares = [[ledger.share(name) for ledger in ledgers] for name in ("forgotten", "gained")]
        differ = floor.get(column.name)
        half = None if differ is None else differ / 2
        items = str(ledgers[0].n) if ledgers[0].n else MISSING
        rows.append((column.name, items, *map(_mean_percent, shares), percent(differ), percent(half)))
    header = ("column", "items", "forgotten %", "gained %", "differ %", "one way %")
    notes = (
        f"forgotten, gained: from {BASE_ROW} to {row}, means over seeds. differ: items on which two seeds disagree "
        f"after {row}, mean over pairs. {_ONE_WAY}",
    )
    return Grid("Items over seeds", header, tuple(rows), notes)


def recovery_grids(view: RunView) -> list[Grid]:
    """A grid a row of ``recovery.json``; none where recovery was not measured, or on other samples than the run's."""
    return [recovery_grid(row, part) for row, part in read_recovery(view).items()]


def recovery_grid(row: str, part: Mapping[str, Any]) -> Grid:
    """What the probes recovered after a row, by column and over all of them."""
    columns = [column for column in part["columns"].values() if column["reason"] is None]
    rows = [_recovery_row(column["column"], [column]) for column in columns]
    if len(columns) > 1:
        rows.append(_recovery_row("all", columns))
    header = ("column", "forgotten", "format failures", *PROBES.values(), "by any", "by none", "never right: by any")
    settings = part["settings"]
    trained = f"relearning: {settings['steps']} steps at a learning rate of {settings['learning_rate']:g}."
    title = f"Recovery after {row} of what {part['before']} had right"
    return Grid(title, header, tuple(rows), (*_RECOVERY_NOTES, trained, *_unprobed(part)))


def plain_text(grid: Grid) -> str:
    """A grid as lines of text: the first column to the left, the others to the right, notes below."""
    lines = [grid.header, *grid.rows]
    widths = [max(len(row[place]) for row in lines) for place in range(len(grid.header))]
    table = [
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in lines
    ]
    return "\n".join([grid.title, *table, *(f" {note}" for note in grid.notes)])


def _ledger_row(ledger: ColumnLedger) -> tuple[str, ...]:
    start = (ledger.column, ledger.before, ledger.after)
    if ledger.guessing is None:
        return (*start, *[MISSING] * (len(_HEADER) - len(start)))
    return (
        *start,
        str(ledger.n),
        *(str(ledger.counts[name]) for name in TRANSITIONS),
        str(ledger.causes("forgotten")["format failure"]),
        percent(ledger.share("forgotten")),
        percent(ledger.guessing.forgotten, signed=True),
    )


def _mean_row(label: str, ledgers: Sequence[ColumnLedger]) -> list[tuple[str, ...]]:
    mean: MeanTransitions | None = mean_transitions(ledgers)
    if mean is None or mean.columns < 2:
        return []
    rows = {(ledger.before, ledger.after) for ledger in ledgers}
    before, after = rows.pop() if len(rows) == 1 else ("own row", ledgers[0].after)
    shares = (f"{percent(mean.shares[name])}%" for name in TRANSITIONS)
    numbers = (percent(mean.shares["forgotten"]), percent(mean.forgotten, signed=True))
    return [(label, before, after, f"{mean.columns} col.", *shares, "", *numbers)]


def _mean_percent(shares: Sequence[float | None]) -> str:
    known = [share for share in shares if share is not None]
    return percent(fmean(known) if known and len(known) == len(shares) else None)


def _left_out(ledgers: Iterable[ColumnLedger]) -> tuple[str, ...]:
    """Why columns, or items of them, are not counted; each sentence once."""
    sentences = []
    for ledger in ledgers:
        if ledger.reason is not None:
            sentences.append(f"{MISSING} {ledger.column}: {ledger.reason}")
        sentences += [f"{ledger.column}: {count} items left out: {why}" for why, count in ledger.left_out.items()]
        doubtful = sum(item.unreliable for item in ledger.items)
        sentences += [f"{ledger.column}: {doubtful} items with a verdict in doubt"] if doubtful else []
    return tuple(dict.fromkeys(sentences))


def _recovery_row(label: str, columns: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    forgotten = [column["forgotten"] for column in columns]
    causes = [group["causes"]["format failure"]["tried"] for group in forgotten]
    return (
        label,
        str(sum(group["n"] for group in forgotten)),
        str(sum(causes)),
        *(_of([group["probes"][name] for group in forgotten]) for name in PROBES),
        _of([group["any"] for group in forgotten]),
        str(sum(group["not_recovered"] for group in forgotten)),
        _of([column["never_right"]["any"] for column in columns]),
    )


def _of(rates: Sequence[Mapping[str, int]]) -> str:
    tried = sum(rate["tried"] for rate in rates)
    return f"{sum(rate['recovered'] for rate in rates)}/{tried}" if tried else MISSING


def _unprobed(part: Mapping[str, Any]) -> tuple[str, ...]:
    """Why columns were not probed, and why single probes were not made."""
    by_reason: dict[str, list[str]] = {}
    for name, column in part["columns"].items():
        if column["reason"] is not None:
            by_reason.setdefault(column["reason"], []).append(name)
        for probe, found in column["probes"].items():
            if found["reason"] is not None:
                by_reason.setdefault(f"no recovery {PROBES[probe]}: {found['reason']}", []).append(name)
    return tuple(f"{', '.join(names)}: {reason}" for reason, names in by_reason.items())
