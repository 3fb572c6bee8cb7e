from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml

from cl_bench.harness.errors import DataError, UsageError
from cl_bench.harness.measure.suite import SuiteRunner
from cl_bench.tasks.retention.benchmarks import Benchmark, benchmark_datasets, build_benchmark
from cl_bench.tasks.retention.definitions import read_definition
from cl_bench.tasks.retention.documents import Documents, row_ids
from cl_bench.tasks.retention.suites import SuiteEntry, load_suite
from cl_bench.tasks.sources.base import DataOptions
from cl_bench.tasks.sources.locate import AbsentDataError
from tests.tasks.retention.oracle import Oracle, run_with
from tests.tasks.retention.rows import file_rows, mmlu_pro_row, mmlu_row, write_flat, write_hub
from tests.tasks.sources.rows import Row, math_row, write_hub_folder, write_jsonl

SUITES = Path(str(files("cl_bench.tasks.retention")))
ENTRIES = {entry.name: entry for entry in load_suite(SUITES / "retention-14.yaml", "full")}


def build(name: str, root: Path, **changes: Any) -> Benchmark:
    return build_benchmark(replace(ENTRIES[name], **changes), DataOptions("hub", root, allow_code=True))


def prompt(benchmark: Benchmark, index: int) -> str:
    document = benchmark.task.eval_docs[index]
    return str(benchmark.task.fewshot_context(document, benchmark.shots))


def lm_evals_own(task: str, splits: dict[str, list[Row]], shots: int) -> Any:
    """lm-eval's task of one subject or category on rows in memory."""
    from datasets import Dataset
    from lm_eval.api.task import ConfigurableTask

    data = {split: Dataset.from_list(rows) for split, rows in splits.items()}
    changes = {"custom_dataset": lambda **_: data, "num_fewshot": shots, "dataset_path": None}
    return ConfigurableTask(config={**read_definition(task), **changes})


def definitions(folder: str, pattern: str) -> list[Path]:
    import lm_eval

    return sorted((Path(lm_eval.__path__[0]) / "tasks" / folder).glob(pattern))


def test_mmlu_says_of_every_subject_what_lm_eval_says(tmp_path: Path) -> None:
    paths = definitions("mmlu/default", "mmlu_*.yaml")
    declared = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in paths]
    rows = [mmlu_row(n) | {"type": one["dataset_name"]} for n, one in enumerate(declared)]
    write_jsonl(tmp_path / "mmlu_stem.jsonl", rows)
    benchmark = build("mmlu", tmp_path)
    assert len(rows) == 57 == len(benchmark.ids)
    for index, (one, row) in enumerate(zip(declared, rows, strict=True)):
        options = "".join(f"\n{letter}. {choice}" for letter, choice in zip("ABCD", row["choices"], strict=True))
        assert prompt(benchmark, index) == f"{one['description']}{row['question'].strip()}{options}\nAnswer:"


def test_mmlu_reads_the_hubs_name_of_the_subject_too(tmp_path: Path) -> None:
    row = mmlu_row(0)
    write_jsonl(tmp_path / "mmlu_stem.jsonl", [row | {"subject": row.pop("type")}])
    assert "about high school boating." in prompt(build("mmlu", tmp_path), 0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"type": None}, "subject"), ({"answer": 4}, "four choices"), ({"choices": ["a", "b"]}, "four choices")],
)
def test_a_row_that_is_no_question_of_mmlu_is_named(tmp_path: Path, changes: Row, message: str) -> None:
    write_jsonl(tmp_path / "mmlu_stem.jsonl", [mmlu_row(0), mmlu_row(1) | changes])
    with pytest.raises(DataError, match=message) as caught:
        build("mmlu", tmp_path)
    assert "m-1" in caught.value.what


@pytest.mark.parametrize("shots", [0, 5])
def test_mmlu_pro_asks_as_lm_evals_categories_do(tmp_path: Path, shots: int) -> None:
    test = [mmlu_pro_row(n) for n in range(8)]
    examples = [mmlu_pro_row(n, "validation") for n in range(14)]
    write_jsonl(tmp_path / "mmlu_pro.jsonl", test)
    write_jsonl(tmp_path / "mmlu_pro_validation.jsonl", examples)
    benchmark = build("mmlu-pro", tmp_path, shots=shots)
    assert benchmark.shots == shots and benchmark.shots_reason is None
    for task, category in (("mmlu_pro_law", "law"), ("mmlu_pro_computer_science", "computer science")):
        own = lm_evals_own(f"mmlu_pro/{task}", {"test": test, "validation": examples}, shots)
        mine = [index for index, row in enumerate(test) if row["category"] == category]
        assert [prompt(benchmark, index) for index in mine] == [own.fewshot_context(d, shots) for d in own.eval_docs]


def test_mmlu_pro_says_of_every_category_what_lm_eval_says(tmp_path: Path) -> None:
    tasks = [read_definition(f"mmlu_pro/{path.stem}") for path in definitions("mmlu_pro", "mmlu_pro_*.yaml")]
    categories = [task["process_docs"].keywords["subject"] for task in tasks]
    write_jsonl(tmp_path / "mmlu_pro.jsonl", [mmlu_pro_row(n) | {"category": c} for n, c in enumerate(categories)])
    benchmark = build("mmlu-pro", tmp_path)
    assert len(tasks) == 14
    assert all(prompt(benchmark, n).startswith(task["description"]) for n, task in enumerate(tasks))


def test_without_its_worked_examples_mmlu_pro_has_none_and_says_so(tmp_path: Path) -> None:
    write_flat(tmp_path / "flat")
    write_hub(tmp_path / "hub")
    for layout in ("flat", "hub"):
        options = DataOptions("hub", tmp_path / layout)
        oracle = Oracle(lambda *_: "the answer is (A)")
        result = run_with(oracle, [ENTRIES["mmlu-pro"]], options, rows=3)["mmlu-pro"]
        assert result.settings["shots"] == 0 and "no worked examples" in result.settings["shots_reason"]
        assert all(text.count("Question:") == 1 for text in oracle.prompts["mmlu-pro"])


def test_a_category_without_enough_worked_examples_is_a_reason(tmp_path: Path) -> None:
    write_flat(tmp_path)
    write_jsonl(tmp_path / "mmlu_pro_validation.jsonl", [mmlu_pro_row(n, "validation") for n in range(0, 18, 2)])
    with pytest.raises(AbsentDataError, match="5 worked examples") as caught:
        build("mmlu-pro", tmp_path)
    assert caught.value.why == "there are 0 computer science outside the evaluated rows"


def test_worked_examples_are_never_evaluated_rows(tmp_path: Path) -> None:
    test = [math_row(n) for n in range(10)]
    write_jsonl(tmp_path / "gsm8k_test.jsonl", test)
    # The same rows under other ids, and five more.
    same = [row | {"id": f"train-{n}"} for n, row in enumerate(test)]
    write_jsonl(tmp_path / "gsm8k_train.jsonl", [*same, *(math_row(n) for n in range(20, 25))])
    benchmark = build("gsm8k", tmp_path)
    evaluated = {row["question"] for row in test}
    for index, row in enumerate(test):
        shown = prompt(benchmark, index).split("Question: ")[1:]
        assert len(shown) == 6 and shown[-1].startswith(row["question"])
        assert not any(text.startswith(question) for text in shown[:-1] for question in evaluated)
    write_jsonl(tmp_path / "gsm8k_train.jsonl", same)
    with pytest.raises(AbsentDataError) as caught:
        build("gsm8k", tmp_path)
    assert caught.value.why == "there are 0 outside the evaluated rows"


@pytest.mark.parametrize("name", ["mmlu", "arc-challenge", "ifeval"])
def test_shots_that_have_no_rows_of_their_own_are_a_reason(tmp_path: Path, name: str) -> None:
    write_flat(tmp_path)
    with pytest.raises(AbsentDataError, match="worked examples"):
        build(name, tmp_path, shots=2)


def test_mbpp_shows_three_programs_and_asks_for_the_fourth(tmp_path: Path) -> None:
    write_flat(tmp_path)
    text = prompt(build("mbpp", tmp_path), 0)
    assert [f"return x * {n}" in text for n in (1, 2, 3, 4, 5, 11)] == [False, True, True, True, False, False]
    assert text.count("[BEGIN]") == 4 and text.count("[DONE]") == 3 and text.endswith("[BEGIN]\n")


def test_gpqas_options_are_ordered_by_the_row_alone(tmp_path: Path) -> None:
    import random

    rows = [file_rows("gpqa_diamond")[0] | {"Question": f"Question {n}?", "Record ID": f"r{n}"} for n in range(400)]
    write_jsonl(tmp_path / "gpqa_diamond.jsonl", rows)
    random.seed(1)
    state = random.getstate()
    first = {doc["Record ID"]: doc for doc in build("gpqa-diamond", tmp_path).task.eval_docs}
    assert random.getstate() == state
    write_jsonl(tmp_path / "gpqa_diamond.jsonl", reversed(rows[:100]))
    for doc in build("gpqa-diamond", tmp_path).task.eval_docs:
        options = [f"choice{n}" for n in range(1, 5)] + ["answer"]
        assert [doc[name] for name in options] == [first[doc["Record ID"]][name] for name in options]
    answers = [doc["answer"] for doc in first.values()]
    for letter in "ABCD":
        # Four standard errors of 400 draws.
        assert abs(answers.count(f"({letter})") - 100) < 4 * (400 * 0.25 * 0.75) ** 0.5
    assert all(doc[f"choice{'ABCD'.index(doc['answer'][1]) + 1}"] == doc["Correct Answer"] for doc in first.values())


def test_mc2_is_lm_evals_share_and_holds_where_that_is_no_number(tmp_path: Path) -> None:
    write_flat(tmp_path)
    ours = build("truthfulqa-mc2", tmp_path).task
    theirs = read_definition("truthfulqa/truthfulqa_mc2")["process_results"]
    document = ours.eval_docs[1]
    likely = [(-3.0, False), (-2.0, True), (-7.5, False)]
    assert ours.process_results(document, likely)["acc"] == pytest.approx(theirs(document, likely)["acc"], abs=1e-12)
    unlikely = [(logprob - 5000, greedy) for logprob, greedy in likely]
    assert ours.process_results(document, unlikely) == pytest.approx(ours.process_results(document, likely))


def test_a_completion_that_lost_its_first_indentation_is_the_same_program(tmp_path: Path) -> None:
    """Decoding strips texts; a completion of HumanEval begins with the indentation of a function's body."""
    write_flat(tmp_path)
    benchmark = build("humaneval", tmp_path)
    assert benchmark.rescore is not None
    row = benchmark.task.eval_docs[1]
    solution, name = row["canonical_solution"], row["entry_point"]
    for text in (
        solution,
        solution.strip(),
        f"def {name}(x):\n{solution}",
        f"```python\ndef {name}(x):\n{solution}```",
    ):
        assert benchmark.rescore(1, text).correct, text
    for text in ("", "return x", "total = x + 99\n    return total"):
        assert not benchmark.rescore(1, text).correct, text


def test_mbpp_sets_tests_up_with_what_the_program_defines(tmp_path: Path) -> None:
    program = (
        "class Boat:\n    def __init__(self, sails):\n        self.sails = sails\n\ndef count(boat):\n    return {}"
    )
    row = file_rows("mbpp")[0] | {"test_setup_code": "boat = Boat(3)\r\nother = Boat(1)"}
    row |= {"test_list": ["assert count(boat) == 3", "assert count(other) == 1", "assert count(Boat(0)) == 0"]}
    write_flat(tmp_path)
    write_jsonl(tmp_path / "mbpp.jsonl", [row])
    rescore = build("mbpp", tmp_path).rescore
    assert rescore is not None
    assert rescore(0, program.format("boat.sails")).correct and not rescore(0, program.format("3")).correct


def test_each_answer_is_judged_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_flat(tmp_path)
    calls: list[str] = []
    import cl_bench.tasks.scoring.math as scoring

    judge = scoring.score_math

    def counted(example: Any, text: str) -> Any:
        calls.append(text)
        return judge(example, text)

    monkeypatch.setattr(scoring, "score_math", counted)
    options = DataOptions("hub", tmp_path)
    result = run_with(Oracle(lambda *_: "$2$"), [ENTRIES["math-500"]], options, rows=4)["math-500"]
    assert len(calls) == result.counts["n"] == 4


def test_competition_problems_are_read_in_each_sets_own_fields(tmp_path: Path) -> None:
    problems = [(f"What is ${n} + 1$?", n + 1) for n in range(3)]
    rows: dict[str, list[Row]] = {
        "aime24": [{"id": f"a{n}", "problem": text, "answer": str(value)} for n, (text, value) in enumerate(problems)],
        "aime25": [{"id": f"b{n}", "problem": text, "answer": value} for n, (text, value) in enumerate(problems)],
        "amc23": [{"id": f"c{n}", "question": text, "answer": float(v)} for n, (text, v) in enumerate(problems)],
        "hmmt25": [{"problem_idx": n, "problem": text, "answer": str(v)} for n, (text, v) in enumerate(problems)],
    }
    for name, content in rows.items():
        write_jsonl(tmp_path / f"{name}.jsonl", content)
    entries = load_suite(SUITES / "competition-math.yaml", "full")
    right = Oracle(lambda _, docs, place: f"It is $\\boxed{{{docs[place]['answer']}}}$.")
    results = run_with(right, entries, DataOptions("hub", tmp_path))
    assert {name: result.value for name, result in results.items()} == dict.fromkeys(rows, 1.0)
    assert {text for texts in right.prompts.values() for text in texts} == {
        f"Question: {t}\nAnswer:" for t, _ in problems
    }
    assert [row["id"] for row in results["hmmt25"].samples] == ["0", "1", "2"]
    wrong = run_with(Oracle(lambda *_: "It is $\\boxed{77}$."), entries, DataOptions("hub", tmp_path))
    assert {result.value for result in wrong.values()} == {0.0}


def test_data_sets_of_an_entry_are_named(tmp_path: Path) -> None:
    assert [spec.files for spec in benchmark_datasets(ENTRIES["mmlu-pro"])] == [
        {"test": "mmlu_pro.jsonl"},
        {"validation": "mmlu_pro_validation.jsonl"},
    ]
    assert benchmark_datasets(load_suite(SUITES / "lab.yaml", "smoke")[0]) == ()
    with pytest.raises(UsageError, match="does not say where its data is"):
        benchmark_datasets(SuiteEntry("x", "lm-eval", "piqa", "acc", 0.5))


def test_a_split_that_the_definition_evaluates_must_be_among_the_files(tmp_path: Path) -> None:
    write_flat(tmp_path)
    with pytest.raises(UsageError, match="'validation'"):
        build("piqa", tmp_path, data={"path": "a/b", "files": {"test": "piqa.jsonl"}})


@pytest.mark.parametrize(
    ("name", "file", "changes"),
    [
        ("arc-challenge", "arc_challenge", {"answerKey": "E"}),
        ("medmcqa", "medmcqa", {"cop": -1}),
        ("piqa", "piqa", {"label": 2}),
        ("hellaswag", "hellaswag", {"label": ""}),
        ("winogrande", "winogrande", {"sentence": "Nothing is left open."}),
        ("truthfulqa-mc2", "truthfulqa_mc", {"mc2_targets": {"choices": ["a", "b"], "labels": [1]}}),
        ("mbpp", "mbpp", {"test_list": ["assert True"]}),
        ("gpqa-diamond", "gpqa_diamond", {"Incorrect Answer 2": 7}),
    ],
)
@pytest.mark.parametrize("place", [0, 5])
def test_a_row_that_cannot_be_scored_is_found_before_anything_is_spent(
    tmp_path: Path, name: str, file: str, changes: Row, place: int
) -> None:
    rows = file_rows(file)
    rows[place] = rows[place] | changes
    write_flat(tmp_path)
    write_jsonl(tmp_path / f"{file}.jsonl", rows)
    with pytest.raises(DataError):
        SuiteRunner([ENTRIES[name]], DataOptions("hub", tmp_path, allow_code=True)).rows()


def test_rows_go_by_their_own_id_or_by_their_content() -> None:
    rows: list[Row] = [{"key": 7, "text": "a"}, {"key": 9, "text": "b"}]
    assert row_ids(rows, "key") == ["7", "9"]
    assert row_ids([row | {"id": f"r{row['key']}"} for row in rows], "key") == ["r7", "r9"]
    by_content = row_ids(rows, "name")
    assert len(set(by_content)) == 2 and row_ids(rows[::-1], "name") == by_content[::-1]
    twice = row_ids([rows[0], rows[1], rows[0]], "name")
    assert len(set(twice)) == 3 and twice[:2] == by_content
    # An id that repeats is no id.
    assert len(set(row_ids([{"key": 1, "text": "a"}, {"key": 1, "text": "b"}], "key"))) == 2
    assert row_ids(rows, None) == ["0", "1"]


def test_rows_that_the_hub_publishes_without_ids_are_chosen_by_content(tmp_path: Path) -> None:
    rows = [{name: value for name, value in row.items() if name != "id"} for row in file_rows("hellaswag")]
    for root, content in ((tmp_path / "one", rows), (tmp_path / "other", rows[::-1])):
        write_hub_folder(root, "Rowan/hellaswag", {"default": {"validation": content}})
    one, other = (build("hellaswag", tmp_path / layout).ids for layout in ("one", "other"))
    assert one == other[::-1] and len(set(one)) == len(rows)


def test_documents_know_their_fields() -> None:
    assert list(Documents([{"a": 1, "b": 2}]).features) == ["a", "b"] and Documents().features == {}
