from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from cl_bench.harness.errors import DataError, UsageError
from cl_bench.tasks.corpora.corpora import Corpus, cutoff_group, load_corpora, to_messages
from cl_bench.tasks.sources.base import DataOptions
from cl_bench.tasks.sources.locate import load_rows
from cl_bench.tasks.sources.reading import DroppedRowError
from tests.tasks.sources.rows import Row, science_row, write_jsonl

ROWS = 20
CUTOFF = date(2024, 9, 1)
BY_PATH = {corpus.path: corpus for corpus in load_corpora()}


def question(n: int) -> str:
    return f"Ana has {n} boxes of 1,000 pens. How many pens?"


def worked(n: int) -> str:
    return f"Each box has 1,000 pens, so she has {n},000."


def turns(n: int, answer: str | None = None) -> list[dict[str, str]]:
    return [{"role": "user", "content": question(n)}, {"role": "assistant", "content": answer or worked(n)}]


# An invented row with the columns of each corpus, the unused ones included.
MAKERS: dict[str, Callable[[int], Row]] = {
    "microsoft/orca-math-word-problems-200k": lambda n: {"question": question(n), "answer": worked(n)},
    "openai/gsm8k": lambda n: {
        "question": question(n),
        "answer": f"{n} boxes hold {n}*1000=<<{n}*1000={n * 1000}>>{n * 1000} pens.\n#### {n},000",
    },
    "AI-MO/NuminaMath-1.5": lambda n: {
        "problem": question(n), "solution": worked(n), "answer": f"{n}000", "problem_type": "Algebra",
        "question_type": "math-word-problem", "problem_is_valid": "Yes", "solution_is_valid": "Yes",
        "source": "invented", "synthetic": False,
    },
    "EleutherAI/hendrycks_math": lambda n: {
        "problem": question(n), "level": "Level 1", "type": "Algebra",
        "solution": f"First \\boxed{{0}} is wrong; it is $\\boxed{{\\frac{{{n}}}{{2}}}}$.",
    },
    "TIGER-Lab/MathInstruct": lambda n: {"source": "invented", "instruction": question(n), "output": worked(n)},
    "open-r1/OpenR1-Math-220k": lambda n: {
        "problem": question(n), "solution": worked(n), "answer": f"{n}000", "problem_type": "Algebra",
        "question_type": "math-word-problem", "source": "invented", "uuid": f"u{n}",
        "is_reasoning_complete": [True], "generations": [worked(n)], "correctness_math_verify": [True],
        "messages": turns(n, f"<think>\n{n} times 1,000\n</think>\n\n{worked(n)}"),
    },
    "nvidia/OpenMathReasoning": lambda n: {
        "expected_answer": f"{n}000", "problem_type": "has_answer_extracted", "problem_source": "invented",
        "generation_model": "none", "pass_rate_72b_tir": "0.5", "problem": question(n),
        "generated_solution": worked(n), "inference_mode": "cot",
    },
    "zwhe99/DeepMath-103K": lambda n: {
        "question": question(n), "final_answer": f"{n}000", "difficulty": 3.0, "topic": "Algebra",
        "r1_solution_1": worked(n), "r1_solution_2": "second", "r1_solution_3": "third",
    },
    "GAIR/LIMO": lambda n: {"question": question(n), "solution": worked(n), "answer": f"{n}000"},
    "simplescaling/s1K-1.1": lambda n: {
        "solution": f"{n}000", "question": question(n), "cot_type": "math", "source_type": "invented", "metadata": "{}",
        "deepseek_thinking_trajectory": f"{n} times 1,000", "deepseek_attempt": worked(n),
    },
    "agentica-org/DeepScaleR-Preview-Dataset": lambda n: {
        "problem": question(n), "answer": f"{n}000", "solution": worked(n)
    },
    "meta-math/MetaMathQA": lambda n: {
        "type": "GSM_Rephrased", "query": question(n), "original_question": question(n),
        "response": f"{worked(n)}\nThe answer is: {n},000",
    },
    "AI-MO/NuminaMath-CoT": lambda n: {
        "source": "invented", "problem": question(n), "solution": worked(n),
        "messages": turns(n, f"{worked(n)} So \\boxed{{{n}000}}."),
    },
    "ise-uiuc/Magicoder-OSS-Instruct-75K": lambda n: {
        "lang": "python", "raw_index": n, "index": n, "seed": "x = 1", "openai_fingerprint": "none",
        "problem": f"Write a function that multiplies by {n}.",
        "solution": f"```python\ndef f(x):\n    return {n} * x\n```",
    },
    "sahil2801/CodeAlpaca-20k": lambda n: {
        "instruction": f"Multiply by {n}.", "input": "7" if n % 2 else "", "output": f"{7 * n}"
    },
    "m-a-p/CodeFeedback-Filtered-Instruction": lambda n: {
        "query": f"Multiply by {n}.", "answer": f"x * {n}", "resource": "invented", "lang": "python"
    },
    "nvidia/OpenCodeReasoning": lambda n: {
        "id": f"id-{n}", "input": f"Multiply by {n}.", "output": f"<think>\nEasy.\n</think>\n\nx * {n}",
        "source": "invented", "license": "none", "dataset": "invented", "split": "train", "difficulty": "1",
        "solution": f"x * {n}",
    },
    "open-r1/codeforces-cots": lambda n: {
        "id": f"{n}/A", "title": "Boxes", "prompt": question(n), "generation": worked(n), "messages": turns(n)
    },
    "hicai-zju/SciKnowEval": lambda n: science_row(n),
    "openlifescienceai/medmcqa": lambda n: {
        "id": f"m{n}", "question": f"How many bones has part {n}?", "opa": f"{n + 1}", "opb": f"{n}", "opc": f"{n + 2}",
        "opd": f"{n + 3}", "cop": 1, "choice_type": "single", "exp": f"Part {n} has {n} bones." if n % 2 else None,
        "subject_name": "Anatomy", "topic_name": None,
    },
    "FreedomIntelligence/medical-o1-reasoning-SFT": lambda n: {
        "Question": f"How many bones has part {n}?", "Complex_CoT": "I count.", "Response": f"{n}."
    },
    "tatsu-lab/alpaca": lambda n: {
        "instruction": f"Multiply by {n}.", "input": "" if n % 2 else "7", "output": f"{7 * n}", "text": "unused"
    },
    "allenai/tulu-3-sft-mixture": lambda n: {
        "id": f"t{n}", "source": "invented",
        "messages": [{"role": "system", "content": "Be brief."}, *turns(n), *turns(n + 100)],
    },
}  # fmt: skip

THOUSANDS = {
    "AI-MO/NuminaMath-1.5", "open-r1/OpenR1-Math-220k", "nvidia/OpenMathReasoning", "zwhe99/DeepMath-103K", "GAIR/LIMO",
    "agentica-org/DeepScaleR-Preview-Dataset", "AI-MO/NuminaMath-CoT", "openai/gsm8k", "meta-math/MetaMathQA",
}  # fmt: skip


def test_there_are_twenty_three_and_their_status_is_said() -> None:
    corpora = load_corpora()
    assert len(corpora) == len(MAKERS) == 23 and set(BY_PATH) == set(MAKERS)
    assert Counter(corpus.status for corpus in corpora) == {"named": 5, "inferred": 18}
    assert all((corpus.created is None) == (corpus.created_status == "unknown") for corpus in corpora)
    # No date and no commit is invented: what is known is what the source and the tasks' own files say.
    assert {corpus.path for corpus in corpora if corpus.created} == {c.path for c in corpora if c.status == "named"}
    assert [c.path for c in corpora if c.revision] == ["openai/gsm8k", "hicai-zju/SciKnowEval"]


@pytest.mark.parametrize("path", MAKERS)
def test_twenty_rows_of_each_corpus_become_chats(tmp_path: Path, path: str) -> None:
    corpus = BY_PATH[path]
    write_jsonl(tmp_path / corpus.flat_name, [MAKERS[path](number) for number in range(1, ROWS + 1)])
    rows = load_rows(corpus.data_set(), "train", DataOptions("hub", tmp_path))
    chats = [to_messages(corpus, row) for row in rows]
    assert len({messages[-1]["content"] for messages, _, _ in chats}) == ROWS
    for number, (messages, demonstration, answer) in enumerate(chats, start=1):
        assert messages[-1]["role"] == "user" and {turn["role"] for turn in messages} <= {"system", "user", "assistant"}
        assert str(number) in messages[-1]["content"] and demonstration.strip()
        assert (answer is None) == (corpus.columns.answer is None)
        if path in THOUSANDS:
            assert answer == f"{number}000"


@pytest.mark.parametrize("path", MAKERS)
def test_a_column_that_is_not_there_is_named(path: str) -> None:
    corpus, row = BY_PATH[path], MAKERS[path](1)
    columns = corpus.columns
    answer = columns.answer
    used = {*columns.question, *columns.response, *columns.choices, columns.messages}
    used |= {answer.column, answer.index, answer.letter} if answer else set()
    for name in (name.split(".")[0] for name in used if name):
        rest = {key: value for key, value in row.items() if key != name}
        with pytest.raises(DataError, match=rf"{path} has no column `{name}(\.text)?`") as caught:
            to_messages(corpus, rest)
        assert corpus.columns_status in caught.value.hint


def chat(path: str, number: int = 3, **changes: Any) -> tuple[tuple[dict[str, str], ...], str, str | None]:
    return to_messages(BY_PATH[path], {**MAKERS[path](number), **changes})


def test_the_calculators_marks_are_taken_out() -> None:
    _, demonstration, answer = chat("openai/gsm8k")
    assert demonstration == "3 boxes hold 3*1000=3000 pens.\n#### 3,000" and answer == "3000"
    assert chat("openai/gsm8k", answer="no mark")[2] is None


def test_the_last_box_is_the_answer_braces_inside_it_included() -> None:
    assert chat("EleutherAI/hendrycks_math")[2] == "\\frac{3}{2}"


def test_parts_of_a_turn_are_joined_and_empty_ones_left_out() -> None:
    assert chat("tatsu-lab/alpaca", 3)[0][0]["content"] == "Multiply by 3."
    assert chat("tatsu-lab/alpaca", 4)[0][0]["content"] == "Multiply by 4.\n\n7"
    assert chat("FreedomIntelligence/medical-o1-reasoning-SFT")[1] == "I count.\n\n3."


def test_the_last_answer_of_a_conversation_is_the_demonstration() -> None:
    messages, demonstration, _ = chat("allenai/tulu-3-sft-mixture")
    assert [turn["role"] for turn in messages] == ["system", "user", "assistant", "user"]
    assert demonstration == worked(103)
    open_end = [*turns(1), {"role": "user", "content": "And now?"}]
    assert chat("allenai/tulu-3-sft-mixture", messages=open_end)[1] == worked(1)


def test_the_right_option_is_named_by_place_or_by_letter() -> None:
    messages, demonstration, answer = chat("openlifescienceai/medmcqa")
    assert messages[0]["content"].endswith("A: 4\nB: 3\nC: 5\nD: 6") and answer == "B"
    assert demonstration == "Part 3 has 3 bones.\n\nThe answer is B: 3"
    assert chat("openlifescienceai/medmcqa", exp=None)[1] == "The answer is B: 3"
    assert chat("hicai-zju/SciKnowEval")[1:] == ("The answer is B: 3", "B")


@pytest.mark.parametrize(
    ("path", "changes", "reason"),
    [
        ("openlifescienceai/medmcqa", {"cop": -1}, "no right option"),
        ("openlifescienceai/medmcqa", {"cop": 4}, "no right option"),
        ("hicai-zju/SciKnowEval", {"answerKey": "", "choices": {"text": [], "label": []}}, "no right option"),
        ("agentica-org/DeepScaleR-Preview-Dataset", {"solution": " "}, "no demonstration"),
        ("tatsu-lab/alpaca", {"instruction": "", "input": ""}, "no question"),
        ("allenai/tulu-3-sft-mixture", {"messages": []}, "no demonstration"),
        ("allenai/tulu-3-sft-mixture", {"messages": [{"role": "assistant", "content": "x"}]}, "no question"),
    ],
)
def test_rows_that_are_no_example_are_dropped_with_a_reason(path: str, changes: Row, reason: str) -> None:
    with pytest.raises(DroppedRowError, match=reason):
        chat(path, **changes)


@pytest.mark.parametrize(
    ("path", "changes"),
    [
        ("tatsu-lab/alpaca", {"output": ["a", "list"]}),
        ("tatsu-lab/alpaca", {"output": True}),
        ("allenai/tulu-3-sft-mixture", {"messages": "text"}),
        ("allenai/tulu-3-sft-mixture", {"messages": [{"from": "human", "value": "text"}]}),
        ("allenai/tulu-3-sft-mixture", {"messages": [{"role": "user", "content": None}]}),
        ("hicai-zju/SciKnowEval", {"choices": "A or B"}),
    ],
)
def test_columns_of_another_form_are_named(path: str, changes: Row) -> None:
    (name,) = changes
    with pytest.raises(DataError, match=f"column `{name}"):
        chat(path, **changes)


def test_the_group_is_computed_from_the_date() -> None:
    groups = {corpus.path: cutoff_group(corpus, CUTOFF) for corpus in load_corpora() if corpus.status == "named"}
    assert groups.pop("AI-MO/NuminaMath-1.5") == "post-cutoff"
    assert set(groups.values()) == {"pre-cutoff"}
    assert {cutoff_group(c, CUTOFF) for c in load_corpora() if c.status == "inferred"} == {"unknown"}


@pytest.mark.parametrize(
    ("created", "cutoff", "group"),
    [
        ("2024-08", CUTOFF, "pre-cutoff"),
        ("2024-09", CUTOFF, "post-cutoff"),
        ("2024-09", date(2024, 9, 15), "unknown"),
        ("2024-09-14", date(2024, 9, 15), "pre-cutoff"),
        ("2024-09-15", date(2024, 9, 15), "post-cutoff"),
        ("2024-02", date(2024, 3, 1), "pre-cutoff"),
        (None, CUTOFF, "unknown"),
    ],
)
def test_a_month_is_before_or_after_as_a_whole(created: str | None, cutoff: date, group: str) -> None:
    assert cutoff_group(replace(BY_PATH["GAIR/LIMO"], created=created), cutoff) == group


ENTRY = {
    "path": "a/b", "split": "train", "columns": {"question": ["q"], "response": ["r"]}, "columns_status": "verified",
    "domain": "math", "status": "named",
}  # fmt: skip


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "guessed"},
        {"created": "2024"},
        {"created": "2024-02-31"},
        {"revision": "main"},
        {"colums": {}},
        {"columns": {"question": ["q"]}},
        {"columns": {"question": ["q"], "messages": "m"}},
        {"columns": {"question": ["q"], "response": ["r"], "answer": {"index": "i"}}},
        {"columns": {"question": ["q"], "response": ["r"], "answer": {"boxed": True, "after": "x"}}},
        {"columns": {"question": ["q"], "response": ["r"], "strip": "everything"}},
    ],
)
def test_a_broken_entry_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    import yaml

    file = tmp_path / "corpora.yaml"
    file.write_text(yaml.safe_dump({"corpora": [ENTRY]}), encoding="utf-8")
    (corpus,) = load_corpora(file)
    assert isinstance(corpus, Corpus)
    file.write_text(yaml.safe_dump({"corpora": [{**ENTRY, **changes}]}), encoding="utf-8")
    with pytest.raises(UsageError, match="no registry of corpora"):
        load_corpora(file)
    file.write_text(yaml.safe_dump({"corpora": [ENTRY, ENTRY]}), encoding="utf-8")
    with pytest.raises(UsageError, match="more than once"):
        load_corpora(file)
