"""lm-eval's own definitions on rows from the project's loader, completed by adapters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cl_bench.harness.errors import DataError, UnknownNameError, UsageError
from cl_bench.tasks.base import Score
from cl_bench.tasks.retention.adapters import ADAPTERS, Adapter, Verdict
from cl_bench.tasks.retention.benchmarks import Benchmark, benchmark_datasets, locate_apart
from cl_bench.tasks.retention.definitions import read_definition, sandbox_templates
from cl_bench.tasks.retention.documents import ROW_INDEX, Documents, Row, content_hash, documents_of, row_ids
from cl_bench.tasks.retention.suites import SuiteEntry
from cl_bench.tasks.sources.base import DataOptions
from cl_bench.tasks.sources.locate import AbsentDataError, load_rows, read_located

if TYPE_CHECKING:
    from lm_eval.api.task import ConfigurableTask


@dataclass(frozen=True, slots=True)
class _WorkedExamples:
    """Worked examples of a prompt.

    Attributes:
        shots: How many a prompt has.
        rows: What they are taken from; None where the definition holds them itself.
        reason: Why there are fewer than asked for, else None.
    """

    shots: int = 0
    rows: Sequence[Row] | None = None
    reason: str | None = None


class _JudgedOnce:
    """Judges each answer once, though lm-eval and the project's rows both ask: some judges run programs."""

    def __init__(self, judge: Callable[[int, str], Verdict]) -> None:
        self._judge = judge
        self._last: dict[int, tuple[str, Verdict]] = {}

    def __call__(self, index: int, text: str) -> Verdict:
        known = self._last.get(index)
        if known is None or known[0] != text:
            known = self._last[index] = (text, self._judge(index, text))
        return known[1]

    def score(self, index: int, text: str) -> Score:
        return self(index, text)[0]

    def process_results(self, document: Mapping[str, Any], results: Sequence[str]) -> dict[str, Any]:
        return dict(self(document[ROW_INDEX], results[0])[1])


def lm_eval_benchmark(entry: SuiteEntry, options: DataOptions) -> Benchmark:
    """Make the task of an entry whose source is ``lm-eval``; raises as ``build_benchmark`` does."""
    from lm_eval.api.task import ConfigurableTask

    sandbox_templates()
    adapter = ADAPTERS[entry.adapter] if entry.adapter else Adapter()
    with adapter.loading():
        config = read_definition(entry.task, functions=adapter.functions)
    config |= {**adapter.config, **entry.config}
    spec = benchmark_datasets(entry)[0]
    rows = {spec.hub_split(split): load_rows(spec, split, options) for split in spec.files}
    split = config.get("test_split") or config.get("validation_split")
    if split not in rows:
        raise UsageError(f"the benchmark {entry.name} is evaluated on the split {split!r}, which its `files` lack")
    worked = _worked_examples(entry, adapter, config, rows, str(split), options)
    documents = documents_of(rows[split], adapter.document, config.get("process_docs"), entry.name)
    ids = _renumbered(documents, row_ids(rows[split], entry.row_id))
    splits = {split: documents}
    if worked.rows is not None:
        kept = documents_of(worked.rows, adapter.document, config.get("process_docs"), entry.name)
        splits[config["fewshot_split"]] = kept
    judged = _complete(config, entry, adapter, documents)
    try:
        task = ConfigurableTask(config=_on_rows(config, entry, splits, worked))
    except Exception as error:  # lm-eval renders the first row, which raises what a row that does not fit leads to
        raise DataError(
            f"lm-eval's definition of {entry.name} does not fit its rows", f"{type(error).__name__}: {error}"
        ) from error
    _check_metric(entry, task)
    if adapter.examples_by is not None and worked.shots:
        _take_examples_by(task, adapter.examples_by)
    return Benchmark(
        entry,
        task,
        ids,
        judged.score if judged else None,
        shots=worked.shots,
        shots_reason=worked.reason,
        graded=adapter.graded,
        whole_texts=adapter.whole_texts,
    )


def _check_metric(entry: SuiteEntry, task: ConfigurableTask) -> None:
    """Refuse a metric that the definition does not compute: its column would be empty after hours of training."""
    known = [
        metric if filtered.name == "none" else f"{metric},{filtered.name}"
        for metric in task.aggregation()
        for filtered in task._filters
    ]
    if entry.metric.removesuffix(",none") not in known:
        raise UnknownNameError(f"metric of the benchmark {entry.name} (lm-eval's {entry.task})", entry.metric, known)


def _renumbered(documents: Documents, ids: Sequence[str]) -> list[str]:
    """Ids of the documents that the definition kept, which are numbered anew."""
    kept = [ids[document[ROW_INDEX]] for document in documents]
    for index, document in enumerate(documents):
        document[ROW_INDEX] = index
    return kept


def _complete(config: dict[str, Any], entry: SuiteEntry, adapter: Adapter, documents: Documents) -> _JudgedOnce | None:
    """Put scorers and the limit of generated answers into a definition."""
    if adapter.metrics:
        config["metric_list"] = [
            {"metric": name, "aggregation": "mean", "higher_is_better": True} for name in adapter.metrics
        ]
    if entry.max_new_tokens is not None and config.get("output_type") == "generate_until":
        config["generation_kwargs"] = {
            **(config.get("generation_kwargs") or {}),
            "max_gen_toks": entry.max_new_tokens,
        }
    if adapter.process_results is not None:
        config["process_results"] = adapter.process_results
    if adapter.judge is None:
        return None
    judge, own = adapter.judge, config.get("process_results")
    judged = _JudgedOnce(lambda index, text: judge(own, documents[index], text))  # type: ignore[arg-type]
    config["process_results"] = judged.process_results
    return judged


def _on_rows(
    config: Mapping[str, Any], entry: SuiteEntry, splits: Mapping[str, Documents], worked: _WorkedExamples
) -> dict[str, Any]:
    """A definition that reads the given documents; they are processed already."""
    present = {name: config.get(name) for name in ("test_split", "validation_split", "fewshot_split")}
    changed: dict[str, Any] = {name: split if split in splits else None for name, split in present.items()}
    changed |= {
        "task": entry.name,
        "custom_dataset": lambda **_: dict(splits),
        "dataset_path": None,
        "dataset_name": None,
        "dataset_kwargs": None,
        "training_split": None,
        "process_docs": None,
        "num_fewshot": worked.shots,
    }
    if not worked.shots:
        changed |= {"fewshot_split": None, "fewshot_config": None}
    return {**config, **changed}


def _worked_examples(
    entry: SuiteEntry,
    adapter: Adapter,
    config: dict[str, Any],
    rows: Mapping[str, list[Row]],
    evaluated: str,
    options: DataOptions,
) -> _WorkedExamples:
    """Where the worked examples of an entry's prompts come from; never from the evaluated rows.

    Raises:
        AbsentDataError: The entry asks for them and there are none, or too few.
    """
    if not entry.shots:
        return _WorkedExamples()
    split = config.get("fewshot_split")
    if entry.worked_examples:
        spec = benchmark_datasets(entry)[1]
        (key,) = spec.files
        split = spec.hub_split(key)
        try:
            pool = read_located(spec, key, locate_apart(spec, options))
        except AbsentDataError as error:
            return _WorkedExamples(reason=f"no worked examples: {error.what}: {error.why}")
    elif split is None and (config.get("fewshot_config") or {}).get("samples"):
        return _WorkedExamples(entry.shots)
    else:
        split = split or config.get("training_split")
        pool = list(rows.get(str(split), ()))
    if split == evaluated:
        raise AbsentDataError(f"the worked examples of {entry.name} would be evaluated rows")
    config["fewshot_split"] = split
    known = {content_hash(row) for row in rows[evaluated]}
    kept = adapter.examples([row for row in pool if content_hash(row) not in known])
    _check_enough(entry, adapter, kept, rows[evaluated])
    return _WorkedExamples(entry.shots, kept)


def _check_enough(entry: SuiteEntry, adapter: Adapter, examples: Sequence[Row], evaluated: Sequence[Row]) -> None:
    by = adapter.examples_by
    wanted = {str(row[by]) for row in evaluated} if by else {""}
    found = Counter(str(row[by]) if by else "" for row in examples)
    short = sorted(group for group in wanted if found[group] < entry.shots)
    if short:
        raise AbsentDataError(
            f"{entry.name} asks for {entry.shots} worked examples",
            f"there are {found[short[0]]} {short[0]}".rstrip() + " outside the evaluated rows",
            "add them, or set `shots: 0` in a copy of the suite",
        )


def _take_examples_by(task: ConfigurableTask, name: str) -> None:
    """Let every prompt show the first worked examples that share a field with its question, as lm-eval's parts do."""
    groups: dict[Any, list[Row]] = {}
    for example in task.sampler.df:
        groups.setdefault(example[name], []).append(example)
    render = task.fewshot_context

    def of_its_group(doc: Row, *args: Any, **kwargs: Any) -> Any:
        task.sampler.replace_df(groups[doc[name]])
        return render(doc, *args, **kwargs)

    task.fewshot_context = of_its_group
