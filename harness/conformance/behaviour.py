"""What training with a method or modifier must be like, looked at on a tiny model; one function a check.

Every function takes ``Trials`` and returns what is wrong, or nothing; ``NotApplicable`` says why it has nothing to say.
"""

from __future__ import annotations

import functools
import gc
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from cl_bench.harness.conformance.check import Check, raised
from cl_bench.harness.conformance.comparing import first_step_difference, same_state, unequal
from cl_bench.harness.conformance.tiny import same_weights
from cl_bench.harness.conformance.tiny_settings import tiny_values, variants
from cl_bench.harness.conformance.trial import Setup, through_disk, train
from cl_bench.harness.conformance.trials import STEP_ROWS, Trials
from cl_bench.harness.conformance.watching import Weights
from cl_bench.harness.errors import ClBenchError
from cl_bench.methods.base import Method


class NotApplicable(Exception):
    """A check has nothing to look at; the message says why."""


def trains(trials: Trials) -> str:
    """The weights move, and the adaptation says what was done; ``Components`` refuses what is no number."""
    whole = trials.whole
    assert whole.adaptation is not None
    if same_weights(whole.before, whole.after):
        return "the weights are what they were"
    if whole.adaptation.steps < 1:
        return "the adaptation reports no optimizer step"
    return "" if whole.steps else "context.after_step was not called after optimizer steps"


def calls_modifiers(trials: Trials) -> str:
    """A method that says it takes modifiers calls them."""
    if not trials.subject.takes_modifiers:
        raise NotApplicable("takes_modifiers is False")
    return "" if trials.one_step.gradients else "takes_modifiers is True, but parameter_penalty was not called"


def micro_batches(trials: Trials) -> str:
    """An optimizer step of four rows at once equals one of four single rows."""
    return first_step_difference(
        trials.one_step, trials.step(micro=1), "the loss is not normalised over the whole optimizer step"
    )


def order_within_a_step(trials: Trials) -> str:
    """The rows of an optimizer step may come in any order."""
    return first_step_difference(
        trials.one_step, trials.step(reverse=True), "the step depends on the order of its rows"
    )


def padding_side(trials: Trials) -> str:
    """The side that tokenizers pad on changes nothing."""
    return first_step_difference(
        trials.one_step, trials.step(padding="left"), "the step depends on tokenizer.padding_side"
    )


def models_stay(trials: Trials) -> str:
    """Models that the context hands out are frozen."""
    changed = sorted({*trials.opening.changed, *trials.whole.changed})
    return f"the weights of {', '.join(changed)} were changed" if changed else ""


def no_test_rows(trials: Trials) -> str:
    """No split is read beside the rows of the stage."""
    peeked = sorted({*trials.opening.peeked, *trials.whole.peeked})
    return f"the task's {', '.join(peeked)} rows were read" if peeked else ""


def entry_state(trials: Trials) -> str:
    """Python's, numpy's and torch's global generators may stand anywhere when the stage begins."""
    other = train(trials.subject, trials.folder(), replace(trials.setup, entry=2))
    found = unequal(trials.whole, other)
    return f"{found} depend on the global generators' state; draw from context.row_seed" if found else ""


def states_survive(trials: Trials) -> str:
    """Both states come back from disk, and a fresh object gives back what it was given."""
    whole = trials.whole
    for part, middle in zip(whole.parts, whole.middle, strict=False):
        for kind, state in (("state_dict", part.state_dict()), ("training_state", middle)):
            if not isinstance(state, dict):
                return f"{kind} is a {type(state).__name__}, not a dict"
            stored = through_disk(state)
            fresh = type(part)(part.settings)
            load = fresh.load_state_dict if kind == "state_dict" else fresh.load_training_state
            load(stored)
            again = through_disk(fresh.state_dict() if kind == "state_dict" else fresh.training_state())
            if not same_state(stored, again):
                return f"load_{kind} of a fresh object does not give {kind} back"
    return ""


def next_stage(trials: Trials) -> str:
    """What the next stage depends on is in ``state_dict``: runs build fresh objects for every stage."""
    fresh = train(trials.subject, trials.folder(), trials.second) if not trials.modifier else trials.whole
    # Last, because the objects of the first stage are changed by it.
    alive = train(trials.subject, trials.folder(), replace(trials.second, states=(), live=trials.opening.parts))
    found = unequal(fresh, alive)
    return f"{found} of the next stage depend on something that state_dict does not hold" if found else ""


def resume(trials: Trials) -> str:
    """A stage that is stopped between two checkpoints and resumed equals the uninterrupted one bit for bit."""
    whole = trials.whole
    if whole.steps < 2:
        raise NotApplicable("the stage has one optimizer step")
    folder = trials.folder()
    train(trials.subject, folder, replace(trials.setup, checkpoints=True, stop_at=whole.steps // 2 + 1))
    found = unequal(whole, train(trials.subject, folder, replace(trials.setup, checkpoints=True)))
    return f"{found} differ after a resume; what they depend on belongs into training_state" if found else ""


def settings_are_read(trials: Trials) -> str:
    """Every setting is read: as it stands, or once another switch is thrown."""
    settings = trials.tried.Settings
    attempts = variants(settings, tiny_values(settings))
    if trials.whole and set(settings.model_fields) <= trials.reads.names:
        return ""
    for values in attempts:
        with suppress(ClBenchError):  # a variant may be refused, or leave nothing to train on
            _quick(trials, values)
        if set(settings.model_fields) <= trials.reads.names:
            return ""
    return f"never read: {', '.join(name for name in settings.model_fields if name not in trials.reads.names)}"


def acts(trials: Trials) -> str:
    """A modifier makes a difference in the first or the second stage."""
    first, second = _without(trials.method)
    same = same_weights(first, trials.opening.after) and same_weights(second, trials.whole.after)
    return "both stages end with the weights that they end with without it" if same else ""


_Function = Callable[[Trials], str]
_SHARED: tuple[tuple[str, _Function], ...] = (
    ("a micro-batch of 4 equals 4 micro-batches of 1", micro_batches),
    ("the order of rows within an optimizer step does not matter", order_within_a_step),
    ("the padding side does not matter", padding_side),
    ("models handed out stay as they are", models_stay),
    ("no test rows are read", no_test_rows),
    ("states survive the disk", states_survive),
    ("the global generators' state at entry does not matter", entry_state),
    ("a stage stopped in the middle and resumed is the same", resume),
    ("the next stage needs nothing but state_dict", next_stage),
    ("every setting is read", settings_are_read),
)
METHOD_BEHAVIOUR = (
    ("a tiny model is trained", trains),
    ("modifiers are called", calls_modifiers),
    *_SHARED,
)
MODIFIER_BEHAVIOUR = (("a tiny model is trained with it over two stages", trains), ("it acts", acts), *_SHARED)


def behaviour_checks(trials: Trials) -> list[Check]:
    """All checks; where the first one fails the others are not made."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    first, *others = MODIFIER_BEHAVIOUR if trials.modifier else METHOD_BEHAVIOUR
    # Every training ends with a full collection, which looks at all that the libraries hold unless it is set aside.
    gc.freeze()
    try:
        checks = [_made(*first, trials)]
        return checks + [_made(*item, trials) for item in others] if checks[0].passed else checks
    finally:
        gc.unfreeze()


def _made(name: str, function: _Function, trials: Trials) -> Check:
    try:
        return Check(name, function(trials))
    except NotApplicable as reason:
        return Check(name, skipped=str(reason))
    except ClBenchError as error:
        return Check(name, str(error).replace("\n", "; "))
    except (Exception, SystemExit) as error:  # the extension's own fault, to be reported and not to end the checks
        return Check(name, raised(error, trials.tried))


@functools.cache
def _without(method: type[Method]) -> tuple[Weights, Weights]:
    """Weights after two stages of a method without a modifier."""
    with tempfile.TemporaryDirectory(prefix="cl-bench-plain-") as folder:
        trials = Trials(method, Path(folder))
        return trials.opening.after, train(trials.subject, trials.folder(), trials.second).after


def _quick(trials: Trials, values: Mapping[str, Any]) -> None:
    """One stage of four rows, and a second where a modifier is tried."""
    subject = trials.subject_with({}, values)
    first = train(subject, trials.folder(), Setup(rows=STEP_ROWS))
    if trials.modifier:
        second = Setup(index=2, rows=STEP_ROWS, start=first.student, states=first.states())
        train(subject, trials.folder(), second)
