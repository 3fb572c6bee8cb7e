"""Off-policy distillation: what the aligner is asked, what is kept, and the gradient of both objectives."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import cl_bench.methods.off_policy_distillation as off_policy_module
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.harness.seeds import global_seed
from cl_bench.methods.base import Precision
from cl_bench.methods.off_policy_distillation import OffPolicyDistillation, OffPolicyDistillationSettings
from cl_bench.methods.training.divergences import jensen_shannon
from tests.methods.probes import COMMON, GradientProbe, Gradients, assert_close, by_hand, full_logits
from tests.methods.test_rewriting import Scripted, ScriptedContext
from tests.support import Stopped, tiny_model, toy_examples, toy_stage

FOUR = toy_examples(4)
ANSWERS = ["so 0", "it is all of 99", "hence it must be 6", "12"]
"""One is wrong, and none is a demonstration."""


def make(**changes: Any) -> OffPolicyDistillation:
    return OffPolicyDistillation(OffPolicyDistillationSettings(**{**COMMON, "max_completion_length": 20, **changes}))


def context_of(folder: Path, micro: int = 4, **given: Any) -> ScriptedContext:
    context = ScriptedContext(folder, precision=Precision(micro_batch_size=micro), aligner=tiny_model(1), **given)
    context.script = Scripted([(text, "eos") for text in ANSWERS])
    return context


def first_gradients(method: OffPolicyDistillation, student: ChatModel, folder: Path, micro: int) -> Gradients:
    probe = GradientProbe()
    with pytest.raises(Stopped), global_seed(7):
        method.adapt(student, toy_stage(FOUR), context_of(folder, micro, modifiers=[probe]))
    return probe.gradients


def expected(student: ChatModel, aligner: ChatModel, objective: str) -> Gradients:
    """Token mean over the aligner's texts of -log p, or of KL(aligner || student), under the plain prompt."""

    def loss(model: Any) -> Tensor:
        parts = []
        for example, text in zip(FOUR, ANSWERS, strict=True):
            prompt, tokens = student.prompt_ids(example.messages), student.completion_ids(text)
            own = full_logits(model, prompt, tokens).log_softmax(-1)
            if objective == "cross_entropy":
                parts.append(-own[torch.arange(len(tokens)), torch.tensor(tokens)])
            else:
                with torch.no_grad():
                    other = full_logits(aligner.model, prompt, tokens).log_softmax(-1)
                parts.append((other.exp() * (other - own)).sum(-1))
        return torch.cat(parts).mean()

    return by_hand(student, loss)


def check(objective: str, folder: Path) -> None:
    for micro in (4, 1):
        student = tiny_model(0)
        gradients = first_gradients(make(objective=objective), copy.deepcopy(student), folder / f"m{micro}", micro)
        assert_close(gradients, expected(student, tiny_model(1), objective))


@pytest.mark.parametrize("objective", ["cross_entropy", "divergence"])
def test_step_has_the_gradient_of_the_objective(objective: str, tmp_path: Path) -> None:
    check(objective, tmp_path)


def test_a_reversed_divergence_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(off_policy_module, "jensen_shannon", lambda alpha: jensen_shannon(1 - alpha))
    with pytest.raises(AssertionError):
        check("divergence", tmp_path)


def test_the_aligner_sees_the_plain_prompt_and_its_accuracy_is_reported(tmp_path: Path) -> None:
    context = context_of(tmp_path)
    adaptation = make(epochs=1).adapt(tiny_model(0), toy_stage(FOUR), context)
    assert adaptation.data_generation["first_sample_accuracy"] == 0.75
    assert adaptation.data_generation["accepted_share"] == 1.0
    aligner = context.aligner()
    tokens = sum(len(aligner.prompt_ids(example.messages)) for example in FOUR)
    assert [row["prompt_tokens"] for row in context.ledger] == [
        len(aligner.prompt_ids(example.messages)) for example in FOUR
    ]
    assert adaptation.flops["data_generation"] == 2.0 * aligner.parameter_count() * (tokens + 8)


def test_rejection_is_a_choice(tmp_path: Path) -> None:
    adaptation = make(epochs=1, reject_wrong=True).adapt(tiny_model(0), toy_stage(FOUR), context_of(tmp_path))
    assert adaptation.rejected == {"wrong": 1, "dropped_rows": 1}


def test_no_demonstration_is_needed(tmp_path: Path) -> None:
    bare = [type(row)(row.task, row.id, row.messages, None, row.answer) for row in FOUR]
    adaptation = make(epochs=1).adapt(tiny_model(0), toy_stage(bare), context_of(tmp_path))
    assert adaptation.steps == 1
    assert "edit_similarity" not in adaptation.data_generation


def test_the_aligners_pass_on_the_text_is_counted(tmp_path: Path) -> None:
    adaptation = make(epochs=1, objective="divergence").adapt(tiny_model(0), toy_stage(FOUR), context_of(tmp_path))
    assert adaptation.flops["anchor"] == pytest.approx(adaptation.flops["train"] / 3)
