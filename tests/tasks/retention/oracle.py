"""A stand-in for the model behind lm-eval's ``evaluate``: it answers what it is told to, whatever the prompt."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cl_bench.harness.measure.suite import SuiteRunner
from cl_bench.harness.measure.task_result import TaskResult
from cl_bench.tasks.retention.suites import SuiteEntry
from cl_bench.tasks.sources.base import DataOptions
from tests.tasks.retention.rows import gold_choice, gold_text, shuffled

Docs = Mapping[int, Mapping[str, Any]]
"""Documents of one benchmark by their place among the evaluated ones."""


class Oracle:
    """Answers each document by its benchmark and place."""

    rank, world_size = 0, 1
    tokenizer_name = "oracle"

    def __init__(
        self,
        text: Callable[[str, Docs, int], str],
        choice: Callable[[str, Docs, int], set[int]] = lambda *_: {0},
    ) -> None:
        """``text`` and ``choice`` get the benchmark's name, its documents and the place of the one to answer."""
        self.text, self.choice = text, choice
        self.records: dict[Any, Any] = {}
        self.prompts: dict[str, list[str]] = {}
        self.settings: dict[str, dict[str, Any]] = {}

    def loglikelihood(self, requests: Sequence[Any], disable_tqdm: bool = True) -> list[tuple[float, bool]]:
        """The chosen options are likely, the others are not."""
        docs = self._docs(requests)
        return [
            (
                -1.0
                if request.idx in self.choice(request.task_name, docs[request.task_name], request.doc_id)
                else -1e3,
                False,
            )
            for request in requests
        ]

    def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = True) -> list[str]:
        """The texts."""
        docs = self._docs(requests)
        for request in requests:
            self.settings[request.task_name] = request.args[1]
        return [self.text(request.task_name, docs[request.task_name], request.doc_id) for request in requests]

    def _docs(self, requests: Sequence[Any]) -> dict[str, dict[int, Mapping[str, Any]]]:
        docs: dict[str, dict[int, Mapping[str, Any]]] = {}
        for request in requests:
            docs.setdefault(request.task_name, {})[request.doc_id] = request.doc
            self.prompts.setdefault(request.task_name, []).append(request.args[0])
        return docs


def gold() -> Oracle:
    """Every answer is right."""
    return Oracle(
        lambda name, docs, place: gold_text(name, docs[place]),
        lambda name, docs, place: gold_choice(name, docs[place]),
    )


def gold_of_another_row() -> Oracle:
    """Every answer is that of another row."""
    return Oracle(
        lambda name, docs, place: gold_text(name, docs[shuffled(len(docs))[place]]),
        lambda name, docs, place: gold_choice(name, docs[shuffled(len(docs))[place]]),
    )


def saying(text: str) -> Oracle:
    """The same text everywhere."""
    return Oracle(lambda *_: text)


def run_with(
    oracle: Oracle, entries: Sequence[SuiteEntry], options: DataOptions, rows: int | None = None
) -> dict[str, TaskResult]:
    """Results of a suite that the oracle answers."""
    return SuiteRunner(entries, options, rows=rows).run_with(oracle)
