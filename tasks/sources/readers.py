"""The readers of public data sets, by the ``kind`` that task files name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from cl_bench.tasks.scoring.choice import score_choice
from cl_bench.tasks.scoring.exact import score_exact
from cl_bench.tasks.scoring.filling import score_filling
from cl_bench.tasks.scoring.number import score_number
from cl_bench.tasks.scoring.true_false import score_true_false
from cl_bench.tasks.sources.columns import read_columns
from cl_bench.tasks.sources.mathematics import GSM8K, MATH, SVAMP
from cl_bench.tasks.sources.mbpp import MBPP
from cl_bench.tasks.sources.reading import Reader, Row
from cl_bench.tasks.sources.sciknoweval import answer_reader, check_subject, choice_reader
from cl_bench.tasks.sources.toolalpaca import TOOLALPACA

READERS: Mapping[str, Reader] = {
    "sciknoweval": choice_reader("mcq-4-choices", 4, "four choices"),
    "sciknoweval-two-choices": choice_reader("mcq-2-choices", 2, "two choices"),
    "sciknoweval-filling": answer_reader("filling", "filling", score_filling),
    "sciknoweval-true-false": answer_reader("true_or_false", "true or false", score_true_false),
    "toolalpaca": TOOLALPACA,
    "gsm8k": GSM8K,
    "svamp": SVAMP,
    "math": MATH,
    "mbpp": MBPP,
    "columns-choice": Reader(read_columns, score_choice),
    "columns-number": Reader(read_columns, score_number),
    "columns-exact": Reader(read_columns, score_exact),
}

CONFIG_CHECKS: Mapping[str, Callable[[Row, Collection[str]], None]] = {
    kind: check_subject for kind in READERS if kind.startswith("sciknoweval")
}
"""Checks that a row is of the configurations asked for, by kind: a local file may hold those of others too."""
