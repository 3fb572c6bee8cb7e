"""On-policy distillation trains as trl's ``DistillationTrainer`` does on the same samples."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

import cl_bench.methods.on_policy_distillation as distillation_module
import cl_bench.methods.training.on_policy as on_policy_module
from cl_bench.methods.training.divergences import jensen_shannon
from cl_bench.methods.training.losses import loss_weights
from tests.methods.probes import make_method
from tests.methods.trl_peers import (
    COMMON,
    LONGEST,
    ROWS,
    TEMPERATURE,
    Difference,
    Recorded,
    Step,
    assert_equivalent,
    left_padding,
    our_step,
    peer_arguments,
    peer_step,
    prompt_included,
    prompt_rows,
    recorded_stage,
)
from tests.support import tiny_model

RATE = 3.0
Mistake = Callable[[pytest.MonkeyPatch], None]


@functools.cache
def recorded_by_the_student() -> Recorded:
    """One sample of each row."""
    return Recorded(tiny_model(0), TEMPERATURE, samples=1)


@functools.cache
def peer_of_distillation(alpha: float) -> Step:
    """One step of ``DistillationTrainer`` on the first recorded sample of each row, in two micro-batches."""
    from trl import DistillationConfig, DistillationTrainer

    recorded = recorded_by_the_student()

    class Peer(DistillationTrainer):
        def _generate_single_turn(self, prompt_ids: Any, *rest: Any, **more: Any) -> Any:
            return [list(completion.ids) for completion in recorded.in_order(prompt_ids)]

    def make(model: Any, folder: Path) -> Any:
        return Peer(
            model=model,
            teacher_model=tiny_model(1).model,
            args=peer_arguments(
                DistillationConfig,
                folder,
                2,
                2,
                RATE,
                beta=alpha,
                temperature=TEMPERATURE,
                max_completion_length=LONGEST,
                max_steps=1,
            ),
            train_dataset=prompt_rows(),
            processing_class=left_padding(tiny_model(0)),
        )

    return peer_step(make, tiny_model(0))


def check_distillation(alpha: float, micro: int = 1) -> Difference:
    recorded = recorded_by_the_student()
    method = make_method("on-policy-distillation", **COMMON, alpha=alpha, learning_rate=RATE)
    ours = our_step(method, tiny_model(0), recorded_stage(), micro, recorded, aligner=tiny_model(1))
    return assert_equivalent(ours, peer_of_distillation(alpha))


@pytest.mark.parametrize(("alpha", "micro"), [(1.0, 4), (1.0, 1), (0.0, 1), (0.5, 1)])
def test_on_policy_distillation_trains_as_trl_does(alpha: float, micro: int) -> None:
    check_distillation(alpha, micro)


def demonstration_tokens(mask: Tensor, kind: Any, tokens: int, sequences: int) -> Tensor:
    """The count of tokens that the rows came with, in place of those that were sampled."""
    student = tiny_model(0)
    return loss_weights(mask, kind, sum(len(student.completion_ids(r.demonstration or "")) for r in ROWS), sequences)


DISTILLATION_MISTAKES: dict[tuple[float, str], Mistake] = {
    (alpha, "KL reversed"): lambda patch: patch.setattr(
        distillation_module, "jensen_shannon", lambda a: jensen_shannon(1 - a)
    )
    for alpha in (1.0, 0.0)
} | {
    (1.0, "loss doubled"): lambda patch: patch.setattr(
        on_policy_module, "on_policy_loss", _doubled(on_policy_module.on_policy_loss)
    ),
    (1.0, "mean of a micro-batch"): lambda patch: patch.setattr(
        on_policy_module, "loss_weights", lambda mask, kind, t, n: loss_weights(mask, kind, int(mask.sum()), len(mask))
    ),
    (1.0, "divided by the demonstrations' tokens"): lambda patch: patch.setattr(
        on_policy_module, "loss_weights", demonstration_tokens
    ),
    (1.0, "prompt tokens included"): lambda patch: patch.setattr(on_policy_module, "pad_batch", prompt_included),
    (1.0, "temperature left out"): lambda patch: patch.setattr(
        on_policy_module, "tempered", lambda divergence, temperature: divergence
    ),
    (0.5, "forward KL for JSD"): lambda patch: patch.setattr(
        distillation_module, "jensen_shannon", lambda alpha: jensen_shannon(0.0)
    ),
}


def _doubled(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda *given: 2 * function(*given)


@pytest.mark.parametrize(("alpha", "mistake"), DISTILLATION_MISTAKES)
def test_planted_mistakes_in_distillation_are_caught(
    alpha: float, mistake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer_of_distillation(alpha)
    DISTILLATION_MISTAKES[alpha, mistake](monkeypatch)
    with pytest.raises(AssertionError, match=r"Difference\("):
        check_distillation(alpha)
