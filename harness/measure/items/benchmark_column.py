"""A column that comes from a retention benchmark, for recovery probes: asked through lm-eval as in evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from cl_bench.harness.context import sampler_for
from cl_bench.harness.errors import DataError
from cl_bench.harness.generation.base import Completion, GenerationSettings, Prompt, Sampler
from cl_bench.harness.measure.evaluation import no_trace
from cl_bench.harness.measure.items.causes import Sample, verdict
from cl_bench.harness.measure.items.openings import Frame
from cl_bench.harness.measure.items.probed import ProbedColumn
from cl_bench.harness.measure.items.task_column import (
    ASKED_PER_LESSON,
    as_asked,
    check_ids,
    check_prompt,
    opening_ids,
    whole_text,
)
from cl_bench.harness.measure.lm_eval_model import SamplerLM
from cl_bench.harness.measure.recorded_lm import RecordedLM
from cl_bench.harness.measure.suite import SuiteRunner
from cl_bench.methods.training.rows import TrainingRow
from cl_bench.tasks.retention.suites import SuiteEntry

if TYPE_CHECKING:
    from lm_eval.api.instance import Instance

    from cl_bench.harness.models.chat_model import ChatModel
    from cl_bench.harness.spec import RunSpec
    from cl_bench.tasks.sources.base import DataOptions

_Place = tuple[str | None, int | None]
_NONE = Completion((), "", "length", ())


class AskingLM(SamplerLM):
    """A ``SamplerLM`` that begins every answer with a given text, and notes prompts and answers as ids.

    Attributes:
        noted: Prompt and answer of each document, as token ids, by its place among the chosen rows; of a document
            whose options are scored one pair an option, by the option's number.
        unfit: Documents that leave no room for an answer once the opening is there.
    """

    def __init__(self, model: ChatModel, sampler: Sampler, batch_size: int, opening: str = "") -> None:
        """Wrap a model.

        Args:
            model: The model.
            sampler: A sampler built around it.
            batch_size: Rows decoded, or continuations scored, together.
            opening: What every generated answer begins with.
        """
        super().__init__(model, sampler, batch_size)
        self.noted: dict[_Place, dict[int, tuple[tuple[int, ...], tuple[int, ...]]]] = {}
        self.unfit: set[_Place] = set()
        self._opening = opening_ids(model, opening)
        self._answers: dict[tuple[int, ...], tuple[int, ...]] = {}

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = True) -> list[tuple[float, bool]]:
        """Notes each pair, then scores."""
        for request in requests:
            context, continuation = self._pair(*request.args[:2])
            noted = self.noted.setdefault((request.task_name, request.doc_id), {})
            noted[request.idx] = (tuple(context), tuple(continuation))
        return super().loglikelihood(requests, disable_tqdm)

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = True) -> list[str]:
        """Answers, then notes each pair."""
        texts = super().generate_until(requests, disable_tqdm)
        for request in requests:
            prompt, place = tuple(self.tok_encode(request.args[0])), (request.task_name, request.doc_id)
            answer = self._answers.get(prompt)
            if answer is None:
                self.unfit.add(place)
            else:
                self.noted[place] = {0: (prompt, answer)}
        return texts

    def _complete(self, prompts: list[Prompt], settings: GenerationSettings) -> list[Completion]:
        begun = [Prompt((*prompt.ids, *self._opening), prompt.seed) for prompt in prompts]
        # What fits without the opening may not fit with it: such a row has no answer.
        fits = [self.sampler.fits(len(prompt.ids), settings) for prompt in begun]
        made = iter(super()._complete([prompt for prompt, fit in zip(begun, fits, strict=True) if fit], settings))
        return [
            self._begun(prompt, next(made), settings) if fit else _NONE
            for prompt, fit in zip(prompts, fits, strict=True)
        ]

    def _begun(self, prompt: Prompt, completion: Completion, settings: GenerationSettings) -> Completion:
        """The completion with the opening in its text."""
        self._answers[prompt.ids] = completion.ids
        text = whole_text(self.chat, self._opening, completion, settings)
        return Completion(completion.ids, text, completion.ended, completion.logprobs)


class ProbedBenchmark(ProbedColumn):
    """A benchmark of the run's suite."""

    def __init__(self, spec: RunSpec, entry: Mapping[str, Any], options: DataOptions) -> None:
        """Wrap a benchmark.

        Args:
            spec: The run.
            entry: The benchmark as the run's spec records it.
            options: Where public data is.

        Raises:
            DataError: Its rows are not there.
        """
        self._spec, self._entry = spec, SuiteEntry.from_dict(entry)
        self.name = self._entry.name
        self._options = options
        self._runner = self._make_runner(spec.evaluation.split, spec.evaluation.suite_rows)
        self._rows = self._runner.rows()[self.name]
        if not self._rows:
            raise DataError(f"the rows of {self.name} are not there", hint="give the run's own data with --data-root")
        self._recorded: dict[str, Sample] = {}

    def check(self, model: ChatModel, samples: Sequence[Sample]) -> None:
        """Ids now; prompts are compared when they are asked."""
        check_ids(self.name, samples, {row.id: row for row in self._rows})
        self._recorded = {str(sample["id"]): sample for sample in samples}

    def answers(self, model: ChatModel, ids: Sequence[str], opening: str = "") -> dict[str, bool]:
        """Every row of the benchmark is asked, as in evaluation; those of the ids are kept."""
        samples, lm = self._asked(self._runner, model, opening)
        wanted, found = set(ids), {}
        for place, sample in enumerate(samples):
            name, right = str(sample["id"]), verdict(sample)
            if name in self._recorded:
                check_prompt(self.name, self._recorded[name], sample["prompt_hash"])
            if name in wanted and right is not None and (self.name, place) not in lm.unfit:
                found[name] = right
        return found

    def ranks_gold_first(self, model: ChatModel, ids: Sequence[str], frame: Frame) -> dict[str, bool]:
        """Nothing: generated benchmarks have no options to rank."""
        return {}

    def right_by(self, text: str) -> set[str]:
        """Scored by the benchmark, whose answers are generated."""
        answered = {self.name: [_said(row.id, text) for row in self._rows]}
        result = self._runner.run_with(RecordedLM(answered))[self.name]
        return {str(sample["id"]) for sample in result.samples if verdict(sample)}

    def lessons(self, base: ChatModel, most: int) -> list[TrainingRow]:
        """Right and finished answers to rows of the dev half; of scored options, the right one."""
        runner = self._make_runner("dev", ASKED_PER_LESSON * most, whole=True)
        scored = {key for row in self._rows for key in (row.id, as_asked(row.question))}
        free = [not {row.id, as_asked(row.question)} & scored for row in runner.rows()[self.name]]
        if not any(free):
            return []
        samples, lm = self._asked(runner, base, "")
        rows = []
        for place, (sample, is_free) in enumerate(zip(samples, free, strict=True)):
            noted = lm.noted.get((self.name, place), {})
            if is_free and verdict(sample) and noted and sample["ended"] in ("eos", "scored"):
                prompt, answer = noted[int(sample["parsed"]) if sample["ended"] == "scored" else 0]
                rows.append(TrainingRow(str(sample["id"]), prompt, _ended(answer, base.end_id)))
        return rows[:most]

    def _make_runner(self, split: Any, rows: int | None, whole: bool = False) -> SuiteRunner:
        """On the rows of the suite's tier, or on the whole split."""
        return SuiteRunner(
            [replace(self._entry, rows=None) if whole else self._entry],
            self._options,
            rows=rows,
            split=split,
            batch_size=self._spec.evaluation_batch_size,
            system_prompt=self._spec.evaluation.system_prompt,
        )

    def _asked(self, runner: SuiteRunner, model: ChatModel, opening: str) -> tuple[list[dict[str, Any]], AskingLM]:
        lm = _asking_lm(model, sampler_for(model, self._spec.precision), self._spec.evaluation_batch_size, opening)
        with no_trace(model):
            return runner.run_with(lm)[self.name].samples, lm


def probed_benchmark(spec: RunSpec, options: DataOptions, name: str) -> ProbedBenchmark | None:
    """The column of that name for probing, or None where it is no benchmark of the run."""
    entries = spec.suite.tasks if spec.suite else ()
    found = next((entry for entry in entries if entry["name"] == name), None)
    return ProbedBenchmark(spec, found, options) if found is not None else None


def _asking_lm(model: ChatModel, sampler: Sampler, batch_size: int, opening: str) -> AskingLM:
    from lm_eval.api.model import TemplateLM

    joined = type("AskingLM", (AskingLM, TemplateLM), {"__doc__": AskingLM.__doc__})
    return cast(AskingLM, joined(model, sampler, batch_size, opening))


def _said(name: str, text: str) -> dict[str, Any]:
    return {"id": name, "response": text, "loglikelihoods": None, "tokens": 0, "ended": "eos"}


def _ended(answer: tuple[int, ...], end_id: int) -> tuple[int, ...]:
    return answer if answer[-1:] == (end_id,) else (*answer, end_id)
