"""A whole run on public data: a tiny random model over the sequence ``full`` and the suite ``retention-14``."""

from __future__ import annotations

import json
import os
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.compare import only_run, results_of
from tests.end_to_end.conftest import Cli
from tests.support import tiny_model
from tests.tasks.retention.rows import write_flat
from tests.tasks.sources.rows import science_row, tool_row, write_jsonl

pytestmark = pytest.mark.end_to_end

SAMPLE = os.environ.get("CL_BENCH_SAMPLE_ROWS")
STAGES = ["chemistry", "biology", "materials", "physics", "tool-use", "math"]
BENCHMARKS = 14


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model whose answers end soon, with room for long prompts of one token a byte."""
    folder = tmp_path_factory.mktemp("models") / "tiny"
    chat = tiny_model(context_length=40_000, ends=30.0)
    chat.model.save_pretrained(folder)
    chat.tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def invented(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Flat files of invented rows for every task and benchmark."""
    root = write_flat(tmp_path_factory.mktemp("data"))
    for subject in ("chemistry", "biology", "material", "physics"):
        rows = (science_row(number, id=f"{subject}-{number}") for number in range(30))
        write_jsonl(root / f"science_{subject}.jsonl", rows)
    write_jsonl(root / "tooluse_train.jsonl", (tool_row(number) for number in range(20)))
    write_jsonl(root / "tooluse_eval.jsonl", (tool_row(number) for number in range(100, 110)))
    return root


@pytest.fixture()
def no_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever opens a connection or looks up a name fails, this machine's own included."""

    def refuse(*arguments: Any, **_: Any) -> Any:
        raise AssertionError(f"a socket was used: {arguments}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def run(cli: Cli, model: Path, root: Path, folder: Path, *more: str) -> dict[str, Any]:
    folder.mkdir(exist_ok=True)
    done = cli(
        *("run", "--profile", "laptop", "--model", str(model), "--method", "sft", "--sequence", "full"),
        *("--suite", "retention-14", "--tier", "smoke", "--limit", "4", "--data-root", str(root), "--offline"),
        *("--threads", "1", "--quiet", "--set", "method.max_length=20000", "--output", str(folder), *more),
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads((only_run(folder) / "matrix.json").read_text())
    return document


@pytest.mark.usefixtures("no_sockets")
def test_a_run_over_everything_ends_with_all_cells(cli: Cli, model: Path, invented: Path, tmp_path: Path) -> None:
    matrix = run(cli, model, invented, tmp_path, "--allow-code-execution", "--set", "evaluation.samples=2")
    assert matrix["rows"] == ["base", *STAGES]
    retention = [column["name"] for column in matrix["columns"] if column["kind"] == "retention"]
    assert len(retention) == BENCHMARKS
    missing = {name: matrix["reasons"].get(f"base/{name}") for name, v in matrix["values"]["base"].items() if v is None}
    assert missing == {}
    run_directory = only_run(tmp_path)
    check_what_stands_beside_cells(run_directory, matrix)
    before = results_of(run_directory)
    again = cli("score", str(run_directory), "--json", "--allow-code-execution", cwd=tmp_path)
    assert again.returncode == 0, again.stdout + again.stderr
    cells = json.loads(again.stdout)["cells"]
    assert {name: cell["rescored"] for name, cell in cells.items()} == {
        f"{row}/{column}": value for row, values in matrix["values"].items() for column, value in values.items()
    }
    assert results_of(run_directory) == before


def check_what_stands_beside_cells(directory: Path, matrix: dict[str, Any]) -> None:
    """Baselines of multiple-choice tasks, and the scores of two sampled answers an item, tasks and suite alike."""
    chemistry = next(column for column in matrix["columns"] if column["name"] == "chemistry")
    assert set(chemistry["baselines"]) == {"chance", "majority_letter", "middle_value"}
    assert 0 <= matrix["counts"]["math"]["chemistry"]["options_only"] <= 4
    for column in ("chemistry", "math", "gsm8k", "humaneval"):
        results = json.loads((directory / "stages" / "06-math" / "eval" / column / "results.json").read_text())
        assert {"avg@2,none", "pass@2,none"} <= set(results["results"][column])
        assert ("maj@2,none" in results["results"][column]) == (column != "humaneval"), "programs are never equal"
        assert results["intervals"] == {}, "four items are too few for an interval"
    report = (directory / "report.md").read_text()
    assert "pass@2 of sampled answers" in report and "question hidden, math" in report


@pytest.mark.usefixtures("no_sockets")
def test_programs_are_not_run_unasked(cli: Cli, model: Path, invented: Path, tmp_path: Path) -> None:
    matrix = run(cli, model, invented, tmp_path)
    for name in ("humaneval", "mbpp"):
        assert matrix["values"]["math"][name] is None
        assert "programs" in matrix["reasons"][f"math/{name}"]
    assert matrix["values"]["math"]["gsm8k"] is not None


@pytest.mark.skipif(not SAMPLE, reason="CL_BENCH_SAMPLE_ROWS names no folder with real rows")
@pytest.mark.usefixtures("no_sockets")
def test_the_same_on_real_rows(cli: Cli, model: Path, invented: Path, tmp_path: Path) -> None:
    root = tmp_path / "data"
    shutil.copytree(invented, root)
    for path in Path(str(SAMPLE)).glob("*.jsonl"):
        shutil.copyfile(path, root / path.name)
    matrix = run(cli, model, root, tmp_path / "runs", "--allow-code-execution")
    assert matrix["rows"] == ["base", *STAGES]
    assert all(value is not None for value in matrix["values"]["math"].values())
