from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

from cl_bench.harness.errors import DataError, UnknownNameError, UsageError
from cl_bench.tasks.loader import load_task
from cl_bench.tasks.sources.base import DataOptions
from tests.tasks.sources.rows import math_row, science_row, tool_row, write_jsonl

TASKS = Path(str(files("cl_bench.tasks")))
SCIENCES = ("chemistry", "biology", "materials", "physics")
NAMES = (*SCIENCES, "science-mixture", "tool-use", "math", "coding")


def public_rows(root: Path) -> None:
    for domain in ("chemistry", "biology", "material", "physics"):
        write_jsonl(root / f"science_{domain}.jsonl", [science_row(n, question=f"{domain} {n}?") for n in range(20)])
    for name, first in (("train", 0), ("eval", 100)):
        write_jsonl(root / f"tooluse_{name}.jsonl", [tool_row(first + n) for n in range(20)])
    for name, first in (("train", 1), ("test", 100)):
        write_jsonl(root / f"gsm8k_{name}.jsonl", [math_row(first + n) for n in range(20)])


def test_the_built_in_tasks_are_these() -> None:
    assert {path.stem for path in TASKS.glob("*.yaml")} == set(NAMES)
    for path in TASKS.glob("*.yaml"):
        assert yaml.safe_load(path.read_text())["name"] == path.stem


@pytest.mark.parametrize("name", NAMES)
def test_every_built_in_task_has_lab_rows_and_a_scorer_that_accepts_them(name: str) -> None:
    task = load_task(TASKS / f"{name}.yaml", DataOptions())
    assert task.name == name
    assert len(task.train()) >= 300 and task.dev() and len(task.test()) >= 300 and task.ood()
    for example in task.train()[:20]:
        assert example.task == name and task.score(example, example.demonstration or "").correct


@pytest.mark.parametrize("name", [name for name in NAMES if name != "coding"])
def test_every_public_task_loads_from_a_flat_folder(name: str, tmp_path: Path) -> None:
    public_rows(tmp_path)
    task = load_task(TASKS / f"{name}.yaml", DataOptions("hub", tmp_path))
    assert task.name == name and task.train() and task.dev() and task.test()
    for example in [*task.train(), *task.test()]:
        score = task.score(example, example.demonstration or "")
        assert example.task == name and score.correct and score.format_ok


def test_public_coding_is_refused_with_its_reason(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no rows on the source 'hub'") as caught:
        load_task(TASKS / "coding.yaml", DataOptions("hub", tmp_path))
    assert "untrusted" in caught.value.why


def test_options_of_the_lab_reach_it_and_are_checked() -> None:
    path = TASKS / "chemistry.yaml"
    high, low = (load_task(path, DataOptions(distance=distance)) for distance in ("HI", "LO"))
    assert high.train()[0].demonstration != low.train()[0].demonstration
    with pytest.raises(UnknownNameError, match="'HIGH'"):
        load_task(path, DataOptions(distance="HIGH"))
    with pytest.raises(UnknownNameError, match="order"):
        load_task(path, DataOptions(order="backwards"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("name: x", "not a task file"),
        ("[1, 2]", "not a task file"),
        ("name: [", "cannot be read"),
        ("{name: x, sources: {hub: {kind: gsm8 , data: {}}}}", "gsm8"),
        ("{name: x, sources: {hub: {kind: gsm8k, data: {path: a/b}}}}", "wrong or missing keys"),
        ("{name: x, sources: {hub: {kind: gsm8k, data: {path: a/b, files: {}}, chanse: 1}}}", "chanse"),
        ("{name: x, sources: {hub: {data: {}}}}", "kind"),
        ("{name: x, source: {}, sources: {hub: {kind: gsm8k}}}", "'source'"),
    ],
)
def test_a_broken_task_file_is_a_usage_error(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(content)
    with pytest.raises(UsageError, match=message):
        load_task(path, DataOptions("hub", tmp_path))


def test_a_task_in_python(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from cl_bench.tasks.base import Example, Score, Task\n"
        "class Mine(Task):\n"
        "    name = 'mine'\n"
        "    def __init__(self, options): self.root = options.data_root\n"
        "    def train(self): return [Example('mine', '1', ({'role': 'user', 'content': 'q'},), answer='a')]\n"
        "    dev = test = train\n"
        "    def score(self, example, text): return Score(text == 'a', text, True)\n"
        "class Other:\n"
        "    def __init__(self, options): pass\n"
    )
    path = tmp_path / "mine.yaml"
    path.write_text("{name: mine, sources: {hub: {kind: python, file: mine.py, class: Mine}}}")
    task = load_task(path, DataOptions("hub", tmp_path))
    assert task.score(task.train()[0], "a").correct
    path.write_text("{name: mine, sources: {hub: {kind: python, file: mine.py, class: Other}}}")
    with pytest.raises(UsageError, match="not a Task"):
        load_task(path, DataOptions("hub", tmp_path))
    path.write_text("{name: mine, sources: {hub: {kind: python, file: absent.py, class: Other}}}")
    with pytest.raises(UsageError, match="not a Python file"):
        load_task(path, DataOptions("hub", tmp_path))


SAMPLE = os.environ.get("CL_BENCH_SAMPLE_ROWS")


@pytest.mark.skipif(not SAMPLE, reason="CL_BENCH_SAMPLE_ROWS names no folder with real rows")
@pytest.mark.parametrize("name", [name for name in NAMES if name != "coding"])
def test_gold_answers_of_real_rows_score_one(name: str) -> None:
    task = load_task(TASKS / f"{name}.yaml", DataOptions("hub", Path(str(SAMPLE))))
    for example in [*task.train(), *task.dev(), *task.test()]:
        score = task.score(example, example.demonstration or "")
        assert score.correct and score.format_ok, example.id
