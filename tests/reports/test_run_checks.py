"""``validate run``: a run whose documents contradict one another does not pass."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cl_bench.harness.commands.validate import validate_run_command
from cl_bench.harness.conformance.run_checks import run_checks
from cl_bench.harness.documents import schema_names, validate_document
from cl_bench.harness.errors import StoreError
from cl_bench.harness.store import load_run
from tests.reports.conftest import RunMaker


def problems(directory: Path) -> dict[str, str]:
    return {check.name: check.problem for check in run_checks(load_run(directory, verify=False)) if not check.passed}


def change(path: Path, **fields: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def test_whole_run_passes(run_maker: RunMaker, capsys: pytest.CaptureFixture[str]) -> None:
    directory = run_maker()
    assert problems(directory) == {}
    assert validate_run_command(directory, json=True) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["valid"] and report["finished_stages"] == ["base", "chemistry", "biology"]


def test_document_off_its_schema_is_named(run_maker: RunMaker) -> None:
    directory = run_maker()
    change(directory / "stages" / "01-chemistry" / "adaptation.json", steps=-1)
    assert "01-chemistry/adaptation.json: at steps" in problems(directory)["documents fit their schemas"]
    with pytest.raises(StoreError, match="adaptation.json"):
        validate_run_command(directory, json=True)


def test_cell_that_its_samples_do_not_give_is_named(run_maker: RunMaker) -> None:
    directory = run_maker()
    matrix = json.loads((directory / "matrix.json").read_text())
    matrix["values"]["chemistry"]["biology"] = 0.95
    change(directory / "matrix.json", values=matrix["values"])
    found = problems(directory)
    assert "chemistry/biology" in found["cells agree with their samples"]
    assert "metrics follow from the matrix" in found
    assert validate_run_command(directory, json=True) == 1


def test_finished_stage_without_row_is_named(run_maker: RunMaker) -> None:
    directory = run_maker()
    matrix = json.loads((directory / "matrix.json").read_text())
    matrix["rows"].remove("biology")
    change(directory / "matrix.json", rows=matrix["rows"])
    assert problems(directory)["every finished stage has its row"].startswith("biology")


@pytest.mark.parametrize("schema", schema_names())
def test_no_schema_takes_anything(schema: str) -> None:
    with pytest.raises(StoreError, match="does not fit"):
        validate_document([], schema)
    with pytest.raises(StoreError, match="does not fit"):
        validate_document({}, schema)
