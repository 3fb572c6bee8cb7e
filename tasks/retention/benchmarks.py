"""Benchmarks of a suite as lm-eval tasks: the lab's skills in memory, lm-eval's own definitions on local rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

from cl_bench.harness.errors import UsageError
from cl_bench.tasks.base import Example, Score
from cl_bench.tasks.retention.suites import SuiteEntry
from cl_bench.tasks.sources.base import DataOptions
from cl_bench.tasks.sources.locate import DatasetSpec, Located, data_identity, locate

if TYPE_CHECKING:
    from lm_eval.api.task import ConfigurableTask


@dataclass(slots=True)
class Benchmark:
    """A benchmark ready to run.

    Attributes:
        entry: Its entry in the suite.
        task: lm-eval's task object.
        ids: Id of every row, in the order of lm-eval's documents.
        rescore: Scorer of a generated answer by row index, for benchmarks of the project; None where lm-eval scores.
        preselected: The rows are those of one half (dev or test) already.
    """

    entry: SuiteEntry
    task: ConfigurableTask
    ids: list[str]
    rescore: Callable[[int, str], Score] | None = None
    preselected: bool = False


class Documents(list[dict[str, Any]]):
    """Documents in memory, with the two attributes of ``datasets.Dataset`` that lm-eval reads."""

    @property
    def features(self) -> Mapping[str, None]:
        """Names of the fields."""
        return dict.fromkeys(self[0]) if self else {}


def benchmark_identity(entry: SuiteEntry, options: DataOptions) -> dict[str, Any]:
    """What fixes a benchmark's rows and scorer, as JSON. Raises DataError where a local data file is broken."""
    if entry.source == "lab-skill":
        from cl_bench.tasks.lab.skills import skill_task

        return skill_task(entry.task).identity()
    return {"lm_eval": _lm_eval_version(), "data": data_identity(_dataset(entry), options)}


def build_benchmark(entry: SuiteEntry, options: DataOptions, split: Literal["test", "dev"] = "test") -> Benchmark:
    """Make the lm-eval task of an entry.

    Args:
        entry: The benchmark.
        options: Where public data is.
        split: Half of a lab skill's rows; lm-eval tasks have one set of rows.

    Raises:
        AbsentDataError: Its rows are not there.
        DataError: Its rows are broken.
    """
    if entry.source == "lab-skill":
        return _lab_benchmark(entry, split)
    return _lm_eval_benchmark(entry, options)


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


def _lm_eval_benchmark(entry: SuiteEntry, options: DataOptions) -> Benchmark:
    from lm_eval.tasks import TaskManager

    spec = _dataset(entry)
    overrides = _data_overrides(spec, locate(spec, options))
    overrides |= {"include": str(_definition(entry.task)), "task": entry.name, "num_fewshot": entry.shots}
    with TemporaryDirectory() as folder:
        # JSON is YAML; lm-eval reads task definitions from files only.
        Path(folder, f"{entry.name}.yaml").write_text(json.dumps(overrides), encoding="utf-8")
        task = TaskManager(include_path=folder, include_defaults=False).load([entry.name])["tasks"][entry.name]
    if entry.max_new_tokens is not None and task.config.generation_kwargs is not None:
        task.config.generation_kwargs["max_gen_toks"] = entry.max_new_tokens
    ids = [str(document.get("id", index)) for index, document in enumerate(task.eval_docs)]
    return Benchmark(entry, task, ids)


def _data_overrides(spec: DatasetSpec, located: Located) -> dict[str, Any]:
    if located.kind == "hub":
        return {"dataset_kwargs": {"revision": spec.revision}} if spec.revision else {}
    if located.kind == "folder":
        return {"dataset_path": str(located.root), "dataset_name": spec.config}
    files = {spec.hub_split(split): str(path) for split, path in located.files.items()}
    overrides: dict[str, Any] = {
        "dataset_path": "json",
        "dataset_name": None,
        "dataset_kwargs": {"data_files": files},
    }
    if "train" not in files:
        # lm-eval reads the training split as soon as it is named, even without worked examples.
        overrides |= {"training_split": None, "fewshot_split": None}
    return overrides


def _definition(task: str) -> Path:
    """File of one of lm-eval's task definitions, found by name without indexing all of them."""
    import lm_eval

    root = Path(lm_eval.__path__[0]) / "tasks"
    for path in (root / task / f"{task}.yaml", root / task / "default.yaml"):
        if path.is_file():
            return path
    for path in sorted(root.rglob("*.yaml")):
        if f"task: {task}\n" in path.read_text(encoding="utf-8"):
            return path
    raise UsageError(f"lm-eval {_lm_eval_version()} has no task {task!r}", hint="correct `task` in the suite's file")


def _lm_eval_version() -> str:
    from importlib.metadata import version

    return version("lm_eval")


def _dataset(entry: SuiteEntry) -> DatasetSpec:
    try:
        return DatasetSpec(**entry.data)
    except TypeError as error:
        raise UsageError(f"the benchmark {entry.name} does not say where its data is", str(error)) from error
