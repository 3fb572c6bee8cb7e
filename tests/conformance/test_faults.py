"""Each check finds the fault that it is for, in a method or modifier that is right otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cl_bench.harness.conformance import behaviour
from cl_bench.harness.conformance.behaviour import NotApplicable, behaviour_checks
from cl_bench.harness.conformance.trials import Trials
from cl_bench.methods.sft import SFT
from tests.conformance import faults, modifier_faults

METHODS: dict[type[Any], tuple[Any, str]] = {
    faults.Idle: (behaviour.trains, "the weights are what they were"),
    faults.SilentLoop: (behaviour.trains, "context.after_step was not called"),
    faults.OwnLoopInDisguise: (behaviour.calls_modifiers, "parameter_penalty was not called"),
    faults.MicroBatchMean: (behaviour.micro_batches, "not normalised over the whole optimizer step: gradients differ"),
    faults.OwnLoopMicroBatchMean: (
        behaviour.micro_batches,
        "not normalised over the whole optimizer step: the weights",
    ),
    faults.FirstRowDouble: (behaviour.order_within_a_step, "depends on the order of its rows"),
    faults.LastColumnDropped: (behaviour.padding_side, "depends on tokenizer.padding_side"),
    faults.MovingTeacher: (behaviour.models_stay, "the weights of task_start() were changed"),
    faults.MovingAligner: (behaviour.models_stay, "the weights of aligner() were changed"),
    faults.Peeks: (behaviour.no_test_rows, "the task's test rows were read"),
    faults.TorchGenerator: (behaviour.entry_state, "global generators"),
    faults.NumpyGenerator: (behaviour.entry_state, "global generators"),
    faults.PythonGenerator: (behaviour.entry_state, "global generators"),
    faults.LoadsNothing: (behaviour.states_survive, "load_training_state of a fresh object"),
    faults.ForgetsSteps: (behaviour.resume, "belongs into training_state"),
    faults.ForgetsStages: (behaviour.next_stage, "state_dict does not hold"),
    faults.Unread: (behaviour.settings_are_read, "never read: ignored"),
}
MODIFIERS: dict[type[Any], tuple[Any, str]] = {
    modifier_faults.PullsNothing: (behaviour.acts, "without it"),
    modifier_faults.MeanTokenPenalty: (behaviour.micro_batches, "not normalised"),
    modifier_faults.PullMovesTheAnchor: (behaviour.models_stay, "task_start()"),
    modifier_faults.PullForgetsSteps: (behaviour.resume, "belongs into training_state"),
    modifier_faults.PullForgetsStages: (behaviour.next_stage, "state_dict does not hold"),
    modifier_faults.UnreadModifier: (behaviour.settings_are_read, "never read: "),
}


def test_an_exception_is_told_with_its_line_in_the_extension(tmp_path: Path) -> None:
    (check, *_) = behaviour_checks(Trials(faults.MiscallsTheSampler, tmp_path))
    lines = Path(faults.__file__).read_text().splitlines()
    line = next(number for number, text in enumerate(lines, 1) if "context.sampler(student)(" in text)
    assert check.problem.startswith("TypeError: 'LocalSampler' object is not callable")
    assert check.problem.endswith(f"(faults.py, line {line}, in adapt)")


@pytest.mark.parametrize("method", METHODS, ids=lambda cls: cls.__name__)
def test_method(method: type[Any], tmp_path: Path) -> None:
    check, words = METHODS[method]
    assert words in check(Trials(method, tmp_path))


@pytest.mark.parametrize("modifier", MODIFIERS, ids=lambda cls: cls.__name__)
def test_modifier(modifier: type[Any], tmp_path: Path) -> None:
    check, words = MODIFIERS[modifier]
    assert words in check(Trials(SFT, tmp_path, modifier))


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (faults.Raises, "ZeroDivisionError: in the middle"),
        (faults.KeepsAnObject, "TypeError"),
        (faults.Diverges, "weights are not finite after the stage"),
    ],
)
def test_what_an_extension_raises_is_the_problem_of_the_check(method: type[Any], words: str, tmp_path: Path) -> None:
    failed = [check for check in behaviour_checks(Trials(method, tmp_path)) if not check.passed]
    assert failed and all(words in check.problem for check in failed)


@pytest.mark.parametrize("method", [faults.Faulty, faults.OwnLoop], ids=lambda cls: cls.__name__)
def test_what_the_faults_were_put_into_passes(method: type[Any], tmp_path: Path) -> None:
    checks = behaviour_checks(Trials(method, tmp_path))
    assert [check for check in checks if not check.passed] == []
    skipped = {check.name: check.skipped for check in checks if check.skipped}
    own = {"modifiers are called": "takes_modifiers is False"}
    assert skipped == (own if method is faults.OwnLoop else {})


def test_the_modifier_that_the_faults_were_put_into_passes(tmp_path: Path) -> None:
    assert [check for check in behaviour_checks(Trials(SFT, tmp_path, modifier_faults.Pull)) if not check.passed] == []


def test_a_setting_under_another_switch_counts_as_read(tmp_path: Path) -> None:
    assert behaviour.settings_are_read(Trials(faults.Conditional, tmp_path)) == ""


def test_a_stage_of_one_step_cannot_be_stopped_in_the_middle(tmp_path: Path) -> None:
    class OneStep(faults.OwnLoop):
        """All rows at once."""

        def __init__(self, settings: Any = None) -> None:
            super().__init__(settings.model_copy(update={"step_rows": 100}))

    with pytest.raises(NotApplicable):
        behaviour.resume(Trials(OneStep, tmp_path))
