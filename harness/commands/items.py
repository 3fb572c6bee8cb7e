"""``cl-bench show RUN --items``: what became of each evaluated item between two rows of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cl_bench.harness.commands.execution import print_json
from cl_bench.harness.compare.whole import load_whole
from cl_bench.harness.errors import EXIT_DONE, UsageError
from cl_bench.harness.escaping import visible
from cl_bench.harness.measure.items.causes import Sample, failure_of
from cl_bench.harness.measure.items.churn import churn
from cl_bench.harness.measure.items.ledger import column_ledger, last_row, reader
from cl_bench.harness.measure.items.transitions import TRANSITIONS, ColumnLedger, Item, Transition
from cl_bench.harness.measure.matrix import BASE_ROW
from cl_bench.harness.run_directory import RunView

if TYPE_CHECKING:
    from cl_bench.harness.measure.items.churn import Churn

_LONGEST = 600
"""Characters of an answer that are shown; ``--json`` has all."""


@dataclass(frozen=True, slots=True)
class ItemsOptions:
    """What was asked for, but the run.

    Attributes:
        column: Column whose items are listed; None: the counts of all columns.
        transitions: Which items are listed; empty: all.
        before: Earlier row.
        after: Later row; None: the last finished one.
        other: Another seed of the same specification, whose churn is the noise floor; None: none.
        json: Print one line of JSON.
    """

    column: str | None = None
    transitions: tuple[Transition, ...] = ()
    before: str = BASE_ROW
    after: str | None = None
    other: Path | None = None
    json: bool = False


def items_command(run: Path, options: ItemsOptions) -> int:
    """Print counts of transitions, and the items of one column with their answers before and after.

    Raises:
        UsageError: Transitions without a column, or the same row twice.
        UnknownNameError: No such row or column.
        NotComparableError: The other run is no other seed of this one.
        StoreError: Not a run directory, or a samples file was edited or cut off.
    """
    if options.transitions and options.column is None:
        raise UsageError(
            f"--{options.transitions[0]} lists items of one column", hint="name it with --task, for example --task NAME"
        )
    view = load_whole(run)
    after = options.after or last_row(view)
    if after == options.before:
        raise UsageError(
            f"two rows are compared, and both are {after}",
            f"finished rows: {', '.join(view.stages)}",
            "choose with --from and --to",
        )
    names = [column.name for column in view.matrix.columns] if options.column is None else [options.column]
    read = reader(view)
    ledgers = [column_ledger(view, name, options.before, after, read) for name in names]
    floor = churn(view, load_whole(options.other), after) if options.other is not None else {}
    wanted = {name: one for name, one in floor.items() if name in names}
    if options.json:
        print_json(_document(view, ledgers, wanted, options))
    else:
        _print(ledgers, wanted, options, after)
    return EXIT_DONE


def answer_of(sample: Sample) -> str:
    """An item's answer as it is shown: the response, or the option that was likeliest."""
    if sample["ended"] == "skipped":
        return "(skipped: the prompt does not fit the model's context)"
    if sample.get("response") is not None:
        text = visible(str(sample["response"]))
        more = len(text) - _LONGEST
        return text if more <= 0 else f"{text[:_LONGEST]} … ({more} more characters)"
    values = ", ".join("none" if value is None else f"{value:.2f}" for value in sample.get("loglikelihoods") or ())
    return f"option {sample['parsed']} of log-likelihoods {values}"


def _listed(ledger: ColumnLedger, options: ItemsOptions) -> Iterator[Item]:
    for transition in options.transitions or TRANSITIONS:
        yield from ledger.of(transition)


def _print(ledgers: list[ColumnLedger], floor: Mapping[str, Churn], options: ItemsOptions, after: str) -> None:
    from cl_bench.reports.items import churn_grid, ledgers_grid, plain_text

    print(plain_text(ledgers_grid(ledgers)))
    if floor:
        print(f"\n{plain_text(churn_grid(floor, after))}")
    if options.column is None:
        return
    for item in _listed(ledgers[0], options):
        print(f"\n{visible(item.id)}: {item.transition}{f', {_why(item)}' if item.cause else ''}")
        for row, sample in ((options.before, item.before), (after, item.after)):
            print(f"  {row} ({_state(sample)}): {answer_of(sample)}")


def _why(item: Item) -> str:
    failure = failure_of(item.after)
    return f"{item.cause}: {failure}" if failure else str(item.cause)


def _state(sample: Sample) -> str:
    read = "nothing read" if sample["parsed"] is None else f"read as {visible(str(sample['parsed']))!r}"
    return f"{'right' if sample['correct'] else 'wrong'}, {read}"


def _document(
    view: RunView, ledgers: list[ColumnLedger], floor: Mapping[str, Churn], options: ItemsOptions
) -> dict[str, Any]:
    document = {"directory": str(view.directory), "from": ledgers[0].before, "to": ledgers[0].after} if ledgers else {}
    columns: list[dict[str, Any]] = []
    for ledger in ledgers:
        guess = ledger.guessing
        columns.append(
            {
                "column": ledger.column,
                "reason": ledger.reason,
                "n": ledger.n,
                "counts": ledger.counts,
                "forgotten_causes": ledger.causes("forgotten"),
                "left_out": dict(ledger.left_out),
                "model_based": asdict(guess) if guess is not None else None,
                "churn": asdict(floor[ledger.column]) if ledger.column in floor else None,
            }
        )
    if options.column is not None:
        columns[0]["items"] = [
            {
                "id": item.id,
                "transition": item.transition,
                "cause": item.cause,
                "failure": failure_of(item.after) if item.cause else None,
                "options": item.options,
                "before": dict(item.before),
                "after": dict(item.after),
            }
            for item in _listed(ledgers[0], options)
        ]
    return {**document, "columns": columns}
