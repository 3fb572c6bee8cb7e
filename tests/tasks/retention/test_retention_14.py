"""The suite of fourteen on invented rows, and on real ones where the environment names a folder with them."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from importlib.resources import files
from pathlib import Path

import pytest

from cl_bench.harness.generation.local import LocalSampler
from cl_bench.harness.measure.suite import SuiteRunner
from cl_bench.harness.yaml_files import read_mapping
from cl_bench.tasks.retention.benchmarks import NOT_ALLOWED
from cl_bench.tasks.retention.suites import SuiteEntry, load_suite, resolve_suite
from cl_bench.tasks.sources.base import DataOptions
from tests.support import tiny_model
from tests.tasks.retention.oracle import Oracle, gold, gold_of_another_row, run_with, saying
from tests.tasks.retention.rows import COUNT, gold_choice, write_flat, write_hub
from tests.tasks.sources.rows import write_jsonl

SUITE = Path(str(files("cl_bench.tasks.retention"))) / "retention-14.yaml"
ENTRIES = load_suite(SUITE, "full")
NAMES = [entry.name for entry in ENTRIES]
GENERATING = ["ifeval", "mmlu-pro", "humaneval", "mbpp", "gsm8k", "math-500"]
CODE = ["humaneval", "mbpp"]


@pytest.fixture(scope="module")
def flat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_flat(tmp_path_factory.mktemp("flat"))


@pytest.mark.parametrize("name", ["retention-14", "competition-math"])
def test_the_suites_are_plain_lists_that_say_what_they_are(name: str) -> None:
    content = read_mapping(SUITE.with_name(f"{name}.yaml"))
    assert content["name"] == name and content["description"]
    assert name != "retention-14" or content["description"] == "our reading of the 14; 5 are named in the source"


def test_the_list_with_metric_chance_shots_limit_and_group() -> None:
    assert [(e.name, e.metric, e.chance, e.shots, e.max_new_tokens, e.group) for e in ENTRIES] == [
        ("ifeval", "prompt_level_strict_acc", 0.0, 0, 1280, "instruction-following"),
        ("hellaswag", "acc_norm", 0.25, 0, None, "commonsense"),
        ("winogrande", "acc", 0.5, 0, None, "commonsense"),
        ("piqa", "acc_norm", 0.5, 0, None, "commonsense"),
        ("truthfulqa-mc2", "acc", 0.0, 0, None, "knowledge"),
        ("mmlu", "acc", 0.25, 0, None, "knowledge"),
        ("mmlu-pro", "exact_match,custom-extract", 0.111, 5, 2048, "knowledge"),
        ("gpqa-diamond", "acc_norm", 0.25, 0, None, "knowledge"),
        ("arc-challenge", "acc_norm", 0.25, 0, None, "knowledge"),
        ("medmcqa", "acc", 0.25, 0, None, "knowledge"),
        ("humaneval", "pass@1", 0.0, 0, 1024, "code"),
        ("mbpp", "pass@1", 0.0, 3, 512, "code"),
        ("gsm8k", "exact_match,flexible-extract", 0.0, 5, 512, "math"),
        ("math-500", "math_verify", 0.0, 4, 2048, "math"),
    ]
    assert [entry.name for entry in ENTRIES if entry.executes_code] == CODE
    assert not any(entry.chat_template for entry in ENTRIES)
    assert [load_suite(SUITE, tier)[0].rows for tier in ("smoke", "fast", "full")] == [20, 200, None]


def test_gold_scores_one_on_every_benchmark(flat: Path) -> None:
    oracle = gold()
    results = run_with(oracle, ENTRIES, DataOptions("hub", flat, allow_code=True))
    assert list(results) == NAMES
    # Invented instructions have no gold answers; one text meets them all.
    assert {name: result.value for name, result in results.items()} == pytest.approx(dict.fromkeys(NAMES, 1.0))
    for result in results.values():
        assert result.counts["n"] == COUNT == len(result.samples)
        assert result.values["above_chance"] == pytest.approx(1.0) and result.values["parsed_rate"] == 1.0
        assert result.settings["prompts_sha256"] and result.settings["lm_eval"] and result.version
        json.dumps(result.results_json(), allow_nan=False)
    # A definition that is silent about the limit would cut answers at 256 tokens.
    limits = {entry.name: entry.max_new_tokens for entry in ENTRIES if entry.name in GENERATING}
    assert {name: kwargs["max_gen_toks"] for name, kwargs in oracle.settings.items()} == limits


def test_an_empty_answer_scores_nothing(flat: Path) -> None:
    entries = [entry for entry in ENTRIES if entry.name in GENERATING]
    results = run_with(saying(""), entries, DataOptions("hub", flat, allow_code=True), rows=6)
    assert {name: result.value for name, result in results.items()} == dict.fromkeys(GENERATING, 0.0)
    assert {result.values["parsed_rate"] for result in results.values()} == {0.0}


def test_above_chance_is_zero_where_the_value_is_that_of_guessing(flat: Path) -> None:
    entries = [entry for entry in ENTRIES if entry.name in ("mmlu", "piqa")]
    results = run_with(saying(""), entries, DataOptions("hub", flat))
    # The first option is right in every fourth row, or every second.
    assert {name: result.value for name, result in results.items()} == {"mmlu": 0.25, "piqa": 0.5}
    assert {result.values["above_chance"] for result in results.values()} == {0.0}


def test_programs_are_not_run_unless_they_may(flat: Path) -> None:
    entries = [entry for entry in ENTRIES if entry.name in (*CODE, "piqa")]
    for allowed in (False, None):
        results = run_with(gold(), entries, DataOptions("hub", flat, allow_code=allowed), rows=2)
        for name in CODE:
            assert results[name].value is None
            assert results[name].reason == NOT_ALLOWED
        assert results["piqa"].value == 1.0


def test_truthfulqa_is_a_share_not_right_or_wrong(flat: Path) -> None:
    (entry,) = (entry for entry in ENTRIES if entry.name == "truthfulqa-mc2")
    oracle = gold()
    oracle.choice = lambda *_: {0, 1, 2}
    result = run_with(oracle, [entry], DataOptions("hub", flat))["truthfulqa-mc2"]
    # All options are equally likely: one of two is true, or one of three.
    assert sorted({row["score"] for row in result.samples}) == pytest.approx([1 / 3, 1 / 2])
    assert {row["correct"] for row in result.samples} == {None}
    assert result.value == pytest.approx(5 / 12)


def test_the_two_layouts_are_one_suite(flat: Path, tmp_path: Path) -> None:
    hub = write_hub(tmp_path)
    options = [DataOptions("hub", root, offline=True, allow_code=True) for root in (flat, hub)]
    one, other = (run_with(gold(), ENTRIES, option, rows=3) for option in options)
    for name in NAMES:
        assert one[name].samples == other[name].samples and one[name].value == other[name].value
        assert one[name].settings["prompts_sha256"] == other[name].settings["prompts_sha256"]


def test_a_tiny_model_runs_the_smoke_tier(flat: Path, capfd: pytest.CaptureFixture[str]) -> None:
    model = tiny_model(context_length=8000, ends=8)
    options = DataOptions("hub", flat)
    entries = [entry for entry in load_suite(SUITE, "smoke") if entry.name not in CODE]
    runner = SuiteRunner(entries, options)
    assert {name: len(rows) for name, rows in runner.rows().items()} == {e.name: 20 for e in entries}
    assert "_" in runner.rows()["winogrande"][0].question
    row = runner.rows()["mmlu"][0]
    assert row.document["id"] == row.id and row.document["question"].strip() in row.question
    results = runner.run(model, LocalSampler(model))
    for name, result in results.items():
        assert result.value is not None and result.counts["n"] == 20, name
        json.dumps(result.results_json(), allow_nan=False)
    assert capfd.readouterr() == ("", "")


def test_absent_rows_are_a_column_with_a_reason(tmp_path: Path) -> None:
    model = tiny_model()
    options = DataOptions("hub", tmp_path, allow_code=True)
    results = SuiteRunner(ENTRIES, options).run(model, LocalSampler(model))
    assert {result.value for result in results.values()} == {None}
    files = {entry.name: next(iter(entry.data["files"].values())) for entry in ENTRIES}
    assert all(files[name] in str(result.reason) for name, result in results.items())
    resolved = resolve_suite(SUITE, "smoke", options)
    assert [entry["name"] for entry in resolved] == NAMES
    assert tuple(SuiteEntry.from_dict(entry) for entry in resolved) == load_suite(SUITE, "smoke")


def test_a_user_copies_the_list_and_changes_it(flat: Path, tmp_path: Path) -> None:
    import yaml

    from cl_bench.harness.registry import Registry

    mine = yaml.safe_load(SUITE.read_text(encoding="utf-8"))
    mine["name"] = "mine"
    mine["tasks"] = [task for task in mine["tasks"] if task["name"] in ("piqa", "gsm8k")]
    data = {"path": "me/boats", "files": {"validation": "boats.jsonl"}, "fields": {"goal": "str"}}
    mine["tasks"].append({"name": "boats", "task": "piqa", "metric": "acc", "chance": 0.5, "data": data})
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "mine.yaml").write_text(yaml.safe_dump(mine), encoding="utf-8")
    registry = Registry([tmp_path])
    assert "mine" in registry.suites() and "retention-14" in registry.suites()
    write_jsonl(flat / "boats.jsonl", [json.loads(line) for line in (flat / "piqa.jsonl").read_text().splitlines()])
    entries = load_suite(registry.suite_path("mine"), "smoke")
    results = run_with(gold_of("boats", "piqa"), entries, DataOptions("hub", flat))
    assert {name: result.value for name, result in results.items()} == {"piqa": 1.0, "gsm8k": 1.0, "boats": 1.0}


def gold_of(name: str, like: str) -> Oracle:
    """A gold oracle that answers a benchmark of the user's as one that it knows."""
    oracle = gold()
    known = oracle.choice
    oracle.choice = lambda asked, docs, place: known(like if asked == name else asked, docs, place)
    return oracle


SAMPLE = os.environ.get("CL_BENCH_SAMPLE_ROWS")
real_rows = pytest.mark.skipif(not SAMPLE, reason="CL_BENCH_SAMPLE_ROWS names no folder with real rows")
CHOSEN_FROM = ["hellaswag", "piqa", "mmlu", "mmlu-pro"]


def real(names: list[str]) -> tuple[list[SuiteEntry], DataOptions]:
    return [entry for entry in ENTRIES if entry.name in names], DataOptions("hub", Path(str(SAMPLE)), allow_code=True)


@real_rows
@pytest.mark.parametrize(("names", "rows"), [([*CHOSEN_FROM, "gsm8k", "math-500"], None), (CODE, 20)])
def test_gold_answers_of_real_rows_score_one(names: list[str], rows: int | None) -> None:
    results = run_with(gold(), *real(names), rows=rows)
    wrong = {name: [row["id"] for row in result.samples if not row["correct"]] for name, result in results.items()}
    assert wrong == {name: [] for name in names}
    assert {name: result.value for name, result in results.items()} == dict.fromkeys(names, 1.0)


@real_rows
def test_empty_answers_to_real_rows_score_nothing() -> None:
    names = [name for name in GENERATING if name not in CODE]
    results = run_with(saying(""), *real(names))
    assert {name: result.value for name, result in results.items()} == dict.fromkeys(names, 0.0)


@real_rows
def test_answers_of_other_rows_are_right_as_often_as_answers_repeat() -> None:
    entries, options = real(CHOSEN_FROM)
    for name, result in run_with(gold_of_another_row(), entries, options).items():
        answers = Counter(answer_of(name, options, row["id"]) for row in result.samples)
        n = sum(answers.values())
        expected = sum((count / n) ** 2 for count in answers.values())
        error = math.sqrt(expected * (1 - expected) / n)
        assert result.value == pytest.approx(expected, abs=3 * error), name


def answer_of(name: str, options: DataOptions, row_id: str) -> str:
    entry = next(entry for entry in ENTRIES if entry.name == name)
    (file,) = entry.data["files"].values()
    assert options.data_root is not None
    for line in (options.data_root / file).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["id"] == row_id:
            return str(row["answer"] if name == "mmlu-pro" else gold_choice(name, row))
    raise KeyError(row_id)


@real_rows
def test_every_real_instruction_is_checked_without_an_exception() -> None:
    entries, options = real(["ifeval"])
    said = {
        text: run_with(saying(text), entries, options)["ifeval"]
        for text in ("Hello world. This is it.", "The quick brown fox. " * 150, "* one\n* two\n\n<<Title>>\n{}[[\ud800")
    }
    for result in said.values():
        assert result.counts["unreliable"] == 0 and result.counts["n"] == len(result.samples)
        assert set(result.harness) >= {"prompt_level_strict_acc,none", "inst_level_loose_acc,none"}
    # What a text that reads no instruction gets: the floor that the suite's file names.
    floor = said["Hello world. This is it."].value
    assert floor is not None and 0.05 < floor < 0.2
