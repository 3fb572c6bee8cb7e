"""Benchmarks of a suite as lm-eval tasks: the lab's skills in memory, lm-eval's own definitions on public rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from cl_bench.harness.errors import DataError, UsageError
from cl_bench.tasks.base import Example, Score
from cl_bench.tasks.retention.adapters import ADAPTERS
from cl_bench.tasks.retention.definitions import lm_eval_version
from cl_bench.tasks.retention.documents import Documents
from cl_bench.tasks.retention.suites import SuiteEntry
from cl_bench.tasks.sources.base import DataOptions
from cl_bench.tasks.sources.locate import AbsentDataError, DatasetSpec, Located, data_identity, locate, located_files

if TYPE_CHECKING:
    from lm_eval.api.task import ConfigurableTask

NOT_ALLOWED = "runs programs that the model writes, and was not allowed to (--allow-code-execution)"


@dataclass(slots=True)
class Benchmark:
    """A benchmark ready to run.

    Attributes:
        entry: Its entry in the suite.
        task: lm-eval's task object.
        ids: Id of every row, in the order of lm-eval's documents.
        rescore: Scorer of a generated answer by row index, for benchmarks of the project; None where lm-eval scores.
        preselected: The rows are those of one half (dev or test) already.
        shots: Worked examples in the prompt.
        shots_reason: Why these are fewer than the suite asks for, else None.
        graded: The metric is a share of each row, not right or wrong.
        whole_texts: No two answers are equal, so that there is no most frequent one.
    """

    entry: SuiteEntry
    task: ConfigurableTask
    ids: list[str]
    rescore: Callable[[int, str], Score] | None = None
    preselected: bool = False
    shots: int = 0
    shots_reason: str | None = None
    graded: bool = False
    whole_texts: bool = False

    def question(self, index: int) -> str:
        """Text of a row as the prompt asks it, without what comes before it."""
        document = self.task.eval_docs[index]
        text = self.task.doc_to_text(document)
        # Where options stand in front of a common ending, lm-eval's text of a question is the number of the right one.
        return str(self.task.doc_to_decontamination_query(document) if isinstance(text, int) else text)

    def check(self, index: int) -> None:
        """Check that lm-eval can score a row; it counts an answer outside the options as wrong for every model.

        Raises:
            DataError: It cannot.
        """
        try:
            document = self.task.eval_docs[index]
            gold: Any = (
                self.task.doc_to_text(document) if self.task.multiple_input else self.task.doc_to_target(document)
            )
            if self.task.OUTPUT_TYPE != "multiple_choice":
                return
            choices = self.task.doc_to_choice(document)
            known = gold in choices if isinstance(gold, str) else gold in range(len(choices))
        except (
            Exception
        ) as error:  # templates and functions of a definition raise what a row that does not fit leads to
            raise self._misfit(index, f"{type(error).__name__}: {error}") from error
        if not known:
            raise self._misfit(index, f"its answer {gold!r} is none of its {len(choices)} options")

    def _misfit(self, index: int, why: str) -> DataError:
        return DataError(f"the row {self.ids[index]!r} of {self.entry.name} cannot be scored", why)


def benchmark_datasets(entry: SuiteEntry) -> tuple[DatasetSpec, ...]:
    """Public data sets that a benchmark reads: its rows, then the worked examples' where they are kept apart.

    Raises:
        UsageError: The entry does not say where its data is.
    """
    declared = [data for data in (entry.data, entry.worked_examples) if data]
    if entry.source == "lab-skill":
        return ()
    try:
        return tuple(DatasetSpec(**data) for data in declared or [{}])
    except TypeError as error:
        raise UsageError(f"the benchmark {entry.name} does not say where its data is", str(error)) from error


def benchmark_identity(entry: SuiteEntry, options: DataOptions) -> dict[str, Any]:
    """What fixes a benchmark's rows and scorer, as JSON. Raises DataError where a local data file is broken."""
    if entry.source == "lab-skill":
        from cl_bench.tasks.lab.skills import skill_task

        return skill_task(entry.task).identity()
    spec, *apart = benchmark_datasets(entry)
    identity: dict[str, Any] = {"lm_eval": lm_eval_version(), "data": data_identity(spec, options)}
    if apart:
        identity["worked_examples"] = _identity_apart(apart[0], options)
    if entry.adapter is not None:
        identity["adapter"] = ADAPTERS[entry.adapter].identity()
    if entry.executes_code:
        # Without leave the column has no values: another result, and so another run.
        identity["executed"] = bool(options.allow_code)
    return identity


def locate_apart(spec: DatasetSpec, options: DataOptions) -> Located:
    """Find a data set whose split may be absent from a folder that is there. Raises AbsentDataError."""
    located = locate(spec, options)
    if located.kind != "folder":
        return located
    (split,) = spec.files
    try:
        found = located_files(spec, split, located)
    except DataError as error:
        raise AbsentDataError(error.what, error.why) from error
    if not found:
        raise AbsentDataError(f"the data set {spec.path} has no split {spec.hub_split(split)!r}", str(located.root))
    return located


def _identity_apart(spec: DatasetSpec, options: DataOptions) -> dict[str, Any]:
    try:
        locate_apart(spec, options)
    except AbsentDataError:
        return {"absent": spec.path}
    return data_identity(spec, options)


def is_absent(identity: Mapping[str, Any]) -> bool:
    """Whether an identity says that the benchmark's rows are not there."""
    return "absent" in identity.get("data", {})


def build_benchmark(entry: SuiteEntry, options: DataOptions, split: Literal["test", "dev"] = "test") -> Benchmark:
    """Make the lm-eval task of an entry.

    Args:
        entry: The benchmark.
        options: Where public data is, and whether programs may be run.
        split: Half of a lab skill's rows; lm-eval tasks have one set of rows.

    Raises:
        AbsentDataError: Its rows are not there, or it would run programs and must not.
        DataError: Its rows are broken.
        UsageError: The suite asks for what the installed lm-eval does not have.
    """
    runs_programs = entry.executes_code or (entry.adapter is not None and ADAPTERS[entry.adapter].executes_code)
    if runs_programs and not options.allow_code:
        raise AbsentDataError(NOT_ALLOWED)
    if entry.source == "lab-skill":
        return _lab_benchmark(entry, split)
    from cl_bench.tasks.retention.lm_eval_tasks import lm_eval_benchmark

    return lm_eval_benchmark(entry, options)


def _lab_benchmark(entry: SuiteEntry, split: Literal["test", "dev"]) -> Benchmark:
    from lm_eval.api.task import ConfigurableTask

    from cl_bench.tasks.lab.skills import skill_task

    skill = skill_task(entry.task)
    examples = skill.test() if split == "test" else skill.dev()
    documents = Documents(_document(index, example) for index, example in enumerate(examples))

    def rescore(index: int, text: str) -> Score:
        return skill.score(examples[index], text)

    def process_results(document: Mapping[str, Any], results: Sequence[str]) -> dict[str, float]:
        return {"acc": float(rescore(document["index"], results[0]).correct)}

    config: dict[str, Any] = {
        "task": entry.name,
        "custom_dataset": lambda **_: {"test": documents},
        "test_split": "test",
        "doc_to_text": "question",
        "metric_list": [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}],
        "num_fewshot": 0,
        "metadata": {"version": skill.version},
    }
    if examples[0].choices is None:
        limit = entry.max_new_tokens or skill.max_new_tokens
        config |= {
            "output_type": "generate_until",
            "doc_to_target": "answer",
            "generation_kwargs": {"until": [], "do_sample": False, "max_gen_toks": limit},
            "process_results": process_results,
        }
        return Benchmark(entry, ConfigurableTask(config=config), _ids(examples), rescore, preselected=True)
    config |= {"output_type": "multiple_choice", "doc_to_choice": "continuations", "doc_to_target": "gold_index"}
    return Benchmark(entry, ConfigurableTask(config=config), _ids(examples), preselected=True)


def _ids(examples: Sequence[Example]) -> list[str]:
    return [example.id for example in examples]


def _document(index: int, example: Example) -> dict[str, Any]:
    document = {"index": index, "id": example.id, "question": example.question, "answer": example.answer}
    if example.choices is not None:
        meta = example.meta
        document |= {"continuations": list(meta["continuations"]), "gold_index": meta["gold_index"]}
    return document
