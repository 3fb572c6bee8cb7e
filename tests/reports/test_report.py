"""The heat map and the Markdown report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cl_bench.harness.measure.matrix import Cell, Column, Matrix
from cl_bench.harness.run_directory import load_run
from cl_bench.reports.content import provenance, warnings
from cl_bench.reports.plots import HEATMAP, draw_matrix, heatmap, literal, png
from cl_bench.reports.report import render_report
from tests.compare.small_runs import make_run
from tests.reports.conftest import VALUES, RunMaker, make_matrix, make_spec


def test_heat_map_has_a_cell_for_every_value() -> None:
    from matplotlib.patches import Rectangle

    matrix = make_matrix(VALUES)
    figure = draw_matrix(matrix, {("chemistry", "chemistry"), ("biology", "biology")})
    panels = [axis for axis in figure.axes if axis.images]
    assert [axis.images[0].get_array().shape for axis in panels] == [(3, 2), (3, 1), (3, 2)]  # type: ignore[union-attr]
    written = [text.get_text() for axis in panels for text in axis.texts]
    assert len(written) == 12 and written[0] == "20.0"
    boxes = [patch for axis in panels for patch in axis.patches if isinstance(patch, Rectangle)]
    assert len([box for box in boxes if box.get_hatch()]) == 3  # gsm8k is absent from all rows
    assert len([box for box in boxes if not box.get_hatch()]) == 2


def test_same_matrix_gives_same_picture() -> None:
    matrix = make_matrix(VALUES)
    first, second = (png(draw_matrix(matrix, set())) for _ in range(2))
    assert first == second and first.startswith(b"\x89PNG")


FORMULA = r"a$\frac$b"


def test_heat_map_shows_names_and_prompts_that_look_like_formulas(tmp_path: Path) -> None:
    model = {"name": FORMULA, "fingerprint": "ab" * 32}
    prompt = r"End with $\boxed{answer}$."
    directory = make_run(tmp_path, model=model, evaluation__system_prompt=prompt)
    assert heatmap(directory).startswith(b"\x89PNG")


def test_rows_and_columns_are_no_formulas() -> None:
    matrix = Matrix([Column(FORMULA, "sequence", 0.25, 100, "accuracy")])
    matrix.add_row(f"{FORMULA}\n")
    matrix.set(f"{FORMULA}\n", FORMULA, Cell(0.5))
    figure = draw_matrix(matrix, set())
    assert png(figure).startswith(b"\x89PNG")
    axis = figure.axes[0]
    shown = r"a\$\frac\$b"
    assert [label.get_text() for label in axis.get_xticklabels()] == [shown]
    assert [label.get_text() for label in axis.get_yticklabels()] == [shown + r"\n"]


def test_a_line_that_is_broken_holds_no_formula_either() -> None:
    from matplotlib.figure import Figure

    figure = Figure()
    for width in range(1, 12):
        figure.suptitle(literal(FORMULA * 4, width))
        assert png(figure).startswith(b"\x89PNG")


def test_heat_map_of_nothing_is_a_picture() -> None:
    assert png(draw_matrix(Matrix(()), set())).startswith(b"\x89PNG")


def test_report_holds_what_was_run_and_what_came_out(run_maker: RunMaker) -> None:
    directory = run_maker()
    assert "![matrix]" not in render_report(directory)
    (directory / HEATMAP).write_bytes(heatmap(directory))
    text = render_report(directory)
    for expected in (
        "# synthself on science, lab-m, seed 0",
        "| biology | 70.0 | [80.0] |",
        "![matrix](matrix.png)",
        "| biology | 25.0 | 25.0 | 25.0 |",
        "| template | `a\\|b\\nc` |",
        "gsm8k (all rows): data absent",
        "nearly all rows were rejected",
        "| chemistry | 0.1250 | - |",
        "lab version 1",
    ):
        assert expected in text


@pytest.mark.parametrize("width", [3, 4])
def test_tables_are_rectangular(run_maker: RunMaker, width: int) -> None:
    blocks = [block.splitlines() for block in render_report(run_maker()).split("\n\n") if block.startswith("|")]
    tables = [block for block in blocks if block[0].count(" | ") == width - 1]
    assert tables
    for table in tables:
        assert len({line.replace("\\|", "").count("|") for line in table}) == 1


def test_what_changes_the_prompts_stands_where_runs_are_told_apart() -> None:
    spec = make_spec(0, "lab")
    evaluation = spec.evaluation.model_copy(update={"system_prompt": "Be brief.", "shots": 2})
    data = spec.data.model_copy(update={"option_order": "as-published"})
    model = spec.model.model_copy(update={"thinking": False})
    changed = provenance(spec.model_copy(update={"evaluation": evaluation, "data": data, "model": model}))
    for expected in ("system prompt 'Be brief.'", "2 worked examples", "options as-published", "thinking off"):
        assert expected in changed
        assert expected not in provenance(spec)


def test_fewer_worked_examples_than_the_suite_asks_for_are_said(run_maker: RunMaker) -> None:
    directory = run_maker()
    path = load_run(directory).stages["base"] / "eval" / "piqa" / "results.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    assert not any(text.startswith("piqa: ") for text in warnings(load_run(directory, verify=False)))
    path.write_text(json.dumps({"config": {"shots_reason": "0 of 5 worked examples: their rows are absent"}}))
    said = warnings(load_run(directory, verify=False))
    assert "piqa: 0 of 5 worked examples: their rows are absent" in said
