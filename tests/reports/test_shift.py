"""The shift panel in the report."""

from __future__ import annotations

import json
from pathlib import Path

from cl_bench.harness.run_directory import load_run
from cl_bench.reports.report import render_report
from cl_bench.reports.shift import shift_grids
from tests.reports.conftest import RunMaker, shift_document


def rewrite(directory: Path, document: dict[str, object]) -> None:
    for path in directory.glob("stages/*/shift.json"):
        path.write_text(json.dumps(document))


def record(measure: str, value: float | None, against: str = "base", **more: object) -> dict[str, object]:
    found = {"measure": measure, "against": against, "prompts": "scored rows", "contexts": "x", "reduction": "y"}
    return {**found, "unit": "1", "n": 3, "value": value, **more}


def grids(directory: Path) -> dict[str, object]:
    return {grid.title: grid for grid in shift_grids(load_run(directory, verify=False))}


def test_the_report_shows_the_divergence_that_there_is(run_maker: RunMaker) -> None:
    text = render_report(run_maker())
    assert "## Distribution shift" in text
    assert "| chemistry | 0.1250 | - |" in text
    assert "### Parameter drift" not in text, "a table without a number says nothing"


def test_a_missing_number_is_shown_with_its_reason(run_maker: RunMaker) -> None:
    directory = run_maker()
    document = shift_document("chemistry", None)
    general = {**shift_document("chemistry")["primary"], "prompts": "general"}  # type: ignore[dict-item]
    rewrite(directory, {**document, "measures": [document["primary"], general]})
    (grid,) = shift_grids(load_run(directory, verify=False))
    assert grid.rows[0][:4] == ("chemistry", "-", "-", "0.1250")
    assert any("no dev row is left to ask" in note for note in grid.notes)


def test_a_small_divergence_is_not_shown_as_none(run_maker: RunMaker) -> None:
    directory = run_maker()
    rewrite(directory, shift_document("chemistry", 3.6422e-06))
    (grid,) = shift_grids(load_run(directory, verify=False))
    assert grid.rows[0][1] == "3.6e-06"


def test_artefacts_and_spreading_words(run_maker: RunMaker) -> None:
    directory = run_maker()
    kinds = dict.fromkeys(("repetition", "truncation", "leaked_template", "leaked_teacher", "broken_blocks"), 0.25)
    measures = [
        record("artefact_rate", 0.5, "none", by=kinds),
        record("artefact_rate_change", -0.125, by=kinds),
        record("ngram_growth", 7.25, by={"```": 7.25, "a | b": 6.0}),
    ]
    rewrite(directory, {"schema_version": 2, "measures": measures})
    text = render_report_without_hashes(directory)
    assert "| chemistry | 50.0 (-12.5) | 25.0 (+25.0) |" in text
    assert "```` ``` ```` 7.2, `a | b` 6.0" in text


def render_report_without_hashes(directory: Path) -> str:
    from cl_bench.reports.report import markdown

    return markdown(load_run(directory, verify=False))


def test_a_run_of_the_first_version_has_no_panel(run_maker: RunMaker) -> None:
    directory = run_maker()
    rewrite(directory, {"schema_version": 1, "forward_kl": {}, "forward_kl_trained": 0.5})
    assert grids(directory) == {}
    assert "## Distribution shift" not in render_report_without_hashes(directory)
