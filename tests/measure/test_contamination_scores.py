"""Scores on clean items: the same items for every row, by hand; what is unknown or impossible says so."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cl_bench.harness.documents import validate_document
from cl_bench.harness.errors import StoreError
from cl_bench.harness.measure.contamination import Overlap
from cl_bench.harness.measure.contamination_scores import (
    STAGE_CONTAMINATION,
    clean_metrics,
    overlap_warnings,
    write_run,
    write_stage,
)
from cl_bench.harness.run_directory import CONTAMINATION
from cl_bench.harness.store import RunView, Store, load_run
from cl_bench.reports.contamination import contamination_grids
from cl_bench.reports.report import render_report
from cl_bench.reports.tables import render_run
from tests.reports.conftest import VALUES, make_run

Found = Mapping[str, Mapping[str, tuple[str, ...]]]
NOTHING: dict[str, tuple[str, ...]] = {"exact": (), "ngram": (), "choices": ()}
CHEMISTRY: Found = {
    "piqa": {"exact": ("0", "1"), "choices": ("1", "2")},
    "biology": {"ngram": ("19",)},
}
BIOLOGY: Found = {"piqa": {"exact": ("2", "3")}}
COLUMNS = {"chemistry": 100, "biology": 100, "chemistry-ood": 50, "piqa": 50, "gsm8k": 50}


def overlaps(found: Found) -> dict[str, Overlap]:
    return {name: Overlap(n, {**NOTHING, **found.get(name, {})}) for name, n in COLUMNS.items()}


def finished(tmp_path: Path, stages: Mapping[str, Found], **changes: Any) -> Path:
    """A run of twenty scored items a column, item ``i`` right where ``i`` is below 20 times the column's value."""
    directory = make_run(tmp_path, **changes)
    store = Store.reopen(directory)
    for folder in sorted(directory.glob("stages/0[1-9]-*")):
        name = folder.name[3:]
        if name in stages:
            write_stage(store, f"stages/{folder.name}", overlaps(stages[name]))
    write_run(store)
    return directory


def document(directory: Path) -> dict[str, Any]:
    found = json.loads((directory / CONTAMINATION).read_text())
    validate_document(found, "contamination")
    return dict(found)


def test_clean_scores_are_those_by_hand(tmp_path: Path) -> None:
    directory = finished(tmp_path, {"chemistry": CHEMISTRY, "biology": BIOLOGY})
    found = document(directory)
    values = found["clean"]["matrix"]["values"]
    # Items 0 to 3 of piqa are trained on by some stage; all four were right, of 16, 14 and 15 right ones in 20.
    assert [values[row]["piqa"] for row in VALUES] == [12 / 16, 10 / 16, 11 / 16]
    # Item 19 of biology was wrong throughout; 6, 7 and 16 are right.
    assert [values[row]["biology"] for row in VALUES] == [6 / 19, 7 / 19, 16 / 19]
    assert [values[row]["chemistry"] for row in VALUES] == [0.2, 0.9, 0.7]
    assert {column["name"]: column["n"] for column in found["clean"]["matrix"]["columns"]} == {
        **COLUMNS, "piqa": 46, "biology": 99,
    }  # fmt: skip
    assert found["clean"]["matrix"]["counts"]["base"]["piqa"] == {"n": 16, "correct": 12}
    assert found["columns"]["piqa"]["any"] == {"count": 4, "share": 4 / 50}
    assert found["columns"]["piqa"]["exact"]["count"] == 4 and found["columns"]["piqa"]["choices"]["count"] == 2
    assert found["stages"]["biology"]["piqa"]["any"]["count"] == 2
    assert found["clean"]["metrics"]["retention"]["value"] == 11 / 16
    assert found["clean"]["stages"]["chemistry"]["retention_change"]["value"] == pytest.approx(-2 / 16)
    metrics = json.loads((directory / "metrics.json").read_text())
    assert metrics["metrics"]["retention"]["value"] == 0.75
    remark = "the same on the 96 of 100 items that no stage trained on"
    assert clean_metrics(directory)["retention"] == {"value": 11 / 16, "reason": remark}


def test_every_form_of_retention_that_is_headlined_is_on_clean_items(tmp_path: Path) -> None:
    found = clean_metrics(finished(tmp_path, {"chemistry": CHEMISTRY, "biology": BIOLOGY}))
    # piqa has a chance of one half: a share s of right answers counts as 2 s - 1.
    assert {name: metric["value"] for name, metric in found.items()} == {
        "retention": pytest.approx(11 / 16),
        "retention_above_chance": pytest.approx(6 / 16),
        "retention_change": pytest.approx(-1 / 16),
        "retention_change_above_chance": pytest.approx(-2 / 16),
    }
    assert len({metric["reason"] for metric in found.values()}) == 1


def test_a_run_whose_metrics_lack_one_is_read(tmp_path: Path) -> None:
    directory = finished(tmp_path, {"chemistry": CHEMISTRY, "biology": BIOLOGY})
    older = document(directory)
    del older["clean"]["metrics"]["retention_change_above_chance"]
    (directory / CONTAMINATION).write_text(json.dumps(older))
    assert set(clean_metrics(directory)) == {"retention", "retention_above_chance", "retention_change"}


def test_without_overlap_the_clean_matrix_is_the_matrix(tmp_path: Path) -> None:
    directory = finished(tmp_path, {"chemistry": {}, "biology": {}})
    matrix = json.loads((directory / "matrix.json").read_text())
    found = document(directory)
    assert found["clean"]["matrix"] == matrix
    assert found["clean"]["metrics"] == json.loads((directory / "metrics.json").read_text())["metrics"]
    assert all(row["any"]["count"] == 0 for row in found["columns"].values())
    table, *rest = contamination_grids(view_of(directory))
    assert rest == [] and table.rows == (("all 5 columns", "350", "0", "0", "0", "0.0"),)


def view_of(directory: Path) -> RunView:
    return load_run(directory, verify=False)


def test_cells_that_cannot_be_cleaned_say_why(tmp_path: Path) -> None:
    everything: Found = {"piqa": {"exact": tuple(map(str, range(50)))}, "gsm8k": {"exact": ("1",)}}
    directory = finished(tmp_path, {"chemistry": everything, "biology": {"chemistry-ood": {"exact": ("0",)}}})
    reasons = document(directory)["clean"]["matrix"]["reasons"]
    assert reasons["base/piqa"] == "every item is trained on"
    assert reasons["base/gsm8k"] == "data absent"
    metrics = document(directory)["clean"]["metrics"]
    assert metrics["retention"]["value"] is None
    assert clean_metrics(directory)["retention"]["reason"] == metrics["retention"]["reason"]
    matrix = json.loads((directory / "matrix.json").read_text())
    matrix["values"]["base"]["chemistry-ood"] = 0.5
    (directory / "matrix.json").write_text(json.dumps(matrix))
    write_run(Store.reopen(directory))
    reasons = document(directory)["clean"]["matrix"]["reasons"]
    assert reasons["base/chemistry-ood"] == "accuracy is no mean over items"
    assert "chemistry/chemistry-ood" not in reasons


def test_items_with_shares_in_place_of_verdicts_are_averaged(tmp_path: Path) -> None:
    directory = finished(tmp_path, {"chemistry": {}, "biology": {"piqa": {"exact": ("0",)}}})
    samples = directory / "stages" / "00-base" / "eval" / "piqa" / "samples.jsonl"
    rows = [json.loads(line) | {"correct": None, "score": place / 20} for place, line in enumerate(samples.open())]
    rows.append(rows[0] | {"id": "20", "score": 0.0, "ended": "skipped"})
    del rows[-1]["score"]
    samples.write_text("".join(json.dumps(row) + "\n" for row in rows))
    matrix = json.loads((directory / "matrix.json").read_text())
    matrix["values"]["base"]["piqa"] = sum(range(20)) / 400
    (directory / "matrix.json").write_text(json.dumps(matrix))
    write_run(Store.reopen(directory))
    assert document(directory)["clean"]["matrix"]["values"]["base"]["piqa"] == pytest.approx(sum(range(1, 20)) / 380)


def test_a_stage_of_an_older_version_leaves_no_clean_score(tmp_path: Path) -> None:
    directory = finished(tmp_path, {"chemistry": CHEMISTRY})
    found = document(directory)["clean"]
    assert found["matrix"]["values"]["base"]["piqa"] is None
    assert "stage biology" in found["matrix"]["reasons"]["base/piqa"]
    assert found["metrics"]["retention"]["value"] is None


def test_a_run_without_stages_is_clean(tmp_path: Path) -> None:
    directory = finished(tmp_path, {}, values={"base": VALUES["base"]}, bound="base")
    assert document(directory)["clean"]["matrix"]["values"]["base"]["piqa"] == 0.8
    assert clean_metrics(directory) == {} and contamination_grids(view_of(directory)) == []


def test_a_diverged_run_keeps_what_was_measured(tmp_path: Path) -> None:
    values = {**VALUES, "biology": (None,) * 5}
    found = document(finished(tmp_path, {"chemistry": CHEMISTRY, "biology": BIOLOGY}, values=values))
    assert found["clean"]["matrix"]["values"]["chemistry"]["piqa"] == 10 / 16
    assert found["clean"]["matrix"]["reasons"]["biology/piqa"] == "data absent"


def test_reports_show_clean_scores_first_and_all_beside_them(tmp_path: Path) -> None:
    directory = finished(tmp_path, {"chemistry": CHEMISTRY, "biology": BIOLOGY})
    text = render_report(directory)
    for expected in (
        "| retention, clean items | 68.8 | 37.5 | the same on the 96 of 100 items that no stage trained on |\n"
        "| retention | 75.0 | 50.0 |",
        "| biology | 100 | 1: 0 / 1 / 0 | 0 | 1: 0 / 1 / 0 | 1.0 |",
        "| piqa | 50 | 3: 2 / 0 / 2 | 2: 2 / 0 / 0 | 4: 4 / 0 / 2 | 8.0 |",
        "| the 3 others | 200 | 0 | 0 | 0 | 0.0 |",
        "| after | biology (99) | piqa (46) | retention | all items |",
        "| chemistry | 36.8 | 62.5 | 62.5 | 70.0 |",
    ):
        assert expected in text
    assert "retention, clean items" in render_run(directory, width=120)


def test_warnings_name_kinds() -> None:
    found = overlaps(CHEMISTRY)
    assert overlap_warnings(found) == [
        "1 evaluated rows of biology are also trained on (1 13-gram)",
        "3 evaluated rows of piqa are also trained on (2 exact, 2 choices)",
    ]


@pytest.mark.parametrize(
    "broken",
    [
        {"schema_version": 2, "columns": {}},
        {"schema_version": 1, "columns": {"a": {"n": 1}}},
        {"schema_version": 1, "columns": {}, "clean": {"matrix": {}, "metrics": {}, "stages": {}}},
    ],
)
def test_other_documents_do_not_fit(broken: dict[str, Any]) -> None:
    with pytest.raises(StoreError):
        validate_document(broken, "contamination")


def test_a_stage_without_ids_does_not_fit(tmp_path: Path) -> None:
    directory = finished(tmp_path, {"chemistry": CHEMISTRY, "biology": BIOLOGY})
    stage = json.loads((directory / "stages" / "01-chemistry" / STAGE_CONTAMINATION).read_text())
    validate_document(stage, "contamination")
    assert stage["columns"]["piqa"]["items"] == {"exact": ["0", "1"], "ngram": [], "choices": ["1", "2"]}
    del stage["columns"]["piqa"]["items"]
    with pytest.raises(StoreError, match="items"):
        validate_document(stage, "contamination")
