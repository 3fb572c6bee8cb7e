"""Runs a retention suite through lm-eval's ``evaluate`` on our own model class."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, cast

from cl_bench.harness.generation.base import Sampler
from cl_bench.harness.measure.evaluation import fixed_indices, no_trace
from cl_bench.harness.measure.lm_eval_model import Drawing, SamplerLM, lm_eval_model
from cl_bench.harness.measure.sampled import Sampling
from cl_bench.harness.measure.suite_results import add_sampled, task_result
from cl_bench.harness.measure.task_result import TaskResult, counts_of
from cl_bench.harness.seeds import row_seed
from cl_bench.tasks.retention.benchmarks import Benchmark, build_benchmark
from cl_bench.tasks.retention.suites import SuiteEntry
from cl_bench.tasks.sources.base import DataOptions
from cl_bench.tasks.sources.locate import AbsentDataError

if TYPE_CHECKING:
    from cl_bench.harness.models.chat_model import ChatModel

FEWSHOT_SEED = 1234
"""lm-eval's own default."""
_PROMPT_SETTINGS = ("samples", "system_instruction", "apply_chat_template", "tokenizer_name", "limit")


@dataclass(frozen=True, slots=True)
class SuiteRow:
    """One evaluated row of a benchmark.

    Attributes:
        id: Its id in ``samples.jsonl``.
        question: Its text as the prompt asks it, without what comes before it.
        document: The row as lm-eval's definition reads it.
    """

    id: str
    question: str
    document: Mapping[str, Any]


class SuiteRunner:
    """A suite on fixed rows; lm-eval's tasks and prompts are made once and serve every row of a run."""

    def __init__(
        self,
        entries: Sequence[SuiteEntry | Mapping[str, Any]],
        options: DataOptions,
        *,
        rows: int | None = None,
        split: Literal["test", "dev"] = "test",
        batch_size: int = 64,
        system_prompt: str | None = None,
    ) -> None:
        """Prepare; nothing is loaded before the first ``run``.

        Args:
            entries: The benchmarks, as entries or as the resolved dicts of a run's spec.
            options: Where public data is.
            rows: At most this many fixed rows of each benchmark, whatever its tier says.
            split: ``dev`` for choosing settings. Lab skills have a dev half; elsewhere dev rows come from the other
                end of the fixed permutation and are at most half of the rows, so they are new as long as the tier
                takes no more than the other half.
            batch_size: Rows decoded, or continuations scored, together.
            system_prompt: System turn for benchmarks that use the chat template.
        """
        self.entries = [entry if isinstance(entry, SuiteEntry) else SuiteEntry.from_dict(entry) for entry in entries]
        self._options, self._rows, self._split = options, rows, split
        self._batch_size, self._system_prompt = batch_size, system_prompt
        self._benchmarks: dict[str, Benchmark] = {}
        self._absent: dict[str, str] = {}
        self._lm: SamplerLM | None = None

    def run(self, model: ChatModel, sampler: Sampler, sampling: Sampling | None = None) -> dict[str, TaskResult]:
        """Evaluate a model on every benchmark; leaves no trace in the model.

        Args:
            model: The model. All models that one runner sees share a tokenizer.
            sampler: A sampler built around it.
            sampling: Draw several answers to each row of the benchmarks whose answers are generated, or None.

        Returns:
            A result per benchmark, in the suite's order. One whose data is absent has no value but a reason.

        Raises:
            DataError: A benchmark's rows are there but broken.
        """
        with no_trace(model):
            if self._lm is None:
                self._lm = cast(SamplerLM, lm_eval_model(model, sampler, self._batch_size))
            self._lm.use(model, sampler)
            results = self.run_with(self._lm)
            if sampling is not None:
                texts = [name for name, benchmark in self._benchmarks.items() if benchmark.whole_texts]
                add_sampled(results, self._sampled(self._lm, sampling), sampling, texts)
            return results

    def _sampled(self, lm: SamplerLM, sampling: Sampling) -> Iterator[dict[str, TaskResult]]:
        for number in range(sampling.n):
            seeds = {
                name: [row_seed(0, name, "evaluate", benchmark.ids[i], 0, number) for i in self._chosen(benchmark)]
                for name, benchmark in self._benchmarks.items()
            }
            lm.draw(Drawing(sampling.temperature, seeds))
            yield self.run_with(lm, generated_alone=True)

    def run_with(self, lm: Any, generated_alone: bool = False) -> dict[str, TaskResult]:
        """Evaluate what answers lm-eval's requests.

        Args:
            lm: An object with the methods that ``lm_eval.evaluate`` calls and the ``records`` of a ``SamplerLM``: a
                model, or answers that were recorded.
            generated_alone: Only benchmarks whose answers are generated.

        Returns:
            As ``run`` does.

        Raises:
            DataError: A benchmark's rows are there but broken.
        """
        with _quiet(), _templates_compiled_once():
            self._build()
            results: dict[str, TaskResult] = {}
            for chat_template in (True, False):
                results |= self._run_group(lm, chat_template, generated_alone)
        if generated_alone:
            return results
        results |= {name: self._absent_result(name, reason) for name, reason in self._absent.items()}
        return {entry.name: results[entry.name] for entry in self.entries}

    def rows(self) -> dict[str, list[SuiteRow]]:
        """The chosen rows by benchmark, in the suite's order; none where its data is absent."""
        with _quiet(), _templates_compiled_once():
            self._build()
            found: dict[str, list[SuiteRow]] = {entry.name: [] for entry in self.entries}
            for name, benchmark in self._benchmarks.items():
                documents = benchmark.task.eval_docs
                found[name] = [
                    SuiteRow(benchmark.ids[index], benchmark.question(index), documents[index])
                    for index in self._chosen(benchmark)
                ]
        return found

    def _build(self) -> None:
        for entry in self.entries:
            if entry.name in self._benchmarks or entry.name in self._absent:
                continue
            try:
                benchmark = build_benchmark(entry, self._options, self._split)
            except AbsentDataError as error:
                self._absent[entry.name] = f"{error.what}: {error.why}" if error.why else error.what
            else:
                for index in self._chosen(benchmark):
                    benchmark.check(index)
                _reuse_requests(benchmark.task)
                self._benchmarks[entry.name] = benchmark

    def _run_group(self, lm: Any, chat_template: bool, generated_alone: bool) -> dict[str, TaskResult]:
        """Benchmarks with (or without) chat template in one call, so that their requests share batches."""
        from lm_eval.evaluator import evaluate

        group = {
            name: benchmark
            for name, benchmark in self._benchmarks.items()
            if benchmark.entry.chat_template == chat_template
            and not (generated_alone and benchmark.task.OUTPUT_TYPE != "generate_until")
        }
        if not group:
            return {}
        began = perf_counter()
        chosen = {name: self._chosen(benchmark) for name, benchmark in group.items()}
        output = evaluate(
            lm=lm,
            task_dict={"tasks": {name: benchmark.task for name, benchmark in group.items()}},
            # lm-eval looks up every row in a list of the chosen ones; it is not asked to where all are chosen.
            samples={name: rows for name, rows in chosen.items() if len(rows) < len(group[name].ids)},
            bootstrap_iters=0,
            log_samples=True,
            system_instruction=self._system_prompt if chat_template else None,
            apply_chat_template=chat_template,
        )
        seconds = (perf_counter() - began) / len(group)
        assert output is not None
        return {
            name: task_result(
                benchmark, chosen[name], output["samples"][name], output["results"][name], lm.records, seconds
            )
            for name, benchmark in group.items()
        }

    def _chosen(self, benchmark: Benchmark) -> list[int]:
        limits = [limit for limit in (benchmark.entry.rows, self._rows) if limit is not None]
        rows = min(limits) if limits else None
        last = self._split == "dev" and not benchmark.preselected
        if last:
            half = max(1, len(benchmark.ids) // 2)
            rows = half if rows is None else min(rows, half)
        return fixed_indices(benchmark.ids, rows, last=last)

    def _absent_result(self, name: str, reason: str) -> TaskResult:
        entry = next(entry for entry in self.entries if entry.name == name)
        return TaskResult(name, entry.metric, None, reason, entry.chance, counts_of(()), group=entry.group)


def run_suite(
    model: ChatModel,
    entries: Sequence[SuiteEntry | Mapping[str, Any]],
    sampler: Sampler,
    options: DataOptions,
    *,
    rows: int | None = None,
    batch_size: int = 64,
) -> dict[str, TaskResult]:
    """Run a suite once; ``SuiteRunner`` is cheaper for several models of one tokenizer."""
    return SuiteRunner(entries, options, rows=rows, batch_size=batch_size).run(model, sampler)


def _reuse_requests(task: Any) -> None:
    """Let a task keep its requests while prompts stay the same; lm-eval builds them anew for every model."""
    build, made_for = task.build_all_requests, [""]

    def build_once(**kwargs: Any) -> None:
        key = repr([kwargs.get(name) for name in _PROMPT_SETTINGS])
        if made_for[0] != key:
            # Without a seed the choice of worked examples would differ from process to process.
            task.set_fewshot_seed(FEWSHOT_SEED)
            build(**kwargs)
            made_for[0] = key
        for instance in task.instances:
            instance.resps, instance.filtered_resps = [], {}

    task.build_all_requests = build_once


@contextmanager
def _templates_compiled_once() -> Iterator[None]:
    """lm-eval compiles a task's templates anew for every row, which costs more than all else that it does."""
    from lm_eval.utils import env

    env.from_string = lru_cache(maxsize=None)(env.from_string)
    try:
        yield
    finally:
        vars(env).pop("from_string", None)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without progress bars and log lines of lm-eval and datasets; progress is reported by the run."""
    import lm_eval.api.task as task_module
    from datasets import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    logger = logging.getLogger("lm_eval")
    level, bar = logger.level, task_module.tqdm
    logger.setLevel(logging.ERROR)
    bars_were_on = not are_progress_bars_disabled()
    task_module.tqdm = partial(bar, disable=True)
    disable_progress_bars()
    try:
        yield
    finally:
        if bars_were_on:
            enable_progress_bars()
        logger.setLevel(level)
        task_module.tqdm = bar
