"""The ledger of items: planted transitions, causes, guessing, and what cannot be compared."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cl_bench.harness.errors import NotComparableError, StoreError, UnknownNameError
from cl_bench.harness.measure.items.causes import cause_of, failure_of
from cl_bench.harness.measure.items.ledger import (
    column_ledger,
    never_right,
    options_of,
    own_row,
    reader,
    standard_ledgers,
)
from cl_bench.harness.measure.items.transitions import (
    ColumnLedger,
    items_of,
    mean_transitions,
    paired,
)
from cl_bench.harness.run_directory import load_run
from tests.measure.items_run import Sample, column, run_spec, sample, samples, write_run


def ledger(before: list[Sample], after: list[Sample], options: list[int | None] | int | None = None) -> ColumnLedger:
    kinds = options if isinstance(options, list) else [options] * len(before)
    pairs = [(one, other, k) for (one, other), k in zip(paired(before, after, "here"), kinds, strict=True)]
    items, left_out = items_of(pairs)
    return ColumnLedger("c", "base", "after", items, left_out)


def test_planted_transitions_are_counted() -> None:
    found = ledger(samples("1110000001"), samples("1001100000"))
    assert found.counts == {"kept": 1, "forgotten": 3, "gained": 2, "never": 4}
    assert [item.id for item in found.of("forgotten")] == ["1", "2", "9"]
    swapped = ledger(samples("1001100000"), samples("1110000001"))
    assert swapped.counts == {"kept": 1, "forgotten": 2, "gained": 3, "never": 4}


def test_the_order_of_the_later_rows_does_not_matter() -> None:
    later = samples("1001100000")
    assert ledger(samples("1110000001"), later[::-1]).counts == ledger(samples("1110000001"), later).counts


@pytest.mark.parametrize(
    ("changes", "failure"),
    [
        ({"parsed": None}, "nothing parsed"),
        ({"ended": "length"}, "no end"),
        ({"parsed": None, "ended": "length"}, "nothing parsed"),
        ({"correct": None, "parsed": None, "response": None, "ended": "skipped"}, "skipped"),
    ],
)
def test_answers_without_form_are_format_failures(changes: dict[str, object], failure: str) -> None:
    broken = sample("a", False) | changes
    assert failure_of(broken) == failure
    assert cause_of(broken) == "format failure"
    found = ledger([sample("a", True)], [broken])
    assert found.causes("forgotten") == {"format failure": 1, "wrong answer": 0}


def test_wrong_answers_are_apart_and_right_ones_have_no_cause() -> None:
    assert cause_of(sample("a", False)) == "wrong answer"
    assert cause_of(sample("a", True, ended="length", format_ok=False)) is None
    scored = sample("a", False, response=None, loglikelihoods=[-1.0, -2.0], ended="scored")
    assert cause_of(scored) == "wrong answer"


def test_items_without_a_verdict_are_left_out_by_reason() -> None:
    skipped = {"response": None, "parsed": None, "ended": "skipped"}
    before = [sample("a", None, **skipped), sample("b", None, score=0.3), sample("c", True)]
    after = [sample("a", None, **skipped), sample("b", None, score=0.1), sample("c", True)]
    found = ledger(before, after)
    assert found.counts == {"kept": 1, "forgotten": 0, "gained": 0, "never": 0}
    assert found.left_out == {"skipped": 1, "no verdict": 1}


def test_guessing_by_hand() -> None:
    # Ten items of four options: six right before, five after; c = .4 x .5 / 3.
    found = ledger(samples("1111110000"), samples("1111000010"), 4).guessing
    assert found is not None
    assert found.chance_transition == pytest.approx(0.4 * 0.5 / 3)
    assert found.forgotten == pytest.approx(0.2 - 0.2 / 3)
    assert found.gained == pytest.approx(0.1 - 0.2 / 3)
    assert found.known_before == pytest.approx((4 * 0.6 - 1) / 3)


def test_options_that_vary_are_adjusted_each_on_its_own() -> None:
    before, after = samples("1100110000"), samples("1010100000")
    mixed: list[int | None] = [2, 2, 2, 2, None, None, None, None, None, None]
    found = ledger(before, after, mixed).guessing
    # Two options: half right in both rows, c = .25 for four items of ten; open answers have no luck.
    assert found is not None
    assert found.chance_transition == pytest.approx(0.4 * 0.25)
    assert found.forgotten == pytest.approx(0.2 - 0.1)


def test_open_answers_are_not_adjusted() -> None:
    found = ledger(samples("110"), samples("100")).guessing
    assert found is not None and found.chance_transition == 0 and found.forgotten == pytest.approx(1 / 3)


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.sampled_from([None, 2, 3, 4, 5])), min_size=1, max_size=40))
def test_what_is_gained_less_what_is_forgotten_is_the_change_of_accuracy(
    rows: list[tuple[bool, bool, int | None]],
) -> None:
    before = [sample(number, one) for number, (one, _, _) in enumerate(rows)]
    after = [sample(number, other) for number, (_, other, _) in enumerate(rows)]
    found = ledger(before, after, [options for _, _, options in rows])
    change = (sum(other for _, other, _ in rows) - sum(one for one, _, _ in rows)) / len(rows)
    assert found.guessing is not None
    assert found.guessing.gained - found.guessing.forgotten == pytest.approx(change, abs=1e-9)
    assert sum(found.counts.values()) == len(rows)


def test_luck_is_taken_off_where_items_are_known_or_guessed() -> None:
    """Knowledge drawn anew in each row, the model of the source: what is left was known before and is wrong after."""
    draw = random.Random(0)
    before, after, options, lost = [], [], [], 0
    for number in range(16000):
        k = 2 if number < 8000 else 5
        known, known_later = draw.random() < 0.5, draw.random() < 0.6
        before.append(sample(number, known or draw.random() < 1 / k))
        after.append(sample(number, known_later or draw.random() < 1 / k))
        options.append(k)
        lost += known and not after[-1]["correct"]
    found = ledger(before, after, list(options))
    assert found.guessing is not None
    assert (found.share("forgotten") or 0) - lost / 16000 > 0.04
    assert found.guessing.forgotten == pytest.approx(lost / 16000, abs=0.01)
    # The mistake of giving every item four options is seen here.
    mistaken = ledger(before, after, 4).guessing
    assert mistaken is not None and abs(mistaken.forgotten - lost / 16000) > 0.012


def test_means_count_each_column_once() -> None:
    small, large = ledger(samples("10"), samples("00")), ledger(samples("0" * 8), samples("0" * 8))
    found = mean_transitions([small, large, ColumnLedger("x", "base", "after", reason="absent")])
    assert found is not None and found.columns == 2
    assert found.shares["forgotten"] == pytest.approx(0.25)
    assert mean_transitions([ColumnLedger("x", "base", "after", reason="absent")]) is None


def test_other_items_other_prompts_and_doubled_ids_are_not_compared() -> None:
    rows = samples("110")
    with pytest.raises(NotComparableError, match="same items"):
        paired(rows, samples("11"), "here")
    with pytest.raises(NotComparableError, match="another prompt"):
        paired(rows, [*samples("11"), sample(2, True, prompt_hash="other")], "here")
    with pytest.raises(NotComparableError, match="twice"):
        paired([*rows, rows[0]], [*rows, rows[0]], "here")


def test_the_number_of_options_is_recorded_or_scored_or_the_columns() -> None:
    assert options_of([sample("a", True, options=3), sample("a", True)], column("c", chance=0.25)) == 3
    assert options_of([sample("a", True), sample("a", True, options=3)], column("c", chance=0.25)) == 3
    assert options_of([sample("a", True, loglikelihoods=[-1.0, -2.0])], column("c", chance=0.25)) == 2
    assert options_of([sample("a", True)], column("c", chance=0.25)) == 4
    assert options_of([sample("a", True)], column("c", chance=1 / 3)) == 3
    assert options_of([sample("a", True)], column("c", chance=0.3)) is None
    assert options_of([sample("a", True)], column("c")) is None


def test_ledgers_of_a_run(tmp_path: Path) -> None:
    columns = [column("one"), column("two"), column("old", "retention", 0.5)]
    rows = {
        "base": {"one": samples("0000"), "two": samples("0000"), "old": samples("1111")},
        "one": {"one": samples("1111"), "two": samples("0001"), "old": samples("1110")},
        "two": {"one": samples("1100"), "two": samples("1111"), "old": samples("1100")},
    }
    view = load_run(write_run(tmp_path, columns, rows))
    found = {(one.column, one.before, one.after): one for one in standard_ledgers(view)}
    # A task's own row counts where something came after it.
    assert list(found) == [
        ("one", "base", "two"),
        ("two", "base", "two"),
        ("old", "base", "two"),
        ("one", "one", "two"),
    ]
    assert found["one", "one", "two"].counts == {"kept": 2, "forgotten": 2, "gained": 0, "never": 0}
    assert found["one", "base", "two"].counts == {"kept": 0, "forgotten": 0, "gained": 2, "never": 2}
    assert found["old", "base", "two"].of("forgotten")[0].options == 2
    back = column_ledger(view, "one", "two", "one")
    assert back.counts["gained"] == 2
    with pytest.raises(UnknownNameError, match="colum"):
        column_ledger(view, "on", "base", "two")
    with pytest.raises(UnknownNameError, match="row"):
        column_ledger(view, "one", "bas", "two")


def test_what_was_right_in_between_is_no_item_that_was_never_right(tmp_path: Path) -> None:
    rows = {"base": {"one": samples("1000")}, "two": {"one": samples("0010")}, "three": {"one": samples("0000")}}
    view = load_run(write_run(tmp_path, [column("one")], rows))
    found = column_ledger(view, "one", "base", "three")
    assert [item.id for item in found.of("never")] == ["1", "2", "3"]
    assert never_right(view, found, reader(view)) == {"1": "wrong answer", "3": "wrong answer"}
    early = column_ledger(view, "one", "base", "base")
    assert set(never_right(view, early, reader(view))) == {"1", "2", "3"}, "what comes later does not matter"


def test_a_repeated_task_has_the_row_in_which_it_was_first_learned(tmp_path: Path) -> None:
    spec = run_spec([("one", "one"), ("two", "two"), ("one-2", "one")])
    row = {"one": samples("10"), "two": samples("01")}
    rows = {name: row for name in ("base", "one", "two", "one-2")}
    view = load_run(write_run(tmp_path, [column("one"), column("two")], rows, spec))
    assert own_row(view, "one") == "one"
    assert ("one", "one", "one-2") in [(one.column, one.before, one.after) for one in standard_ledgers(view)]


def test_cells_without_a_value_have_a_reason_and_no_items(tmp_path: Path) -> None:
    rows: dict[str, Any] = {
        "base": {"one": samples("10"), "absent": "its rows are not there", "graded": samples("10")},
        "one": {"one": samples("01"), "absent": "its rows are not there", "graded": samples("10")},
        "two": {"one": "diverged in stage two", "absent": "diverged in stage two", "graded": "diverged in stage two"},
    }
    for row in ("base", "one"):
        rows[row]["graded"] = [sample(0, None, score=0.5), sample(1, None, score=0.1)]
    columns = [column("one"), column("absent", "retention"), column("graded", "retention")]
    view = load_run(write_run(tmp_path, columns, rows, unfinished=["two"]))
    found = {one.column: one for one in standard_ledgers(view)}
    assert found["one"].after == "one" and found["one"].counts["forgotten"] == 1
    assert found["absent"].reason == "base: its rows are not there"
    assert found["graded"].reason is not None and "graded" in found["graded"].reason
    assert found["graded"].guessing is None and found["graded"].share("forgotten") is None
    assert column_ledger(view, "one", "base", "two").reason == "two: diverged in stage two"


def test_a_run_without_stages_has_no_ledger(tmp_path: Path) -> None:
    rows: dict[str, Any] = {"base": {"one": samples("10")}, "one": {"one": "not evaluated"}}
    view = load_run(write_run(tmp_path, [column("one")], rows, unfinished=["one"]))
    assert standard_ledgers(view) == []


@pytest.mark.parametrize("cut", [False, True])
def test_edited_and_truncated_samples_are_named(tmp_path: Path, cut: bool) -> None:
    rows = {"base": {"one": samples("1010")}, "one": {"one": samples("0101")}}
    directory = write_run(tmp_path, [column("one")], rows)
    path = directory / "stages/01-one/eval/one/samples.jsonl"
    text = path.read_text()
    path.write_text(text[: len(text) // 2] if cut else text.replace("false", "true ", 1))
    with pytest.raises(StoreError) as error:
        load_run(directory)
    assert str(path) in str(error.value) and "resume" in error.value.hint
