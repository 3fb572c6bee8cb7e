"""Gradients of the first optimizer step of a method, and the same gradients computed by hand."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.harness.seeds import global_seed
from cl_bench.methods.asft import ASFT
from cl_bench.methods.base import Fidelity, Method, MethodSettings, Modifier, Precision, Stage, Student
from cl_bench.methods.dft import DFT
from cl_bench.methods.grpo import GRPO, GRPOSettings
from cl_bench.methods.isdft import ISDFT
from cl_bench.methods.on_policy_distillation import OnPolicyDistillation
from cl_bench.methods.opsd import OPSD
from cl_bench.methods.sdft import SDFT
from cl_bench.methods.sdpo import SDPO, SDPOSettings
from cl_bench.methods.sft import SFT
from cl_bench.methods.synthself import SynthSelf, SynthSelfSettings
from tests.support import Stopped, TinyContext, tiny_model

Gradients = dict[str, Tensor]
COMMON: dict[str, Any] = {"learning_rate": 1e-2, "batch_size": 4, "max_grad_norm": 1e9, "schedule": "constant"}


def make_method(name: str, **changes: Any) -> Method:
    """A method with settings that suit a tiny model."""
    if name in ON_DEMONSTRATIONS:
        cls = ON_DEMONSTRATIONS[name]
        return cls(cls.Settings(**{**COMMON, **changes}))
    if name == "grpo":
        own = {"max_completion_length": 12, "max_length": 150, "samples": 3, "updates": 2, "batch_size": 2}
        return GRPO(GRPOSettings(**{**COMMON, **own, **changes}))
    if name == "sdpo":
        own = {"max_completion_length": 12, "max_length": 150, "samples": 3, "updates": 2, "batch_size": 2}
        return SDPO(SDPOSettings(**{**COMMON, **own, "teacher_template": SHORT, **changes}))
    if name in ON_OWN_SAMPLES:
        cls = ON_OWN_SAMPLES[name]
        short = {"max_completion_length": 12, "max_length": 150, "ema_rate": 0.2, "teacher_template": SHORT}
        known = {key: value for key, value in short.items() if key in cls.Settings.model_fields}
        return cls(cls.Settings(**{**COMMON, **known, **changes}))
    long = {"max_completion_length": 12, "unaccepted": "gold", "temperature": 1.0, "rewrite_template": SHORT}
    return SynthSelf(SynthSelfSettings(**{**COMMON, **long, **changes}))


ON_DEMONSTRATIONS: dict[str, type[Method]] = {"sft": SFT, "dft": DFT, "asft": ASFT}
ON_OWN_SAMPLES: dict[str, type[Method]] = {
    "sdft": SDFT,
    "isdft": ISDFT,
    "opsd": OPSD,
    "on-policy-distillation": OnPolicyDistillation,
}
SHORT = "{question} as in {demonstration}"


class GradientProbe(Modifier):
    """Copies the gradients of the first optimizer step, before clipping, then stops the training."""

    name: ClassVar[str] = "probe"
    fidelity: ClassVar[Fidelity] = Fidelity.PAPER_FORMULA
    Settings: ClassVar[type[MethodSettings]] = MethodSettings

    def __init__(self) -> None:
        super().__init__()
        self.gradients: Gradients = {}

    def parameter_penalty(self, student: Student) -> Tensor | None:
        self.gradients = {n: p.grad.clone() for n, p in student.model.named_parameters() if p.grad is not None}
        raise Stopped


def first_step(
    method: Method,
    student: ChatModel,
    stage: Stage,
    folder: Path,
    micro: int = 4,
    training: Literal["fp32", "bf16"] = "fp32",
    **context: Any,
) -> tuple[Gradients, TinyContext]:
    """Gradients of the first optimizer step, and the context with its ledger."""
    probe = GradientProbe()
    given = {"aligner": tiny_model(1), "original": tiny_model(2), **context}
    tiny = TinyContext(folder, precision=Precision(training, micro_batch_size=micro), modifiers=[probe], **given)
    try:
        with global_seed(7):
            method.adapt(student, stage, tiny)
    except Stopped:
        pass
    return probe.gradients, tiny


def assert_close(one: Mapping[str, Tensor], other: Mapping[str, Tensor], tolerance: float = 1e-4) -> None:
    """Equal gradients, relative to the largest entry of each."""
    assert one.keys() == other.keys() and one
    for name, gradient in one.items():
        scale = max(float(other[name].abs().max()), 1e-6)
        assert float((gradient - other[name]).abs().max()) <= tolerance * scale, name


def by_hand(student: ChatModel, loss: Callable[[Any], Tensor]) -> Gradients:
    """Gradients of a loss on a copy of the student."""
    model: Any = copy.deepcopy(student.model)
    model.zero_grad()
    loss(model).backward()
    return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


def full_logits(model: Any, prompt: Sequence[int], completion: Sequence[int]) -> Tensor:
    """Logits [T, V] that predict a completion's tokens, from a plain forward pass over one unpadded row."""
    ids = torch.tensor([[*prompt, *completion]])
    logits: Tensor = model(input_ids=ids).logits[0]
    return logits[len(prompt) - 1 : -1]
