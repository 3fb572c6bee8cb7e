"""The training format: bf16 is really computed in where a run asks for it, and stays out of what comes after."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal

import pytest
import torch
from torch import Tensor

from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.methods.base import Fidelity, MethodSettings, Modifier, Precision, Stage, Student
from tests.methods.probes import make_method
from tests.support import TinyContext, tiny_model


class FormatProbe(Modifier):
    """Notes the format that a matrix product has inside the loss."""

    name: ClassVar[str] = "format-probe"
    fidelity: ClassVar[Fidelity] = Fidelity.PAPER_FORMULA
    Settings: ClassVar[type[MethodSettings]] = MethodSettings

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[torch.dtype] = set()

    def token_penalty(self, student: Student, batch: Mapping[str, Tensor]) -> tuple[Tensor, Tensor] | None:
        self.seen.add((torch.ones(2, 2) @ torch.ones(2, 2)).dtype)
        return None


@pytest.mark.parametrize("name", ["sft", "sdft"])
@pytest.mark.parametrize(("training", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16)])
def test_losses_are_computed_in_the_training_format_and_nothing_else_is(
    name: str, training: Literal["fp32", "bf16"], dtype: torch.dtype, student: ChatModel, stage: Stage, tmp_path: Path
) -> None:
    probe = FormatProbe()
    precision = Precision(training=training, micro_batch_size=4)
    context = TinyContext(tmp_path, precision=precision, modifiers=[probe])
    make_method(name, epochs=1).adapt(student, stage, context)
    assert probe.seen == {dtype}
    assert {parameter.dtype for parameter in student.model.parameters()} == {torch.float32}
    # A trained model answers as one freshly loaded with its weights does: no autocast is left in its forward pass.
    fresh = tiny_model(1)
    fresh.model.load_state_dict(student.model.state_dict())
    ids = torch.tensor([student.prompt_ids(stage.examples[0].messages)])
    with torch.no_grad():
        assert torch.equal(student.model(input_ids=ids).logits, fresh.model(input_ids=ids).logits)
