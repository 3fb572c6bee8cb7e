from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from cl_bench.tasks.retention.definitions import read_definition
from cl_bench.tasks.retention.ifeval import METRICS, judge_ifeval, sentence_model
from tests.tasks.retention.rows import ifeval_row

Check = Callable[[Mapping[str, Any], Sequence[str]], Mapping[str, Any]]


@pytest.fixture(scope="module")
def check() -> Check:
    with sentence_model():
        found: Check = read_definition("ifeval")["process_results"]
    return found


def sentences(count: int, relation: str) -> dict[str, Any]:
    arguments = {"relation": relation, "num_sentences": count}
    return ifeval_row(0) | {"instruction_id_list": ["length_constraints:number_sentences"], "kwargs": [arguments]}


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("The boat left. It was late.", 2),
        ("Dr. Reed sold the boat to Mr. Kim for 3.5 coins. He left.", 2),
        ("Is it late? Yes! It is.", 3),
    ],
)
def test_sentences_are_counted_with_the_punkt_model(check: Check, text: str, count: int) -> None:
    assert judge_ifeval(check, sentences(count, "at least"), text)[0].correct
    assert not judge_ifeval(check, sentences(count + 1, "at least"), text)[0].correct


def test_words_in_capitals_are_counted_with_the_punkt_model(check: Check) -> None:
    arguments = {"capital_relation": "at least", "capital_frequency": 2}
    row = ifeval_row(0) | {"instruction_id_list": ["change_case:capital_word_frequency"], "kwargs": [arguments]}
    assert judge_ifeval(check, row, "A BOAT is OLD.")[0].correct
    assert not judge_ifeval(check, row, "Boats are old.")[0].correct


def test_nothing_is_downloaded_and_nothing_stays_changed() -> None:
    code = (
        "import nltk, sys\n"
        "def refuse(*args, **kwargs):\n    raise SystemExit('a download was tried')\n"
        "nltk.download = refuse\n"
        "nltk.data.path[:] = ['/no-such-folder']\n"
        "from cl_bench.tasks.retention.ifeval import judge_ifeval, sentence_model\n"
        "from cl_bench.tasks.retention.definitions import read_definition\n"
        "with sentence_model():\n    check = read_definition('ifeval')['process_results']\n"
        "assert nltk.data.path == ['/no-such-folder']\n"
        "arguments = {'relation': 'at least', 'num_sentences': 2}\n"
        "row = {'key': 1, 'prompt': '', 'instruction_id_list': ['length_constraints:number_sentences']}\n"
        "score, _ = judge_ifeval(check, row | {'kwargs': [arguments]}, 'One boat. Two boats.')\n"
        "assert score.correct and score.unreliable is None, score\n"
    )
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert child.returncode == 0, child.stderr
    assert child.stdout == ""


def test_a_verdict_is_the_same_every_time_and_leaves_no_trace(check: Check) -> None:
    from langdetect import DetectorFactory

    # No letter and no number are given: the checker draws them.
    row = ifeval_row(0) | {"instruction_id_list": ["keywords:letter_frequency"], "kwargs": [{}]}
    random.seed(3)
    state, seed = random.getstate(), DetectorFactory.seed
    first = [judge_ifeval(check, row | {"key": key}, "boats and tea " * 3)[0].correct for key in range(30)]
    assert (random.getstate(), DetectorFactory.seed) == (state, seed)
    random.seed(4)
    assert [judge_ifeval(check, row | {"key": key}, "boats and tea " * 3)[0].correct for key in range(30)] == first
    assert len(set(first)) == 2
    language = ifeval_row(0) | {"instruction_id_list": ["language:response_language"], "kwargs": [{"language": "en"}]}
    verdicts = {judge_ifeval(check, language, "no el la boat taxi hotel")[0].correct for _ in range(20)}
    assert len(verdicts) == 1


def test_a_checker_that_fails_is_a_wrong_answer_in_doubt(check: Check) -> None:
    row = ifeval_row(0) | {"instruction_id_list": ["keywords:existence"], "kwargs": [{"keywords": ["boat ("]}]}
    score, metrics = judge_ifeval(check, row, "A boat.")
    assert not score.correct and not score.format_ok and "checker failed" in str(score.unreliable)
    assert metrics == {name: [False] if name.startswith("inst") else False for name in METRICS}


def test_an_empty_answer_is_no_answer(check: Check) -> None:
    score, metrics = judge_ifeval(check, ifeval_row(0), " \n")
    assert (score.correct, score.parsed, score.format_ok) == (False, None, False) and set(metrics) == set(METRICS)
