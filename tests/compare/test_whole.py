"""Documents that no hash covers: of another form, of another version, or of other numbers than what was measured."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cl_bench.harness.compare.comparison import compare_runs
from cl_bench.harness.compare.runs import find_runs
from cl_bench.harness.compare.whole import load_whole
from cl_bench.harness.errors import StoreError
from cl_bench.harness.files import hash_tree
from cl_bench.reports.compare import text
from cl_bench.reports.report import render_report
from cl_bench.reports.tables import render_run
from tests.compare.small_runs import VALUES, make_run

Edit = Callable[[dict[str, Any]], Any]
READERS: tuple[Callable[[Path], Any], ...] = (load_whole, render_report, render_run)


def edit(path: Path, change: Edit) -> None:
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def hash_again(stage: Path) -> None:
    """Hashes that fit, as of a file that was broken when it was written."""
    edit(stage / "done.json", lambda document: document.update(files=hash_tree(stage, skip=["done.json"])))


def refused(run: Path, file: str) -> None:
    """Every reader says which file it is; a comparison leaves the run out and shows the others."""
    for reader in READERS:
        with pytest.raises(StoreError) as caught:
            reader(run)
        assert file in caught.value.what and caught.value.why
    other = make_run(run.parents[2], seed=7).resolve()
    found = find_runs([str(run), str(other)])
    assert [view.directory.resolve() for view in found.views] == [other]
    assert file in found.left_out[0].reason


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(schema_version=7),
        lambda d: d["values"]["chemistry"].update(chemistry="0.5"),
        lambda d: d["values"]["chemistry"].update(chemistry=10**400),
        lambda d: d["values"]["chemistry"].update(chemistry=math.inf),
        lambda d: d["counts"]["chemistry"].update(chemistry={"n": "many"}),
        lambda d: d["columns"][0].update(chance="a half"),
        lambda d: d["columns"][0].update(kind="other"),
        lambda d: d["rows"].append("base"),
        lambda d: (d["values"]["chemistry"].update(chemistry=None), d["reasons"].update({"chemistry/chemistry": [1]})),
        lambda d: d.pop("values"),
    ],
)
def test_a_matrix_of_another_form_is_damage(tmp_path: Path, change: Edit) -> None:
    run = make_run(tmp_path)
    edit(run / "matrix.json", change)
    refused(run, "matrix.json")


@pytest.mark.parametrize(
    "content",
    [
        '{"sessions": "x"}',
        '{"schema_version": 1, "sessions": [1]}',
        '{"schema_version": 1, "sessions": null}',
        "[",
        "3",
    ],
)
def test_a_manifest_of_another_form_is_damage(tmp_path: Path, content: str) -> None:
    run = make_run(tmp_path)
    (run / "manifest.json").write_text(content)
    refused(run, "manifest.json")


@pytest.mark.parametrize("content", ['{"state": 5}', '{"state": ["done"]}', '{"sta', "[]"])
def test_a_status_of_another_form_is_damage(tmp_path: Path, content: str) -> None:
    run = make_run(tmp_path)
    (run / "status.json").write_text(content)
    refused(run, "status.json")


def test_stages_whose_documents_were_written_wrong_are_damage(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    stage = run / "stages" / "02-biology"
    edit(stage / "adaptation.json", lambda document: document.update(flops=None, steps="x"))
    hash_again(stage)
    refused(run, "adaptation.json")


def test_a_matrix_that_was_edited_does_not_agree_with_what_was_measured(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    matrix = json.loads((run / "matrix.json").read_text())
    for index, row in enumerate(matrix["rows"]):
        stage = next(run.glob(f"stages/{index:02d}-*"))
        cells = {column: {"value": value} for column, value in matrix["values"][row].items()}
        (stage / "eval" / "cells.json").write_text(json.dumps(cells))
        hash_again(stage)
    assert load_whole(run).matrix.value("biology", "reading") == VALUES["biology"][2]
    edit(run / "matrix.json", lambda document: document["values"]["biology"].update(reading=0.9))
    with pytest.raises(StoreError) as caught:
        load_whole(run)
    assert caught.value.why == "biology/reading is 0.9, and 0.4 was measured"
    refused(run, "matrix.json")


def test_a_matrix_without_a_finished_row_is_damage(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    stage = next(run.glob("stages/02-*"))
    (stage / "eval" / "cells.json").write_text("{}")
    hash_again(stage)
    edit(run / "matrix.json", lambda document: (document["rows"].remove("biology"), document["values"].pop("biology")))
    refused(run, "matrix.json")


@pytest.mark.parametrize(
    "content",
    [
        None,
        '{"schema_version": 99}',
        '{"schema_version": 2}',
        '{"schema_version": 2, "metrics": {"gain": {"value": 0.99}}, "stages": {}, "tasks": {}}',
        '{"schema_version": 2, "metrics": {"gain": {"value": "x"}, "forgetting": 5}, "stages": [], "tasks": 1}',
    ],
)
def test_metrics_are_those_of_the_matrix_whatever_their_file_says(tmp_path: Path, content: str | None) -> None:
    run = make_run(tmp_path)
    right = text(compare_runs([str(run)])), render_report(run), render_run(run)
    (run / "metrics.json").unlink() if content is None else (run / "metrics.json").write_text(content)
    assert (text(compare_runs([str(run)])), render_report(run), render_run(run)) == right


def test_a_score_that_is_no_number_has_no_value_and_says_so(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    edit(run / "matrix.json", lambda document: document["values"]["chemistry"].update(chemistry=math.nan))
    page = text(compare_runs([str(run)]), width=200)
    assert "- acquired, gain, BWT, forgetting (sft): undefined: chemistry/chemistry: the score is nan" in page


def test_a_document_of_another_version_names_the_run_and_what_to_try(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    edit(run / "matrix.json", lambda document: document.update(schema_version=99))
    with pytest.raises(StoreError, match="matrix.json has version 99") as caught:
        load_whole(run)
    assert str(run) in caught.value.what and "resume" in caught.value.hint
