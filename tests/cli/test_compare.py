"""``cl-bench compare`` and ``cl-bench report`` as a user calls them."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from cl_bench.harness.escaping import visible
from tests.cli.conftest import Cli
from tests.compare.small_runs import make_run


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two methods over two seeds."""
    for method in ("sft", "sdft"):
        for seed in (0, 1):
            make_run(tmp_path / "runs", method, seed, samples=2)
    return tmp_path / "runs"


def test_each_format_prints_itself_and_nothing_else(cli: Cli, runs: Path) -> None:
    done = {form: cli("compare", "runs", "--format", form) for form in ("text", "markdown", "csv", "json")}
    assert {form: (found.code, found.err) for form, found in done.items()} == dict.fromkeys(done, (0, ""))
    assert "Methods on chemistry+biology" in done["text"].out and "──" in done["text"].out
    assert done["markdown"].out.startswith("# Comparison of runs\n") and "| sdft |" in done["markdown"].out
    assert {row["method"] for row in csv.DictReader(io.StringIO(done["csv"].out))} == {"sft", "sdft"}
    assert done["json"].out.count("\n") == 1 and len(json.loads(done["json"].out)["runs"]) == 4
    assert cli("compare", "runs", "--json").out == done["json"].out
    assert cli("compare", "runs").out == done["text"].out


def test_a_pattern_is_expanded_where_the_shell_does_not(cli: Cli, runs: Path) -> None:
    done = cli("compare", "runs/*/sdft/*", "--json")
    assert done.code == 0 and len(json.loads(done.out)["runs"]) == 2


def test_output_receives_page_tables_and_figures(cli: Cli, runs: Path, tmp_path: Path) -> None:
    done = cli("compare", "runs", "--output", "study")
    assert done.code == 0
    names = {path.name for path in (tmp_path / "study").iterdir()}
    assert names >= {
        "compare.md", "compare.json", "methods.csv", "differences.csv", "points.csv", "retention-acquisition.png",
        "shift-retention-change-primary.png",
    }  # fmt: skip
    page = (tmp_path / "study" / "compare.md").read_text()
    assert all(f"({name})" in page for name in names if name.endswith(".png"))


def test_runs_that_are_not_comparable_are_refused_with_their_fields(cli: Cli, runs: Path, tmp_path: Path) -> None:
    make_run(runs, "dft", recipe="reference")
    done = cli("compare", "runs", "--output", "study")
    assert done.code == 3 and done.out == "" and "recipe" in done.err and "--mark" in done.err
    assert not (tmp_path / "study").exists()
    failed = json.loads(cli("compare", "runs", "--json").out)
    assert failed["exit_code"] == 3 and "recipe" in failed["error"]["what"]
    marked = cli("compare", "runs", "--mark")
    assert marked.code == 0 and "dft *" in marked.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nothing",), "there is no nothing"),
        (("runs", "--reference", "sdftt"), "did you mean sdft"),
        (("runs", "--format", "html"), "html"),
        (("runs", "--json", "--format", "csv"), "exclude each other"),
        (("runs", "--output", "runs/file"), "not a folder"),
        (("runs", "--output", "runs/file/inside"), "cannot be made"),
        (("",), "there is no place without a name"),
        (("runs/[",), "there is no runs/["),
        (("runs/file", "--format", ""), "--format"),
        ((), "Missing argument"),
    ],
)
def test_a_wrong_request_is_said_to_be_one(cli: Cli, runs: Path, arguments: tuple[str, ...], said: str) -> None:
    (runs / "file").write_text("")
    done = cli("compare", *arguments)
    assert done.code == 2 and said in done.err


def test_damaged_samples_are_named_and_the_rest_is_compared(cli: Cli, runs: Path) -> None:
    samples = next(runs.glob("*/sdft/*-s1-*/stages/02-*/eval/*/samples.jsonl"))
    samples.write_text(samples.read_text().replace("x", "y"))
    done = cli("compare", "runs")
    assert done.code == 0 and "samples.jsonl is damaged" in done.out.replace("\n", " ")


def test_report_writes_page_and_figure_anew(cli: Cli, runs: Path) -> None:
    run = next(runs.glob("*/sft/*"))
    done = cli("report", str(run))
    assert done.code == 0 and done.out.splitlines() == [str(run / "report.md"), str(run / "matrix.png")]
    written = (run / "report.md").read_text()
    assert written.startswith("# sft on chemistry+biology") and "![matrix](matrix.png)" in written
    (run / "report.md").write_text("")
    found = json.loads(cli("report", str(run), "--json").out)
    assert found["files"][0] == str(run / "report.md") and (run / "report.md").read_text() == written


def test_report_needs_a_run_that_is_whole(cli: Cli, runs: Path) -> None:
    assert cli("report", "runs").code == 2
    samples = next(runs.glob("*/sft/*/stages/02-*/eval/*/samples.jsonl"))
    samples.unlink()
    done = cli("report", str(samples.parents[4]))
    assert done.code == 1 and "samples.jsonl" in done.err


def test_a_file_that_cannot_be_written_is_named(cli: Cli, runs: Path, tmp_path: Path) -> None:
    (tmp_path / "study" / "compare.md").mkdir(parents=True)
    done = cli("compare", "runs", "--output", "study")
    assert done.code == 1 and "error: cannot read or write study/compare.md" in done.err and "--output" in done.err
    run = next(runs.glob("*/sft/*"))
    (run / "report.md").mkdir()
    done = cli("report", str(run))
    assert done.code == 1 and f"cannot read or write {run / 'report.md'}" in done.err


def test_documents_of_another_form_end_in_a_message(cli: Cli, runs: Path) -> None:
    run = next(runs.glob("*/sft/*"))
    for name, content in {"matrix.json": "{}", "manifest.json": '{"sessions": [1]}', "status.json": "[]"}.items():
        before = (run / name).read_text()
        (run / name).write_text(content)
        for arguments in (("report", run), ("show", run), ("show", run, "--items"), ("show", run, "--json")):
            done = cli(*map(str, arguments))
            assert done.code == 1 and name in done.err and "why: " in done.err and "Traceback" not in done.err
        done = cli("compare", "runs")
        assert done.code == 0 and "left out" in done.out and "Traceback" not in done.err
        (run / name).write_text(before)


@pytest.mark.parametrize("form", ["text", "markdown", "csv"])
def test_names_give_no_orders_to_whoever_reads_them(cli: Cli, runs: Path, form: str) -> None:
    name = "\x1b[2J<script>x</script>|[a](http://b)"
    for seed in (0, 1):
        make_run(runs, name, seed)
    done = cli("compare", "runs", "--format", form, "--output", "study")
    assert done.code == 0 and "\x1b" not in done.out + done.err
    page = (runs.parent / "study" / "compare.md").read_text()
    assert "<script" not in page and "\x1b" not in page and "\\|\\[a](http://b)" in page
    table = (runs.parent / "study" / "methods.csv").open(newline="")
    assert {row["method"] for row in csv.DictReader(table)} == {"sft", "sdft", visible(name)}
