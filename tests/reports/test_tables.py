"""The tables people read: every number where it belongs, nulls with their reasons."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from cl_bench.harness.errors import NotComparableError, StoreError
from cl_bench.harness.store import Store
from cl_bench.reports.content import Grid, count
from cl_bench.reports.tables import render_run, render_seeds, split_columns
from tests.reports.conftest import VALUES, RunMaker


def numbers_after(text: str, label: str) -> list[str]:
    """The cells of the first line that begins with the label."""
    line = next(line for line in text.splitlines() if line.strip().startswith(label))
    return line.strip().removeprefix(label).split()


def test_matrix_metrics_cost_and_provenance(run_maker: RunMaker) -> None:
    text = render_run(run_maker(), width=120)
    assert text.startswith("synthself on science, lab-m, seed 0\n")
    assert numbers_after(text, "base") == ["20.0", "30.0"]
    assert numbers_after(text, "biology") == ["70.0", "[80.0]"]
    assert numbers_after(text, "retention change")[0] == "-5.0"
    assert numbers_after(text, "forgetting")[0] == "+20.0"
    assert numbers_after(text, "backward transfer (BWT)")[0] == "-20.0"
    for expected in ("0.125", "34.6k", "97.5", "lab version 1", "PARTIAL: at most 8 rows", "generated world"):
        assert expected in text
    assert "! biology: nearly all rows were rejected" in text
    assert max(map(len, text.splitlines())) <= 120


def test_missing_benchmark_shows_reason_not_zero(run_maker: RunMaker) -> None:
    text = render_run(run_maker(), width=120)
    assert numbers_after(text, "- gsm8k") == ["(all", "rows):", "data", "absent"]
    retention = text[text.index("Retention (%)") :]
    assert numbers_after(retention, "base") == ["80.0", "-", "80.0"]


def test_run_that_diverged_says_so_and_keeps_its_rows(run_maker: RunMaker) -> None:
    directory = run_maker(values={**VALUES, "biology": (None, None, None, None, None)})
    Store.reopen(directory).status("diverged", stage="biology", reason="loss is not finite")
    text = render_run(directory, width=120)
    assert "! the run is diverged in biology, 3 of 3 rows finished: loss is not finite" in text
    assert numbers_after(text, "chemistry") == ["[90.0]", "35.0"]
    assert numbers_after(text, "biology") == ["-", "[-]"]
    assert numbers_after(text, "forgetting")[0] == "-"


def test_killed_run_is_called_unfinished(run_maker: RunMaker) -> None:
    directory = run_maker()
    store = Store.reopen(directory)
    store.status("running", stage="biology", phase="adapt")
    with store.lock():
        shown = render_run(directory, width=120)
        assert "\nunfinished: still running in biology/adapt, 3 of 3 rows finished\n" in shown
    shown = render_run(directory, width=120)
    assert shown.splitlines()[1].startswith("interrupted in biology/adapt, 3 of 3 rows finished: process unknown on")
    assert "cl-bench resume" in shown


def test_base_run_has_no_stage_table(run_maker: RunMaker) -> None:
    text = render_run(run_maker(values={"base": VALUES["base"]}, bound="base"), width=120)
    assert text.startswith("base on science")
    assert "Stages" not in text and "Generated data" not in text
    assert numbers_after(text, "retention")[0] == "80.0"


def test_run_without_metrics_file_is_computed_from_its_matrix(run_maker: RunMaker) -> None:
    directory = run_maker()
    before = render_run(directory, width=120)
    (directory / "metrics.json").unlink()
    assert render_run(directory, width=120) == before


def test_same_run_gives_same_table_and_no_escapes(run_maker: RunMaker) -> None:
    directory = run_maker()
    assert render_run(directory, width=100) == render_run(directory, width=100)
    assert "\x1b" not in render_run(directory, width=100)


def test_damaged_run_is_refused(run_maker: RunMaker) -> None:
    directory = run_maker()
    (directory / "stages" / "01-chemistry" / "adaptation.json").write_text("{}")
    with pytest.raises(StoreError, match="adaptation.json"):
        render_run(directory)


def test_wide_matrix_is_split_not_squeezed() -> None:
    header = ("after", *(f"benchmark-{i}" for i in range(12)))
    grid = Grid("Retention", header, (("base", *(f"{i}.0" for i in range(12))),), ("note",))
    parts = split_columns(grid, 60)
    assert len(parts) > 1
    assert all(part.header[0] == "after" and part.rows[0][0] == "base" for part in parts)
    assert [name for part in parts for name in part.header[1:]] == list(header[1:])
    assert all(sum(max(len(name), 4) + 3 for name in part.header) <= 60 for part in parts)


def test_seeds_show_mean_spread_and_every_value(run_maker: RunMaker) -> None:
    directories = [run_maker(seed=1, added=0.1), run_maker(seed=0)]
    text = render_seeds(directories, width=120)
    assert text.startswith("synthself on science, lab-m, mean of seeds 0, 1\n")
    assert numbers_after(text, "base") == ["25.0", "35.0"]
    assert numbers_after(text, "average accuracy") == ["80.0", "7.1", "75.0", "85.0"]


def test_mean_is_missing_where_a_seed_is(run_maker: RunMaker) -> None:
    broken = {**VALUES, "biology": (None, 0.8, 0.1, 0.7, None)}
    text = render_seeds([run_maker(), run_maker(seed=1, values=broken)], width=120)
    assert numbers_after(text, "biology")[0] == "-"
    assert numbers_after(text, "average accuracy") == ["-", "-", "75.0", "-"]
    assert "1 of 2 seeds: data absent" in text


def test_runs_of_different_recipes_are_not_averaged(run_maker: RunMaker) -> None:
    with pytest.raises(NotComparableError) as refused:
        render_seeds([run_maker(), run_maker(seed=1, recipe="table5")])
    assert refused.value.exit_code == 3
    assert "recipe" in refused.value.why
    with pytest.raises(NotComparableError, match="twice"):
        render_seeds([run_maker(), run_maker()])


def test_counts_are_short() -> None:
    numbers = (0, 950, 9_999, 12_345, 2_500_000, 4e12)
    assert [count(number) for number in numbers] == ["0", "950", "9999", "12.3k", "2.5M", "4.0T"]


def test_reports_import_no_torch() -> None:
    code = "import sys, cl_bench.reports.tables, cl_bench.reports.report; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path.home(), timeout=60)


def test_title_is_not_repeated_in_split_parts(run_maker: RunMaker) -> None:
    text = render_run(run_maker(), width=60)
    assert len(re.findall(r"^Stages$", text, flags=re.MULTILINE)) == 1
