"""Plug-ins that exit, raise or go round in circles: they are named, and everything beside them works."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cl_bench.harness.errors import ClBenchError, UsageError, words_of
from cl_bench.harness.plugins import Source, foreign_code, kind_by_content, load_module
from cl_bench.tasks.loader import load_task
from cl_bench.tasks.sources.base import DataOptions
from cl_bench.tasks.sources.needed import task_needs
from tests.end_to_end.conftest import call

MUTE = """
class Mute(Exception):
    def __str__(self):
        raise ValueError("no words")


raise Mute
"""
TASK = """
from cl_bench.tasks.base import Task


class Mine(Task):
    def __init__(self, options):
        {made}

    @property
    def chance(self):
        {chance}

    def train(self):
        return []

    dev = test = score = train
"""
SAYS = "{name: broken, title: B, sources: {hub: {kind: python, file: broken.py, class: Mine}}}"
METHOD = """
from cl_bench.methods.base import Fidelity, Method, MethodSettings


class Broken(Method):
    name = "broken"
    fidelity = Fidelity.RECONSTRUCTED
    Settings = MethodSettings
    needs = {needs}

    def adapt(self, student, stage, context):
        raise NotImplementedError
"""


def listed(kind: str, own: Path) -> dict[str, str]:
    """Lines of ``cl-bench list`` by the name that they begin with; the JSON must have the same names."""
    done = call("list", kind, "--include-path", str(own), cwd=own)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    lines = {line.split()[0]: line for line in done.stdout.splitlines()}
    as_json = call("list", kind, "--json", "--include-path", str(own), cwd=own)
    assert {row["name"] for row in json.loads(as_json.stdout)} == set(lines)
    return lines


def own_task(own: Path, python: str, says: str = SAYS) -> Path:
    (own / "tasks").mkdir(exist_ok=True)
    (own / "tasks" / "broken.py").write_text(python)
    (own / "tasks" / "broken.yaml").write_text(says)
    return own / "tasks" / "broken.yaml"


BROKEN_TASKS = {
    "exits": ("import sys\nsys.exit(0)\n", "SystemExit: 0"),
    "raises": ("raise RuntimeError('boom')\n", "RuntimeError: boom"),
    "no words": (MUTE, "Mute"),
    "exits when made": (TASK.format(made="raise SystemExit(0)", chance="return 0.5"), "SystemExit: 0"),
    "raises when made": (TASK.format(made="raise OSError('disk')", chance="return 0.5"), "OSError: disk"),
    "raises when read": (TASK.format(made="pass", chance="raise LookupError('lost')"), "LookupError: lost"),
    "no number": (TASK.format(made="pass", chance="return object()"), "TypeError"),
    "no such class": ("Other = 1\n", "AttributeError"),
    "no class": ("Mine = 1\n", "TypeError"),
}


@pytest.mark.parametrize(("python", "words"), BROKEN_TASKS.values(), ids=BROKEN_TASKS)
def test_a_task_that_fails_is_listed_by_name_beside_the_others(python: str, words: str, tmp_path: Path) -> None:
    own_task(tmp_path, python)
    lines = listed("tasks", tmp_path)
    assert "cannot be read" in lines["broken"] and words in lines["broken"]
    assert "cannot be read" not in lines["gsm8k"] and "openai/gsm8k" in lines["gsm8k"]


@pytest.mark.parametrize("kind", ["exits", "raises", "no words", "exits when made", "no such class"])
def test_a_task_that_fails_is_a_usage_error_that_names_its_file(kind: str, tmp_path: Path) -> None:
    path = own_task(tmp_path, BROKEN_TASKS[kind][0])
    with pytest.raises(UsageError, match=r"broken\.py") as caught:
        load_task(path, DataOptions("hub", tmp_path))
    assert BROKEN_TASKS[kind][1] in caught.value.why


def test_ctrl_c_while_a_task_is_made_stays_ctrl_c(tmp_path: Path) -> None:
    path = own_task(tmp_path, "raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        load_task(path, DataOptions("hub", tmp_path))


MIXTURE = "{{name: {name}, title: M, sources: {{hub: {{kind: mixture, parts: {parts}}}}}}}"


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ("[broken]", "not so: broken"),
        ("[other, other]", "not so: other"),
        ("[../broken]", "beside it"),
        ("[/etc/passwd]", "beside it"),
        ("broken", "no list"),
        ("[5]", "5.yaml"),
    ],
)
def test_a_mixture_of_itself_is_named(parts: str, words: str, tmp_path: Path) -> None:
    path = own_task(tmp_path, "", MIXTURE.format(name="broken", parts=parts))
    (tmp_path / "tasks" / "other.yaml").write_text(MIXTURE.format(name="other", parts="[broken, broken]"))
    for use in (lambda: load_task(path, DataOptions("hub", tmp_path)), lambda: task_needs("broken", path, [])):
        with pytest.raises(UsageError) as caught:
            use()
        assert words in str(caught.value)
    assert "cannot be read" in listed("tasks", tmp_path)["broken"]


@pytest.mark.parametrize("file", ["../elsewhere.py", "ABSOLUTE", "a/../../elsewhere.py", "5"])
def test_a_task_file_names_no_code_outside_its_folder(file: str, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.py"
    elsewhere.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    file = str(elsewhere) if file == "ABSOLUTE" else file
    path = own_task(tmp_path, "", SAYS.replace("broken.py", file))
    with pytest.raises(UsageError, match="beside it"):
        load_task(path, DataOptions("hub", tmp_path))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "sources", ["{hub: 5}", "{hub: [1]}", "{hub: {kind: [a]}}", "{hub: {kind: gsm8k, data: 5}}", "{lab: {kind: lab}}"]
)
def test_sources_of_any_shape_take_no_list_down(sources: str, tmp_path: Path) -> None:
    own_task(tmp_path, "", f"{{name: broken, title: B, sources: {sources}}}")
    assert "cannot be read" in listed("tasks", tmp_path)["broken"]


@pytest.mark.parametrize(
    ("name", "files"), [("../../x", "{test: x}"), ("/x/y", "{test: x}"), ("a/b", "{test: ../x}"), ("a/b", "5")]
)
def test_a_data_set_of_a_task_stays_in_the_data_folder(name: str, files: str, tmp_path: Path) -> None:
    says = f"{{name: broken, title: B, sources: {{hub: {{kind: gsm8k, data: {{path: {name}, files: {files}}}}}}}}}"
    path = own_task(tmp_path, "", says)
    with pytest.raises(UsageError):
        load_task(path, DataOptions("hub", tmp_path))
    assert "cannot be read" in listed("tasks", tmp_path)["broken"]


HOSTILE = {
    "a date": ("a: 2001-99-99", "ValueError"),
    "digits": (f"a: {'9' * 5_000}", "ValueError"),
    "depth": ("[" * 5_000, "RecursionError"),
    "aliases": (
        "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n"
        for a, b in zip("abcdefgh", "bcdefghi", strict=True)), "aliases"),
    "twice": ("name: x\nname: y", "twice"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "words"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_yaml_in_a_task_file_is_a_usage_error(text: str, words: str, tmp_path: Path) -> None:
    path = own_task(tmp_path, "", text)
    with pytest.raises(UsageError, match="cannot be read as a task file") as caught:
        load_task(path, DataOptions("hub", tmp_path))
    assert words in str(caught.value)
    assert "cannot be read" in listed("tasks", tmp_path)["broken"]


@pytest.mark.parametrize(
    "needs", ["frozenset({'aligner'})", "None", "7", "property(lambda self: 1 / 0)", "[__import__('types')]"]
)
def test_a_method_whose_attributes_cannot_be_read_is_listed_by_name(needs: str, tmp_path: Path) -> None:
    (tmp_path / "methods").mkdir()
    (tmp_path / "methods" / "broken.py").write_text(METHOD.format(needs=needs))
    lines = listed("methods", tmp_path)
    assert "cannot be loaded" in lines["broken"] and "sft" in lines


@pytest.mark.parametrize(("body", "words"), [(MUTE, "Mute"), ("import sys; sys.exit(0)", "SystemExit: 0")])
def test_an_import_that_fails_without_words_is_listed_by_name(body: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "methods").mkdir()
    (tmp_path / "methods" / "broken.py").write_text(body)
    lines = listed("methods", tmp_path)
    assert "cannot be loaded" in lines["broken"] and words in lines["broken"] and "sft" in lines
    with pytest.raises(UsageError) as caught:
        load_module(Source("here", tmp_path / "methods" / "broken.py"))
    assert words in caught.value.why


@pytest.mark.parametrize("text", ["a\0b", "(" * 5_000, "x = " + "-" * 20_000 + "1", "\ud800"])
def test_a_file_that_cannot_be_parsed_takes_no_list_down(text: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    assert kind_by_content(path) == "methods"
    assert "cannot be loaded" in listed("methods", tmp_path)["broken"]


class _Mute(Exception):
    def __init__(self, raised: Any) -> None:
        super().__init__()
        self.raised = raised

    def __str__(self) -> str:
        raise self.raised


def test_words_of_an_exception_whose_message_raises() -> None:
    assert words_of(ValueError("oh")) == "ValueError: oh"
    assert words_of(_Mute(ValueError("no"))).startswith("_Mute")
    assert words_of(_Mute(SystemExit(0))).startswith("_Mute")
    with pytest.raises(KeyboardInterrupt):
        words_of(_Mute(KeyboardInterrupt()))


def test_what_foreign_code_raises_is_its_own_fault() -> None:
    with pytest.raises(UsageError) as caught, foreign_code("it fails"):
        raise SystemExit(3)
    assert (caught.value.what, caught.value.why) == ("it fails", "SystemExit: 3")
    for kept in (KeyboardInterrupt(), ClBenchError("told")):
        with pytest.raises(type(kept)) as same, foreign_code("it fails"):
            raise kept
        assert same.value is kept
