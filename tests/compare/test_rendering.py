"""What a comparison says: text, Markdown, CSV and figures."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest

from cl_bench.harness.compare.comparison import Comparison, compare_runs, to_json
from cl_bench.harness.documents import validate_document
from cl_bench.reports import compare_plots
from cl_bench.reports.compare import markdown, text
from cl_bench.reports.compare_csv import differences_csv, methods_csv, points_csv
from cl_bench.reports.compare_plots import figures, label_of, tradeoff
from cl_bench.reports.compare_styles import styles
from cl_bench.reports.content import nats
from tests.compare.small_runs import VALUES, Values, make_run

PNG = b"\x89PNG\r\n\x1a\n"
NOISE = (0.01, -0.02, 0.03, 0.0, -0.01)


def kept(by: float, luck: float) -> Values:
    """The values with the retention of all trained rows higher."""
    return {
        row: values if row == "base" else [*values[:2], *((value or 0) + by + luck for value in values[2:])]
        for row, values in VALUES.items()
    }


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two methods over five seeds, a third over two, and the untouched model."""
    folder = tmp_path_factory.mktemp("study")
    for seed, luck in enumerate(NOISE):
        for method, by in (("sft", 0.0), ("sdft", 0.15), ("dft", 0.05)):
            if method != "dft" or seed < 2:
                shifts = {row: 0.6 - 2 * by + luck for row in VALUES}
                make_run(folder, method, seed, kept(by, luck if method == "sft" else luck / 2), shifts)
    make_run(folder, "base", values={"base": VALUES["base"]})
    return folder


@pytest.fixture(scope="module")
def comparison(study: Path) -> Comparison:
    return compare_runs([str(study)])


def rows(content: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content)))


def test_text_shows_intervals_from_five_seeds_on_and_values_below(comparison: Comparison) -> None:
    page = text(comparison, width=300)
    lines = {line.split()[0]: line for line in reversed(page.splitlines()) if line.split()[:1]}
    assert "-5.0 [" not in lines["dft"] and "(" in lines["dft"]
    assert "[" in lines["sdft"]
    assert "undefined: the run has no stages" in page and "smallest" not in page
    assert "A claim needs 5 paired seeds" in page and "Acquired at which retention is compared" in page
    assert "dft: 2 paired seeds; a claim needs 5." in page
    assert "they are no benchmark scores" in page


def test_text_fits_a_narrow_terminal(comparison: Comparison) -> None:
    assert max(len(line) for line in text(comparison, width=90).splitlines()) <= 90


def test_markdown_bolds_what_may_be_called_a_difference_and_nothing_else(comparison: Comparison) -> None:
    page = markdown(comparison, {"a figure": "figure.png"})
    lines = [line for line in page.splitlines() if "**" in line]
    assert lines and all(line.startswith("| sdft |") and "| yes |" in line for line in lines)
    assert not [line for line in page.splitlines() if "| yes |" in line and "**" not in line]
    assert "![a figure](figure.png)" in page


def test_csv_holds_every_number(comparison: Comparison) -> None:
    methods = {(row["method"], row["measure"]): row for row in rows(methods_csv(comparison))}
    sdft = methods["sdft", "retention_change"]
    assert float(sdft["mean"]) == pytest.approx(-0.05 + 0.001) and float(sdft["low"]) < -0.05 < float(sdft["high"])
    assert sdft["seeds"] == "0;1;2;3;4" and len(sdft["values"].split(";")) == 5
    assert methods["dft", "gain"]["low"] == "" and methods["base", "gain"]["reason"] == "the run has no stages"
    assert {row["measure"] for row in rows(methods_csv(comparison))} >= {"pflops train", "peak_memory"}
    differences = {(row["method"], row["measure"]): row for row in rows(differences_csv(comparison))}
    assert differences["sdft", "retention_change"]["claim"] == "True"
    assert differences["dft", "retention_change"]["claim"] == "False"
    assert len(rows(points_csv(comparison))) == 24


def test_json_says_the_same_and_has_no_number_that_is_none(comparison: Comparison) -> None:
    document: dict[str, Any] = to_json(comparison)
    validate_document(document, "comparison")
    (panel,) = document["panels"]
    measures = {row["method"]: row["measures"] for row in panel["methods"]}
    assert measures["sdft"]["retention_change"]["mean"] == pytest.approx(-0.049)
    assert measures["base"]["gain"]["mean"] is None and measures["base"]["gain"]["reason"]
    primary = document["relations"][0]
    assert primary["kind"] == "primary" and primary["points"] == 12
    assert primary["pearson"]["value"] == pytest.approx(-0.98, abs=0.03)


def test_every_relation_and_panel_has_a_figure(comparison: Comparison) -> None:
    drawn = figures(comparison)
    assert set(drawn) == {
        "retention-acquisition.png",
        "shift-retention-change-primary.png",
        "shift-retention-change-secondary.png",
        "shift-gain-primary.png",
        "shift-gain-secondary.png",
    }
    assert all(data.startswith(PNG) and len(data) > 5000 for data in drawn.values())


def test_runs_without_shift_have_no_relation_and_no_figure_of_one(tmp_path: Path) -> None:
    for seed in (0, 1):
        make_run(tmp_path, seed=seed, shifts=dict.fromkeys(VALUES))
    found = compare_runs([str(tmp_path)])
    assert set(figures(found)) == {"retention-acquisition.png"}
    assert "Shift and what is forgotten" not in text(found)


def test_left_out_partial_diverged_and_marked_runs_are_named(tmp_path: Path) -> None:
    make_run(tmp_path)
    limited = make_run(tmp_path, seed=1, limit=8)
    diverged = make_run(tmp_path, seed=2, state="diverged", values={**VALUES, "biology": (None,) * 4})
    interrupted = make_run(tmp_path, seed=3, state="interrupted")
    page = text(compare_runs([str(tmp_path)], mark=True), width=250)
    assert f"! left out: {interrupted.resolve()}: unfinished: interrupted" in page
    assert f"! {diverged.resolve()} diverged: the loss is nan" in page
    assert f"! not comparable with most: {limited.resolve()} (limit)" in page
    assert "partial (--limit)" in page and "sft (limit=8) *" in page


def test_what_holds_for_every_panel_is_explained_once(tmp_path: Path) -> None:
    short = {"base": (0.2, 0.6, 0.8), "chemistry": (0.9, 0.5, 0.7)}
    for seed in range(2):
        for method in ("sft", "dft"):
            make_run(tmp_path, method, seed)
            make_run(tmp_path, method, seed, short, stages=("chemistry",))
    page = markdown(compare_runs([str(tmp_path)]))
    assert page.count("## Methods on ") == page.count("## Against sft on ") == page.count("## Cost on ") == 2
    for note in (
        "* acquired: ",
        "* Method minus reference",
        "* p of the paired t test",
        "* Means over seeds. Operations",
    ):
        assert page.count(note) == 1, note
    assert page.count("No differences in BWT, forgetting: undefined: no task was") == 1
    assert "no seed in common" not in page


def cells_of_text(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def cells_of_markdown(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("|")[1:-1]]


def test_text_markdown_csv_and_json_say_the_same_numbers(comparison: Comparison) -> None:
    (panel,) = to_json(comparison)["panels"]
    shown = {
        form: {cells[0]: cells for cells in (split(line) for line in page.splitlines()) if len(cells) == 11}
        for form, split, page in (
            ("text", cells_of_text, text(comparison, 300)),
            ("markdown", cells_of_markdown, markdown(comparison)),
        )
    }
    flat = {(row["method"], row["measure"]): row for row in rows(methods_csv(comparison))}
    for method in panel["methods"]:
        for name, found in method["measures"].items():
            row = flat[method["method"], name]
            assert (float(row["mean"]) if row["mean"] else None) == found["mean"], name
            interval = [float(row["low"]), float(row["high"])] if row["low"] else None
            assert interval == (list(found["interval"]) if found["interval"] else None), name
            assert [float(value) if value else None for value in row["values"].split(";")] == found["values"], name
            assert row["reason"] == found["reason"], name
        gain, change = (method["measures"][name]["mean"] for name in ("gain", "retention_change"))
        for form, lines in shown.items():
            cells = lines[method["method"]]
            expected = ["-" if value is None else f"{100 * value:+.1f}" for value in (gain, change)]
            assert [cell.split(" ")[0] for cell in cells[3:5]] == expected, form
    for entry in panel["differences"]["entries"]:
        (row,) = [
            one
            for one in rows(differences_csv(comparison))
            if (one["method"], one["measure"]) == (entry["method"], entry["measure"])
        ]
        assert (float(row["mean"]) if row["mean"] else None) == entry["difference"]["mean"]
        assert (float(row["p_holm"]) if row["p_holm"] else None) == entry["difference"]["p"]
        assert (row["claim"] == "True") is entry["difference"]["claim"]


def test_a_reason_that_all_methods_share_names_none_of_them(comparison: Comparison) -> None:
    page = markdown(comparison)
    assert "* - intransigence (all methods): undefined: no joint run" in page
    assert "(base): undefined: the run has no stages" in page


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "-"), (0.0, "0.000"), (1.25, "1.250"), (0.0123, "0.012"), (0.00042, "0.00042"), (-1.23e-6, "-1.2e-06")],
)
def test_a_small_shift_is_not_shown_as_none(value: float | None, shown: str) -> None:
    assert nats(value) == shown
    assert value is None or nats(value, signed=True) == (shown if value < 0 else f"+{shown}")


@pytest.mark.parametrize("name", ["$\\frac{$", "$x", "_hidden", "\x1b[2J", "名前", "x" * 200, "a\nb"])
def test_figures_show_any_name_as_it_is(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for method in ("sft", "dft"):
        for seed in (0, 1):
            make_run(tmp_path, method, seed, shifts={row: 0.1 + 0.1 * seed for row in VALUES})
    monkeypatch.setattr(compare_plots, "label_of", lambda _: label_of(name))
    drawn = figures(compare_runs([str(tmp_path)]))
    assert len(drawn) == 5 and all(data.startswith(PNG) for data in drawn.values())
    assert len(label_of(name)) <= 30 and not label_of(name).startswith("_") and "\x1b" not in label_of(name)


def test_the_legend_of_many_methods_lies_within_the_figure(tmp_path: Path) -> None:
    for number in range(40):
        make_run(tmp_path, f"a-method-with-a-long-name-{number}")
    (panel,) = compare_runs([str(tmp_path)]).panels
    figure = tradeoff(panel, styles(row.label for row in panel.rows))
    assert figure is not None
    figure.draw_without_rendering()
    (axes,) = figure.axes
    legend = axes.get_legend()
    assert legend is not None and len(legend.get_texts()) == 40
    box, whole = legend.get_window_extent(), figure.bbox
    assert box.y0 >= whole.y0 and box.y1 <= whole.y1 and box.x1 <= whole.x1
    assert axes.get_window_extent().height > whole.height / 2


def test_a_title_is_not_broken_where_its_table_ends(tmp_path: Path) -> None:
    make_run(tmp_path)
    assert "Methods on chemistry+biology, lab-m, continued\n" in text(compare_runs([str(tmp_path)]), width=60)
