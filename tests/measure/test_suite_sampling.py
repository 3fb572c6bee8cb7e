"""Sampled answers to a suite's benchmarks, and recorded ones in the place of a model."""

from __future__ import annotations

from pathlib import Path

from cl_bench.harness.generation.local import LocalSampler
from cl_bench.harness.measure.recorded_lm import RecordedLM
from cl_bench.harness.measure.sampled import Sampling
from cl_bench.harness.measure.suite import SuiteRunner
from cl_bench.harness.measure.task_result import TaskResult
from cl_bench.tasks.retention.suites import SuiteEntry, load_suite
from cl_bench.tasks.sources.base import DataOptions
from tests.support import tiny_model

SUITES = Path(__file__).resolve().parents[2] / "tasks" / "retention"


def entries() -> list[SuiteEntry]:
    """Two benchmarks of each kind of request."""
    from cl_bench.tasks.lab.skills import SKILLS

    kinds = {skill.name: skill.kind for skill in SKILLS}
    suite = load_suite(SUITES / "lab.yaml")
    return [e for kind in ("generate", "multiple_choice") for e in [e for e in suite if kinds[e.task] == kind][:2]]


def results(sampling: Sampling | None = None, runner: SuiteRunner | None = None) -> dict[str, TaskResult]:
    model = tiny_model(context_length=400)
    suite = runner or SuiteRunner(entries(), DataOptions(), rows=6)
    return suite.run(model, LocalSampler(model), sampling)


def test_generated_answers_are_drawn_several_times_beside_the_greedy_one() -> None:
    runner = SuiteRunner(entries(), DataOptions(), rows=6)
    plain, sampled, again = results(None, runner), results(Sampling(3), runner), results(Sampling(3))
    generated, chosen = list(plain)[:2], list(plain)[2:]
    for name in generated:
        assert [row["response"] for row in sampled[name].samples] == [row["response"] for row in plain[name].samples]
        assert sampled[name].value == plain[name].value
        assert [len(row["sampled"]) for row in sampled[name].samples] == [3] * 6
        assert sampled[name].samples == again[name].samples
        assert {"avg@3", "maj@3", "pass@3"} <= set(sampled[name].values)
        assert sampled[name].intervals == {}, "six items are too few for an interval"
        assert "avg@3,none" in sampled[name].results_json()["results"][name]
    drawn = [answer["response"] for name in generated for row in sampled[name].samples for answer in row["sampled"]]
    assert len(set(drawn)) > 6
    for name in chosen:
        assert sampled[name].samples == plain[name].samples
    assert results(None, runner)[generated[0]].samples == plain[generated[0]].samples


def test_recorded_answers_give_the_recorded_result() -> None:
    before = results(Sampling(2))
    runner = SuiteRunner(entries(), DataOptions(), rows=6)
    after = runner.run_with(RecordedLM({name: result.samples for name, result in before.items()}))
    for name, result in before.items():
        assert after[name].value == result.value
        assert [row["correct"] for row in after[name].samples] == [row["correct"] for row in result.samples]
        assert after[name].counts == result.counts


def test_another_answer_is_another_result() -> None:
    before = results()
    name = list(before)[2]
    flat = [
        {**row, "loglikelihoods": [-float(i) for i in range(len(row["loglikelihoods"]))]}
        for row in before[name].samples
    ]
    samples = {other: flat if other == name else result.samples for other, result in before.items()}
    after = SuiteRunner(entries(), DataOptions(), rows=6).run_with(RecordedLM(samples))
    assert [row["parsed"] for row in after[name].samples] == ["0"] * 6
