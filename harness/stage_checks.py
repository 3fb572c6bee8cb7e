"""What a stage must leave behind: the parameters that it got, as fp32 numbers, and logits that are numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch

from cl_bench.harness.errors import ClBenchError, DivergedError
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.tasks.base import Example

Shapes = Mapping[str, tuple[torch.Size, torch.dtype, bool]]
"""Shape and format of each parameter and whether it is trained, by name."""

_ROWS = 4
"""Prompts whose logits are looked at."""


def shapes_of(student: ChatModel) -> Shapes:
    """Shape and format of a student's parameters, and whether each is trained."""
    return {name: (value.shape, value.dtype, value.requires_grad) for name, value in student.model.named_parameters()}


def check_student(student: ChatModel, before: Shapes, examples: Iterable[Example], who: str) -> None:
    """Look at a student after a stage.

    Args:
        student: The student.
        before: ``shapes_of`` it before the stage.
        examples: The stage's rows; the first few prompts are computed.
        who: What trained it, in words.

    Raises:
        ClBenchError: Its parameters are others than before: a checkpoint of it could not be loaded.
        DivergedError: A weight or a logit is not finite.
    """
    after = shapes_of(student)
    changed = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
    if changed:
        some = ", ".join(changed[:3]) + (", …" if len(changed) > 3 else "")
        raise ClBenchError(
            f"{who} left the model with other parameters than it was given",
            why=f"of other shape or format, frozen, new, or gone: {some}",
            hint="undo in after_stage what before_stage attached; keep weights in fp32",
        )
    broken = [name for name, value in student.model.named_parameters() if not bool(torch.isfinite(value).all())]
    if broken:
        raise DivergedError(f"weights are not finite after the stage ({broken[0]})", hint="lower learning_rate")
    with torch.inference_mode():
        for example in list(examples)[:_ROWS]:
            ids = torch.tensor([student.prompt_ids(example.messages)[: student.context_length]])
            logits = student.model(input_ids=ids.to(student.model.device)).logits
            if not bool(torch.isfinite(logits).all()):
                raise DivergedError("logits are not finite after the stage", hint="lower learning_rate")
