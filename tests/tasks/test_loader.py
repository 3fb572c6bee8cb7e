from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest
import yaml

from cl_bench.harness.errors import DataError, UnknownNameError, UsageError
from cl_bench.tasks.base import Task
from cl_bench.tasks.loader import load_task, task_editions
from cl_bench.tasks.sources.base import DataOptions
from cl_bench.tasks.sources.hub import HubTask
from cl_bench.tasks.sources.layout import lay_out
from cl_bench.tasks.sources.locate import AbsentDataError
from tests.tasks.sources.rows import (
    competition_row,
    math_row,
    program_row,
    science_row,
    svamp_row,
    tool_row,
    training_row,
    write_jsonl,
)

TASKS = Path(str(files("cl_bench.tasks")))
SCIENCES = ("chemistry", "biology", "materials", "physics")
LAB_NAMES = (*SCIENCES, "science-mixture", "tool-use", "math", "coding")
NAMES = (*LAB_NAMES, "gsm8k", "svamp")


def public_rows(root: Path) -> None:
    for domain in ("chemistry", "biology", "material", "physics"):
        write_jsonl(root / f"science_{domain}.jsonl", [science_row(n, question=f"{domain} {n}?") for n in range(20)])
    for name, first in (("train", 0), ("eval", 100)):
        write_jsonl(root / f"tooluse_{name}.jsonl", [tool_row(first + n) for n in range(20)])
    for name, first in (("train", 1), ("test", 100)):
        write_jsonl(root / f"gsm8k_{name}.jsonl", [math_row(first + n) for n in range(20)])
    write_jsonl(root / "svamp.jsonl", [svamp_row(n) for n in range(3, 23)])
    subjects = ("Algebra", "Counting & Probability")
    write_jsonl(root / "math_train.jsonl", [training_row(n, subjects[n % 2]) for n in range(20)])
    write_jsonl(root / "math500.jsonl", [competition_row(n) for n in range(100, 120)])
    write_jsonl(root / "mbpp_train.jsonl", [program_row(n) for n in range(601, 621)])
    write_jsonl(root / "mbpp_validation.jsonl", [program_row(n) for n in range(511, 516)])
    write_jsonl(root / "mbpp.jsonl", [program_row(n) for n in range(11, 16)])


def public(name: str, root: Path) -> Task:
    return load_task(TASKS / f"{name}.yaml", DataOptions("hub", root))


def test_the_built_in_tasks_are_these() -> None:
    assert {path.stem for path in TASKS.glob("*.yaml")} == set(NAMES)
    for path in TASKS.glob("*.yaml"):
        assert yaml.safe_load(path.read_text())["name"] == path.stem


@pytest.mark.parametrize("name", LAB_NAMES)
def test_lab_tasks_have_rows_and_a_scorer_that_accepts_them(name: str) -> None:
    task = load_task(TASKS / f"{name}.yaml", DataOptions())
    assert task.name == name
    assert len(task.train()) >= 300 and task.dev() and len(task.test()) >= 300 and task.ood()
    for example in task.train()[:20]:
        assert example.task == name and task.score(example, example.demonstration or "").correct


@pytest.mark.parametrize("name", ["gsm8k", "svamp"])
def test_public_word_problems_have_no_rows_in_the_lab(name: str) -> None:
    with pytest.raises(DataError, match="no rows on the source 'lab'") as caught:
        load_task(TASKS / f"{name}.yaml", DataOptions())
    assert "math" in caught.value.why


@pytest.mark.parametrize("name", NAMES)
def test_every_public_task_loads_from_a_flat_folder_and_from_one_like_the_hub(name: str, tmp_path: Path) -> None:
    public_rows(tmp_path / "flat")
    lay_out(tmp_path / "flat", tmp_path / "hub")
    task, same = public(name, tmp_path / "flat"), public(name, tmp_path / "hub")
    assert task.name == name and task.identity() == same.identity()
    sides = [task.train(), task.dev(), task.test()]
    assert all(sides) and sides == [same.train(), same.dev(), same.test()]
    ids = [example.id for side in sides for example in side]
    assert len(set(ids)) == len(ids) == len(task.scorable())
    for example in (example for side in sides for example in side):
        score = task.score(example, example.demonstration or "")
        assert example.task == name and score.correct and score.format_ok, example.id


def test_only_coding_runs_programs(tmp_path: Path) -> None:
    assert [name for name in NAMES if public(name, tmp_path).executes_code] == ["coding"]


def test_numbers_of_rows_of_the_four_sciences_are_declared() -> None:
    editions = {name: task_editions(TASKS / f"{name}.yaml") for name in SCIENCES}
    counts = [edition.expected_rows["test"] for (edition,) in editions.values()]
    assert counts == [3542, 679, 1283, 1498]
    for (edition,) in editions.values():
        assert edition.parts[0].revision and "V2" in edition.mismatch


def test_every_data_set_of_the_hub_has_a_pinned_revision() -> None:
    parts = [part for name in NAMES for edition in task_editions(TASKS / f"{name}.yaml") for part in edition.parts]
    assert len(parts) > 20
    assert [part.path for part in parts if part.on_hub and len(part.revision or "") != 40] == []


def test_math_needs_training_rows_or_stands_in_with_a_remark(tmp_path: Path) -> None:
    with pytest.raises(AbsentDataError) as caught:
        public("math", tmp_path).train()
    assert "math_train.jsonl" in caught.value.why and "math500.jsonl" in caught.value.why
    write_jsonl(tmp_path / "math500.jsonl", [competition_row(n) for n in range(20)])
    task = public("math", tmp_path)
    assert isinstance(task, HubTask)
    assert (len(task.train()), len(task.dev()), len(task.test())) == (14, 2, 4)
    assert task.identity()["test_set"] == {"name": "a fifth of MATH-500", "rows": 4}
    assert any("math_train.jsonl" in remark and "retention" in remark for remark in task.remarks)
    write_jsonl(tmp_path / "math_train.jsonl", [training_row(100 + n) for n in range(20)])
    whole = public("math", tmp_path)
    assert isinstance(whole, HubTask)
    assert (len(whole.train()), len(whole.dev()), len(whole.test())) == (18, 2, 20)
    assert whole.identity()["test_set"] == {"name": "MATH-500", "rows": 20}
    assert not any("retention" in remark for remark in whole.remarks)


def test_coding_never_reads_the_test_rows_of_mbpp(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "mbpp.jsonl", [program_row(n) for n in range(11, 31)])
    with pytest.raises(AbsentDataError, match=r"(?s)coding is not in .*mbpp_train\.jsonl"):
        public("coding", tmp_path).train()
    write_jsonl(tmp_path / "mbpp_train.jsonl", [program_row(n) for n in range(601, 621)])
    task = public("coding", tmp_path)
    assert {example.id for example in task.scorable()} == {f"program-{n}" for n in range(601, 621)}
    assert (len(task.train()), len(task.dev()), len(task.test())) == (14, 2, 4)


def test_the_test_set_of_tool_use_is_named(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "tooluse_train.jsonl", [tool_row(n) for n in range(20)])

    def test_set(name: str, size: int) -> object:
        write_jsonl(tmp_path / name, [tool_row(100 + n) for n in range(size)])
        return public("tool-use", tmp_path).identity()["test_set"]

    assert test_set("tooluse_eval.jsonl", 10) == {"name": "toolalpaca-test", "rows": 10}
    assert test_set("tooluse_eval_97.jsonl", 97) == {"name": "toolalpaca-test-97", "rows": 97}
    assert test_set("tooluse_eval_68.jsonl", 68) == {"name": "toolalpaca-test-68", "rows": 68}
    with pytest.raises(DataError, match="97 test rows instead of 68"):
        test_set("tooluse_eval_68.jsonl", 97)


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
        ("{name: x, sources: {hub: {kind: gsm8k, data: {path: a/b, files: {test: x}}, chanse: 1}}}", "chanse"),
        ("{name: x, sources: {hub: {data: {}}}}", "kind"),
        ("{name: x, sources: {hub: {kind: gsm8k, editions: [{parts: [], path: a/b}]}}}", "beside `parts`: path"),
        ("{name: x, sources: {hub: {kind: gsm8k, data: {path: a/b, files: {train: x}}}}}", "test, or train and test"),
        ("{name: x, source: {}, sources: {hub: {kind: gsm8k}}}", "'source'"),
    ],
)
def test_a_broken_task_file_is_a_usage_error(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(content)
    with pytest.raises(UsageError) as caught:
        load_task(path, DataOptions("hub", tmp_path))
    assert message in str(caught.value)


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
