from __future__ import annotations

import ast
import json
import os
import textwrap
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cl_bench.tasks.base import Example, Score
from cl_bench.tasks.scoring import code as scoring
from cl_bench.tasks.scoring.code import extract_code, score_code

PREFIX = (
    "import math\n\n\ndef half(n: int) -> int:\n    return n // 2\n\n\n"
    'def area(r: float) -> float:\n    """Area of a disc.\n\n    >>> area(0)\n    0.0\n    """\n'
)
BODY = "    return math.pi * r**2\n"
WHOLE = "import math\n\ndef area(r):\n    return math.pi * r**2\n"
BARE = "def area(r):\n    return math.pi * r**2\n"
WRONG = "def area(r):\n    return r\n"
USAGE = "print(area(3))\n"
TESTS = "def check(f):\n    assert f(0) == 0\n    assert round(f(2), 3) == 12.566\n\ncheck(area)\n"


def example(prefix: str = PREFIX, tests: str = TESTS, entry_point: str | None = "area", setup: str = "") -> Example:
    meta = {"prefix": prefix, "setup": setup, "tests": tests, "entry_point": entry_point}
    return Example("coding", "1", ({"role": "user", "content": "Write it."},), meta=meta)


def fenced(code: str, language: str = "python") -> str:
    return f"```{language}\n{code}```"


RIGHT = {
    "completion": BODY,
    "completion without its first indent": BODY.lstrip(),
    "completion without any indent": "r2 = r * r\nreturn math.pi * r2",
    "completion that goes on": BODY + "\n\ndef other(x):\n    return x\n\nprint(area(",
    "completion with prose after it": BODY + "\nThis multiplies the square of the radius by pi.",
    "completion in a fence": fenced(BODY),
    "completion that ends a fence of the prompt": BODY + "```\nIt uses `math.pi`.",
    "the prompt again": PREFIX + BODY,
    "whole": WHOLE,
    "whole with windows line ends": WHOLE.replace("\n", "\r\n"),
    "relies on an import of the prompt": BARE,
    "relies on a helper of the prompt": "def area(r):\n    return math.pi * r * half(r * 2)\n",
    "fence": f"Here it is:\n\n{fenced(WHOLE)}\n\nIt is exact.",
    "fence without a language": fenced(WHOLE, ""),
    "fence with another name of it": fenced(WHOLE, "Py"),
    "tildes": f"~~~python\n{WHOLE}~~~",
    "tag": f"<reasoning>\nA disc.\n</reasoning>\n<answer>\n{WHOLE}</answer>",
    "tag on one line": f"<reasoning>x</reasoning><answer>{WHOLE}</answer>",
    "tag that is never closed": f"The program:\n<answer>\n{WHOLE}",
    "tag around a completion": f"<answer>\n{BODY}</answer>",
    "tag around a fence": f"{fenced(WRONG)}\n<answer>\n{fenced(WHOLE)}\n</answer>",
    "tag after a first attempt": f"<answer>\n{WRONG}</answer>\nBetter:\n<answer>\n{WHOLE}</answer>",
    "tag that is empty": f"{fenced(WHOLE)}\n<answer>\n</answer>",
    "tag in a string": f"{WHOLE}\nTAG = '<answer>'\n",
    "fence that is never closed": f"```python\n{WHOLE}",
    "fence that is never closed, and cut": f"```python\n{WHOLE}\nprint(area(",
    "fence in a list": "1. The function:\n" + textwrap.indent(fenced(WHOLE), "   ") + "\n2. Done.",
    "fence after prose on the line": f"Sure: ```python\n{WHOLE}```",
    "ended by a fence of the prompt": f"{WHOLE}```\n\nExplanation follows.",
    "usage after it": f"{fenced(WHOLE)}\nUse it:\n{fenced(USAGE)}\nPrints:\n```\n28.27\n```",
    "usage after a fence of the prompt": f"{WHOLE}```\nUse it:\n{fenced(USAGE)}",
    "a shell command after it": f"{fenced(WHOLE)}\n{fenced('python area.py' + chr(10), 'bash')}",
    "corrected": f"{fenced(WRONG)}\nThat forgets pi:\n{fenced(WHOLE)}",
    "docstring with a fence": fenced(WHOLE.replace(":\n    return", ':\n    """As ```area(1)``` says."""\n    return')),
    "marked": f"[BEGIN]\n{WHOLE}\n[DONE]",
    "ended by a mark": f"{WHOLE}\n[DONE]\nYou are an expert. [BEGIN]\n{WRONG}[DONE]",
    "thought": f"<think>\nFirst {fenced(WRONG)}\n</think>\n{fenced(WHOLE)}",
    "thought that the prompt began": f"Is it {fenced(WRONG)}?\n</think>\n{WHOLE}",
    "prose around it": f"The function is:\n\n{WHOLE}\nIt returns the area.",
    "a class that holds nothing to test": f"{WHOLE}\nclass Disc:\n    pass\n",
    "assigned": "area = lambda r: math.pi * r ** 2",
    "in a condition": "import sys\nif sys.version_info > (3,):\n    def area(r):\n        return 3.14159265 * r * r\n",
    "started by hand": f'{WHOLE}\nif __name__ == "__main__":\n    print(area(float(input())))\n',
    "in a Markdown block": f"The function is:\n\n{textwrap.indent(WHOLE, '    ')}\nIt returns the area.",
    "in a code span": "Write `area = lambda r: 3.14159265 * r * r` and call `area(2)`.",
    "ended by a special token": f"{fenced(WHOLE)}<|im_end|>",
    "bare, ended by a special token": f"{WHOLE}</s>\n",
    "after a byte order mark": f"\ufeff{WHOLE}",
    "before what not to do": f"{fenced(WHOLE)}\n**Wrong way:**\n\n{fenced(WRONG)}\nSee?",
    "before what to avoid": f"{fenced(WHOLE)}\nDon't write it like this:\n{fenced(WRONG)}",
    "future": f"from __future__ import annotations\n{BARE}",
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_program_is_found_in_every_form(name: str) -> None:
    score = score_code(example(), RIGHT[name])
    assert score.correct and score.format_ok and score.unreliable is None, score


@pytest.mark.parametrize(
    "text",
    [
        WRONG,
        fenced(WRONG),
        "    return r\n",
        f"{fenced(WHOLE)}\nBetter:\n{fenced(WRONG)}",
        f"{fenced(WHOLE)}\nThe code above is wrong. Better:\n{fenced(WRONG)}",
        f"Wrong way:\n{fenced(WRONG)}",
        "    pass\n",
        f"{WHOLE}\nimport os; os._exit(0)",
        f"{WHOLE.replace('area', 'Area')}",
        "def area(r):\n    raise SystemExit(0)",
        fenced(f"{BARE}\nprint(undefined)\n"),
    ],
)
def test_a_wrong_program_is_wrong(text: str) -> None:
    score = score_code(example(), text)
    assert (score.correct, score.format_ok, score.unreliable) == (False, True, None)
    assert score.parsed


@pytest.mark.parametrize(
    "text", ["", "  \n", "I cannot do that.", "Yes", "<think>\ndef area(r): return 1", "[BEGIN]", "42"]
)
def test_no_code(text: str) -> None:
    assert score_code(example(), text) == Score(correct=False, parsed=None, format_ok=False)


@pytest.mark.parametrize(
    "text", ["def area(r:\n    return 1", fenced("def area(r)\n    return 1\n"), "    return (r", "```\nno code"]
)
def test_code_that_is_no_python(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "run_program", None)  # It is not run.
    score = score_code(example(), text)
    assert (score.correct, score.format_ok) == (False, False)
    assert score.parsed


def test_what_is_extracted() -> None:
    assert extract_code(BODY, PREFIX, "area") == PREFIX + BODY
    assert extract_code(BODY, PREFIX) == PREFIX + BODY
    assert extract_code(f"So:\n{fenced(WHOLE)}", PREFIX, "area") == WHOLE
    assert extract_code(fenced("a = 1\n") + fenced("print(a)\n")) == "a = 1\n"
    assert extract_code(fenced("print(1)\n", "bash")) == "print(1)\n"
    assert extract_code(fenced("b = 2\n") + fenced("a = 1\n", "ruby")) == "b = 2\n"
    assert extract_code("no code at all") == ""


def test_without_an_entry_point_the_tests_name_it() -> None:
    tests = "import math\nx = [1]\nassert set(rest(x)) == set()\nassert math.isclose(sum(rest([2, 3])), 3)"
    text = fenced("def rest(x):\n    return x[1:]\n") + "\n" + fenced("def other(x):\n    return x\n")
    assert score_code(example("", tests, None), text).correct
    assert not score_code(example("", tests, None), fenced("def rest(x):\n    return x\n")).correct


def test_setup_runs_before_and_tests_after() -> None:
    row = example("", "assert f() == LIMIT", "f", setup="LIMIT = 7")
    assert score_code(row, "def f():\n    return LIMIT").correct
    assert score_code(row, "LIMIT = 8\ndef f():\n    return 8").correct
    assert not score_code(row, "def f():\n    return 8").correct


def test_strings_are_left_as_they_are() -> None:
    program = "def f():\n    return '''a\n  \nb'''\n"
    for text in (program, fenced(program)):
        assert score_code(example("", "assert f() == 'a\\n  \\nb'", "f"), text).correct


def test_a_prefix_that_ends_within_a_line() -> None:
    row = example("def f(x):\n    ", "assert f(1) == 2", "f")
    assert score_code(row, "return x + 1").correct
    assert score_code(row, "y = x + 1\n    return y").correct
    assert score_code(example("def f(x):", "assert f(1) == 2", "f"), "    return x + 1").correct


HOSTILE = [
    "\ud800",
    "```python\n\ud800\n```",
    "x = 1\0",
    "{" * 1_000_000,
    "(" * 90_000,
    "-" * 90_000 + "1",
    "a" + ".b" * 40_000,
    "```" * 30_000,
    "`" * 50_000 + " x y",
    "```\nx\n" * 9_000,
    "```python\n" * 9_000,
    "def f():\n" * 9_000,
    "    x\n" * 15_000,
    "<think>" * 10_000,
    "[BEGIN]" * 10_000,
    "import a\n" * 9_000 + "(",
    "A\n" * 10_000,
    "Action: x\n" * 2_000,
    "x\n" * 5_000 + "</answer>" * 1_111,
    "\x0c\x0b\u2028\x85def area(r): return 1",
    "'''" * 30_001,
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_is_scored(text: str) -> None:
    for prefix in ("", PREFIX):
        assert not score_code(example(prefix), text).correct


@pytest.mark.parametrize("text", ["x\n" * 10_000, "import a\n" * 2_000 + "(", "```\n" + "x\n" * 9_000 + "```\n"])
@pytest.mark.parametrize("prefix", ["", PREFIX])
def test_what_is_parsed_is_bounded(text: str, prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[int] = []
    parse = ast.parse

    def counted(source: str) -> ast.Module:
        parsed.append(len(source))
        return parse(source)

    monkeypatch.setattr(ast, "parse", counted)
    for times in (1, 40):
        parsed.clear()
        extract_code(text * times, prefix, "area")
        assert sum(parsed) < 1_000_000


PIECES = ["```", "python", "\n", "    ", "def area(r):", "return r", "[DONE]", "</think>", "x"]


@settings(max_examples=150, deadline=None)
@given(st.text() | st.lists(st.sampled_from(PIECES)).map("".join))
def test_extraction_never_raises(text: str) -> None:
    assert isinstance(extract_code(text, PREFIX, "area"), str)
    assert isinstance(extract_code(text), str)


SAMPLE = os.environ.get("CL_BENCH_SAMPLE_ROWS")


def _real_rows() -> Iterator[tuple[Example, str, str]]:
    """Example, gold program and what a model would answer, for every row."""
    folder = Path(str(SAMPLE))
    for line in (folder / "humaneval.jsonl").read_text().splitlines():
        row = json.loads(line)
        name, tests = row["entry_point"], f"{row['test']}\ncheck({row['entry_point']})\n"
        yield example(row["prompt"], tests, name), row["prompt"] + row["canonical_solution"], row["canonical_solution"]
    for line in (folder / "mbpp.jsonl").read_text().splitlines():
        row = json.loads(line)
        tests = "\n".join([row["test_setup_code"], *row["test_list"]])
        yield example("", tests, None), row["code"], f"Here:\n{fenced(row['code'] + chr(10))}"


class _Mutation(ast.NodeTransformer):
    """Every function returns an object that equals nothing, is false and cannot be computed with."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.body = ast.parse("return type('Wrong', (), {'__bool__': lambda self: False})()").body
        node.decorator_list = []
        return node


def _mutated(program: str) -> str:
    return ast.unparse(ast.fix_missing_locations(_Mutation().visit(ast.parse(program))))


@pytest.mark.skipif(not SAMPLE, reason="CL_BENCH_SAMPLE_ROWS names no folder with real rows")
@pytest.mark.parametrize("right", [True, False], ids=["gold", "mutated"])
def test_gold_programs_of_real_rows_pass_and_mutated_ones_fail(right: bool) -> None:
    rows = list(_real_rows())
    texts = [answer if right else fenced(_mutated(gold) + "\n") for _, gold, answer in rows]
    with ThreadPoolExecutor(2) as pool:
        scores = list(pool.map(score_code, [row for row, _, _ in rows], texts))
    wrong = [
        (texts[number], score) for number, score in enumerate(scores) if score.correct != right or score.unreliable
    ]
    assert len(rows) > 100 and wrong == []
