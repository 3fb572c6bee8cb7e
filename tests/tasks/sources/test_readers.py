from __future__ import annotations

import json
from typing import Any

import pytest

from cl_bench.tasks.base import Example
from cl_bench.tasks.corpora.corpora import load_corpora, to_messages
from cl_bench.tasks.scoring.choice import score_choice
from cl_bench.tasks.scoring.number import score_number
from cl_bench.tasks.sources.readers import READERS
from cl_bench.tasks.sources.reading import DroppedRowError, OtherKindError, Reading
from tests.tasks.sources.rows import (
    Row,
    competition_row,
    math_row,
    other_science_row,
    program_row,
    science_row,
    svamp_row,
    tool_row,
    training_row,
)


def read(kind: str, row: Row, **settings: Any) -> tuple[Example, dict[str, int]]:
    reading = Reading("task", **settings)
    return READERS[kind].read(row, reading), dict(reading.remarks)


def test_a_science_row_keeps_its_published_form() -> None:
    example, remarks = read("sciknoweval", science_row(7), system="think")
    assert example.question == "How many protons has element number 7?\n\nA: 8\nB: 7\nC: 9\nD: 10"
    assert example.messages[0] == {"role": "system", "content": "think"}
    assert (example.id, example.answer, example.choices) == ("row-7", "B", ("8", "7", "9", "10"))
    assert example.meta == {"question": "How many protons has element number 7?", "subtask": "protons"}
    assert not remarks


def test_the_rows_own_labels_say_which_option_is_right() -> None:
    texts = ["8", "7", "9", "10"]
    for labels, key in ((list("BADC"), "A"), (list("1234"), "2"), ([0, 1, 2, 3], "1"), ([], "B"), (None, "B")):
        row = science_row(7, choices={"text": texts, "label": labels}, answerKey=key)
        assert read("sciknoweval", row)[0].answer == "B"
    with pytest.raises(DroppedRowError, match="gold letter"):
        read("sciknoweval", science_row(7, choices={"text": texts, "label": list("1234")}, answerKey="B"))


@pytest.mark.parametrize(
    "labels", [list("ABC"), list("ABCDE"), list("ABCE"), list("AACD"), [1, 2, 3, 5], "ABCD", 4, {"A": "B"}]
)
def test_a_row_whose_labels_do_not_fit_its_options_is_left_out(labels: Any) -> None:
    row = science_row(7, choices={"text": ["8", "7", "9", "10"], "label": labels})
    with pytest.raises(DroppedRowError, match="labels that do not fit the options"):
        read("sciknoweval", row)


@pytest.mark.parametrize("text", ["", "  ", None])
def test_a_row_with_an_empty_option_is_left_out(text: str | None) -> None:
    row = science_row(7, choices={"text": ["8", "7", text, "10"], "label": list("ABCD")})
    with pytest.raises(DroppedRowError, match="option without text"):
        read("sciknoweval", row)
    columns = {"question": "q", "choices": "options", "answer": "a"}
    with pytest.raises(DroppedRowError, match="option without text"):
        read("columns-choice", {"q": "Which?", "options": ["x", text], "a": "x"}, columns=columns)


def test_a_science_rows_own_worked_answer_is_its_demonstration() -> None:
    worked = "Counting gives 7.\n<answer>\nB\n</answer>"
    assert read("sciknoweval", science_row(7, golden_response=worked))[0].demonstration == worked
    assert read("sciknoweval", science_row(7, golden_response=worked.split("\n")))[0].demonstration == worked
    columns = {"demonstration": "solution"}
    assert read("sciknoweval", science_row(7, solution=worked), columns=columns)[0].demonstration == worked
    bare = read("sciknoweval", science_row(7))[0].demonstration
    assert read("sciknoweval", science_row(7, golden_response=None))[0].demonstration == bare
    wrong, remarks = read("sciknoweval", science_row(7, golden_response=worked.replace("\nB\n", "\nC\n")))
    assert wrong.demonstration == bare and sum(remarks.values()) == 1


@pytest.mark.parametrize(
    ("kind", "row_kind"),
    [
        ("sciknoweval-filling", "filling"),
        ("sciknoweval-true-false", "true_or_false"),
        ("sciknoweval-two-choices", "mcq-2-choices"),
    ],
)
def test_other_types_of_sciknoweval(kind: str, row_kind: str) -> None:
    rows = [other_science_row(row_kind, number) for number in (3, 4)]
    first, second = (read(kind, row, system="think")[0] for row in rows)
    assert first.id == f"{row_kind}-3" and first.meta["question"] == rows[0]["question"]
    assert (first.choices is None) == (row_kind != "mcq-2-choices")
    score = READERS[kind].score
    for example, other in ((first, second), (second, first)):
        assert score(example, example.demonstration or "").correct
        assert score(example, f"The answer is {example.answer}.").correct
        assert not score(example, "").correct
        if other.answer != example.answer:
            assert not score(example, other.demonstration or "").correct
    with pytest.raises(OtherKindError, match="other type"):
        read(kind, science_row(1))
    with pytest.raises(OtherKindError, match="other level"):
        read(kind, rows[0] | {"details": {"level": "L2"}})


def test_a_filling_row_without_an_answer_is_dropped() -> None:
    with pytest.raises(DroppedRowError, match="no gold answer"):
        read("sciknoweval-filling", other_science_row("filling", 1, answer=" "))


def test_tool_rows() -> None:
    example, remarks = read("toolalpaca", tool_row(1))
    assert example.demonstration is not None and example.demonstration.startswith("Thought:") and not remarks
    untold, _ = read("toolalpaca", {key: value for key, value in tool_row(1).items() if key != "golden_response"})
    assert untold.demonstration == 'Action: getTide\nAction Input: {"port": "Port 1"}'
    score = READERS["toolalpaca"].score
    for row in (example, untold):
        assert score(row, row.demonstration or "").correct
        assert not score(row, (row.demonstration or "").replace("Port 1", "Port 2")).correct


@pytest.mark.parametrize("name", ["[Optional]getTide", "getDetails", "getTid"])
def test_gold_actions_that_are_not_documented_are_kept_and_counted(name: str) -> None:
    call = {"Action": name, "Action_Input": "{}"}
    example, remarks = read("toolalpaca", tool_row(1, golden_answer=[call], golden_response=None))
    assert READERS["toolalpaca"].score(example, example.demonstration or "").correct
    assert remarks == {"gold action that the tool's documentation does not name": 1}


@pytest.mark.parametrize("golden", [[], [{"Action": "getTide", "Action_Input": "{'a': 1}"}], [{"Action": "x"}], [3]])
def test_tool_rows_without_a_readable_gold_are_dropped(golden: list[Any]) -> None:
    with pytest.raises(DroppedRowError):
        read("toolalpaca", tool_row(1, golden_answer=golden))


def test_gsm8k_rows() -> None:
    example, _ = read("gsm8k", math_row(30))
    assert example.answer == "30000"
    assert example.demonstration == "30*1000=30000 pens.\n#### 30000"
    assert score_number(example, example.demonstration).format_ok
    assert score_number(example, "30,000 pens in all.").correct
    with pytest.raises(DroppedRowError, match="last line"):
        read("gsm8k", math_row(1, answer="4 pens"))


@pytest.mark.parametrize("number", ["30,000", "1,234,567.5", "12"])
def test_gsm8k_is_cleaned_alike_as_a_task_and_as_a_corpus(number: str) -> None:
    row = math_row(30, answer=f"3 < 4 << 5 <<30*1000=30000>>30000 pens >> 2\nso\n#### {number}")
    (corpus,) = (one for one in load_corpora() if one.path == "openai/gsm8k")
    example, (_, demonstration, answer) = read("gsm8k", row)[0], to_messages(corpus, row)
    assert example.answer == answer == number.replace(",", "")
    for worked in (example.demonstration or "", demonstration):
        assert worked.splitlines()[:2] == ["3 < 4 << 5 30000 pens >> 2", "so"]


def test_svamp_rows() -> None:
    example, _ = read("svamp", svamp_row(9))
    assert example.question == "Ana had 9 pens and lost 2 of them. How many pens does she have?"
    assert (example.id, example.answer) == ("svamp-9", "7")
    assert example.demonstration == "(9 - 2) = 7\n#### 7"
    asked, _ = read("svamp", svamp_row(9, Body="If Ana had 9 pens and lost 2 of them,", Answer="7.50", Equation=""))
    assert asked.question == "If Ana had 9 pens and lost 2 of them, How many pens does she have?"
    assert (asked.answer, asked.demonstration) == ("7.5", "#### 7.5")
    hub = {key: value for key, value in svamp_row(9).items() if key != "id"}
    assert read("svamp", hub)[0].id == "chal-9"
    for answer in ("seven", None, True, "nan"):
        with pytest.raises(DroppedRowError, match="no number"):
            read("svamp", svamp_row(9, Answer=answer))


def test_math_rows_with_and_without_an_answer_column() -> None:
    (test, _), (train, _) = read("math", competition_row(8)), read("math", training_row(8, "Number Theory"))
    assert test.answer == train.answer == r"\frac{8}{2}"
    assert (test.meta["subject"], train.meta["subject"]) == ("Algebra", "Number Theory")
    assert (test.meta["level"], train.meta["level"]) == ("1", "Level 1")
    assert test.demonstration == competition_row(8)["solution"]
    with pytest.raises(DroppedRowError, match="boxed"):
        read("math", training_row(8) | {"solution": "It is 4."})


@pytest.mark.parametrize("answer", [r"\frac{8}{2}", "4", "4.0"])
def test_math_is_scored_by_value(answer: str) -> None:
    example, _ = read("math", competition_row(8))
    score = READERS["math"].score
    assert score(example, rf"So it is $\boxed{{{answer}}}$.").correct
    assert not score(example, r"So it is $\boxed{5}$.").correct


def test_program_rows() -> None:
    example, _ = read("mbpp", program_row(5))
    assert example.demonstration == "```python\ndef add_5(x):\n  return x + 5\n```"
    assert example.question.splitlines() == [
        "Write a function that adds 5 to a number.",
        "",
        "The function must pass these tests:",
        "assert add_5(1) == 6",
        "assert add_5(-1) == 4",
    ]
    assert example.meta["tests"].splitlines() == program_row(5)["test_list"]
    assert json.loads(json.dumps(example.meta)) == example.meta
    numbered = {key: value for key, value in program_row(5).items() if key != "id"}
    assert read("mbpp", numbered)[0].id == "mbpp-5"
    with pytest.raises(DroppedRowError, match="Python 3"):
        read("mbpp", program_row(5, code="print 5"))


def test_programs_are_scored_by_their_tests() -> None:
    example, _ = read("mbpp", program_row(5))
    reader = READERS["mbpp"]
    assert reader.executes_code and not any(r.executes_code for kind, r in READERS.items() if kind != "mbpp")
    assert reader.score(example, example.demonstration or "").correct
    assert not reader.score(example, (example.demonstration or "").replace("+ 5", "+ 6")).correct
    assert not reader.score(example, "").correct


def test_the_setup_of_a_programs_tests_may_use_the_program() -> None:
    class_row = program_row(
        5,
        code="class Box:\r\n  def __init__(self, n): self.n = n\r\ndef opened(box): return box.n",
        test_setup_code="box = Box(7)",
        test_list=["assert opened(box) == 7"],
    )
    example, _ = read("mbpp", class_row)
    assert "Box(7)" not in example.question
    assert READERS["mbpp"].score(example, example.demonstration or "").correct


def test_columns_that_the_task_file_names() -> None:
    columns = {"question": "q", "choices": "options", "answer": "a", "demonstration": "why"}
    row = {"q": "Which?", "options": ["x", "y"], "a": "y", "why": "It is option B."}
    example, _ = read("columns-choice", row, columns=columns)
    assert (example.answer, example.demonstration) == ("B", "It is option B.")
    assert score_choice(example, "B").correct
    assert read("columns-choice", {**row, "a": "A"}, columns=columns)[0].answer == "A"
    for answer in ("z", "", "AB"):
        with pytest.raises(DroppedRowError, match="without an option"):
            read("columns-choice", {**row, "a": answer}, columns=columns)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"options": ["B", "A", "y"], "a": "A"}, "letter of one option and the text of another"),
        ({"options": ["x", "y", "x "]}, "two equal options"),
        ({"options": [str(n) for n in range(11)], "a": "10"}, "more than 10 options"),
    ],
)
def test_rows_of_columns_whose_gold_is_ambiguous_are_left_out(changes: Row, reason: str) -> None:
    columns = {"question": "q", "choices": "options", "answer": "a"}
    row = {"q": "Which?", "options": ["x", "y"], "a": "y"}
    with pytest.raises(DroppedRowError, match=reason):
        read("columns-choice", row | changes, columns=columns)
    assert read("columns-choice", row | {"options": ["A", "B"], "a": "B"}, columns=columns)[0].answer == "B"


def test_columns_inside_others_are_read() -> None:
    names = {"question": "text.q", "choices": "choices.text", "answer": "gold", "demonstration": "more.why"}
    row = {
        "text": {"q": "Which?"},
        "choices": {"text": ["x", "y"]},
        "gold": "y",
        "more": {"why": ["It is", "option B."]},
    }
    example, _ = read("columns-choice", row, columns=names)
    assert (example.meta["question"], example.choices, example.answer) == ("Which?", ("x", "y"), "B")
    assert example.demonstration == "It is\noption B."
    whole = {**row, "choices.text": ["z", "y"]}
    assert read("columns-choice", whole, columns=names)[0].choices == ("z", "y"), (
        "a column of that very name comes first"
    )
    worked = science_row(7, solution={"text": "Counting gives 7.\n<answer>\nB\n</answer>"})
    read_so = read("sciknoweval", worked, columns={"demonstration": "solution.text"})[0]
    assert read_so.demonstration == worked["solution"]["text"]
