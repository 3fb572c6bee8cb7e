"""Files with anything in them: a message for people or the right result, never a trace, never a hang."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cl_bench.harness.cli import exit_code_of
from cl_bench.harness.errors import ClBenchError
from cl_bench.harness.files import hash_tree
from cl_bench.harness.registry import Registry
from cl_bench.harness.request import read_request
from cl_bench.harness.run_directory import load_run
from cl_bench.harness.spec import RunSpec
from cl_bench.harness.yaml_files import dump_yaml, parse_yaml
from cl_bench.sequences.loader import load_sequence
from cl_bench.tasks.retention.suites import load_suite
from cl_bench.tasks.sources.base import DataOptions
from tests.compare.small_runs import make_run, spec_of
from tests.faults.mutations import damaged, files
from tests.tasks.sources.rows import science_row, tool_row

SEQUENCES = Path(__file__).parents[2] / "sequences"
SUITES = Path(__file__).parents[2] / "tasks/retention"


def cases(count: int) -> settings:
    return settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
    )


def read(reader: Callable[[], Any]) -> Any:
    """The result, or the error for people; anything else fails the test."""
    try:
        return reader()
    except ClBenchError as error:
        assert error.what and error.exit_code in (1, 2, 3)
        return error


def command(*arguments: str) -> tuple[int, str]:
    """Exit code and stderr of a command line, which never shows a trace."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = exit_code_of(arguments)
    assert "Traceback" not in err.getvalue(), err.getvalue()
    return code, err.getvalue()


SPEC = spec_of().model_dump(mode="json")


@cases(700)
@given(data=files(SPEC, dump_yaml))
def test_specifications(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_bytes(data)
    found = read(lambda: read_request(path))
    if not isinstance(found, ClBenchError):
        spec = read(lambda: RunSpec.from_yaml(path.read_text()))
        if isinstance(spec, RunSpec):
            assert RunSpec.from_yaml(spec.to_yaml()).digest() == spec.digest()


@cases(400)
@given(data=files(yaml.safe_load((SEQUENCES / "full.yaml").read_text()), dump_yaml))
def test_sequences(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "full.yaml"
    path.write_bytes(data)
    read(lambda: load_sequence(path))


@cases(350)
@given(data=files(yaml.safe_load((SUITES / "lab.yaml").read_text()), dump_yaml))
def test_suites(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "lab.yaml"
    path.write_bytes(data)
    read(lambda: load_suite(path))


def lines(rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows) if isinstance(rows, list) else json.dumps(rows) + "\n"


@cases(150)
@given(data=files([science_row(number, id=f"c-{number}") for number in range(3)], lines))
def test_science_rows(data: bytes, tmp_path: Path) -> None:
    check_task("chemistry", "science_chemistry.jsonl", data, tmp_path)


@cases(100)
@given(data=files([tool_row(number) for number in range(3)], lines))
def test_tool_rows(data: bytes, tmp_path: Path) -> None:
    check_task("tool-use", "tooluse_train.jsonl", data, tmp_path)


def check_task(name: str, file: str, data: bytes, folder: Path) -> None:
    (folder / file).write_bytes(data)
    task = read(lambda: Registry().task(name, DataOptions("hub", folder)))
    if not isinstance(task, ClBenchError):
        rows = read(task.train)
        for row in rows if not isinstance(rows, ClBenchError) else ():
            assert row.messages and task.score(row, "A").correct in (True, False)


@pytest.fixture(scope="module")
def run_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of small documents."""
    return make_run(tmp_path_factory.mktemp("runs"), samples=3)


STATUS = {
    "schema_version": 1, "state": "running", "updated": "2026-01-01T00:00:00", "stage": "chemistry", "phase": "adapt",
    "pid": 7, "host": "elsewhere", "heartbeat": "2026-01-01T00:00:00+00:00",
    "memory": {"resident_bytes": 2**30, "available_bytes": 2**20},
}  # fmt: skip


@cases(120)
@given(data=files(STATUS, json.dumps))
def test_status_files(data: bytes, run_directory: Path) -> None:
    path = run_directory / "status.json"
    before = path.read_bytes()
    try:
        path.write_bytes(data)
        found = read(lambda: load_run(run_directory))
        if not isinstance(found, ClBenchError):
            assert isinstance(found.status, dict)
        assert command("show", "run", str(run_directory))[0] in (0, 1, 2)
    finally:
        path.write_bytes(before)


@cases(80)
@given(data=files([{"id": f"c-{n}", "correct": n == 1, "parsed": "A", "format_ok": True} for n in range(3)], lines),
       known=st.booleans())  # fmt: skip
def test_answers(data: bytes, known: bool, run_directory: Path, tmp_path: Path) -> None:
    copied = tmp_path / run_directory.name
    shutil.rmtree(copied, ignore_errors=True)
    shutil.copytree(run_directory, copied)
    stage = copied / "stages" / "01-chemistry"
    (stage / "eval" / "chemistry" / "samples.jsonl").write_bytes(data)
    if known:  # hashes that fit, as of a file that was broken when it was written
        done = json.loads((stage / "done.json").read_text())
        (stage / "done.json").write_text(json.dumps({**done, "files": hash_tree(stage, skip=["done.json"])}))
    code, err = command("show", str(copied), "--items", "--task", "chemistry", "--forgotten")
    assert code in (0, 1, 2)
    if not known:
        assert code != 0 and "damaged" in err


@cases(200)
@given(data=damaged("a: &x [1, 2]\nb: *x\nc: {d: 2001-01-01, e: 1e5}\n"))
def test_yaml_itself(data: bytes) -> None:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    read(lambda: parse_yaml(text, "here"))


@pytest.mark.parametrize(
    "text",
    [
        "a: !!python/object/apply:os.system ['touch /tmp/never']",
        "a: !!python/name:os.system",
        "a: 2001-99-99",
        "a: " + "9" * 5000,
        "[" * 5000,
        "a: &a [*a]",
        "a: &a {b: *a}",
        "? [1, 2]\n: 3",
        "\n".join(["a0: &a0 [x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12))]),
        "x" * 5_000_000,
    ],
    ids=[
        "python object",
        "python name",
        "date",
        "number",
        "depth",
        "itself",
        "itself in a map",
        "key",
        "laughs",
        "size",
    ],
)
def test_hostile_yaml_is_refused_with_exit_2(text: str, tmp_path: Path) -> None:
    (tmp_path / "sequences").mkdir()
    path = tmp_path / "sequences" / "mine.yaml"
    path.write_text(text)
    code, err = command("run", "--sequence", "mine", "--include-path", str(tmp_path), "--method", "sft")
    assert code == 2 and str(path) in err
    code, err = command("run", str(path))
    assert code == 2 and str(path) in err
    assert not Path("/tmp/never").exists()
