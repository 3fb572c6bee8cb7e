"""Settings that every method trained through the shared mixin has."""

from __future__ import annotations

from typing import Literal

from cl_bench.harness.generation.base import GenerationSettings
from cl_bench.methods.base import Context, MethodSettings, Stage, setting

_TABLE5 = "SynthSelf (2610.13113) table 5"
_DEFAULT = "transformers.TrainingArguments"


class TrainingSettings(MethodSettings):
    """Optimisation settings; one optimizer and one schedule per stage."""

    learning_rate: float = setting(5e-5, "Peak learning rate.", unit="1", source=_TABLE5, gt=0)
    epochs: float = setting(2.0, "Passes over the stage's training rows.", unit="epochs", source=_TABLE5, gt=0)
    batch_size: int = setting(
        16,
        "Training rows in one optimizer step, however many samples are drawn of each.",
        unit="rows",
        source=_TABLE5,
        ge=1,
    )
    schedule: Literal["cosine", "linear", "constant"] = setting(
        "cosine", "Learning-rate schedule after the warm-up.", unit="choice", source=_TABLE5
    )
    warmup_ratio: float = setting(
        0.1, "Share of the stage's steps spent warming up.", unit="fraction", source=_TABLE5, ge=0, lt=1
    )
    weight_decay: float = setting(0.0, "AdamW weight decay.", unit="1", source=_DEFAULT, inferred=True, ge=0)
    max_grad_norm: float = setting(1.0, "Gradient clipping norm.", unit="1", source=_DEFAULT, inferred=True, gt=0)
    max_length: int = setting(
        1024,
        "Longest training sequence; longer rows are dropped and counted.",
        unit="tokens",
        source="trl.SFTConfig",
        ge=1,
    )

    def for_stage(self, stage: Stage) -> TrainingSettings:
        """These settings with what the sequence fixes for a stage (``epochs``) put in."""
        known = {key: value for key, value in stage.overrides.items() if key in type(self).model_fields}
        return self.model_copy(update=known)


def rollouts(max_completion_length: int, temperature: float, context: Context) -> GenerationSettings:
    """How a method samples: no top-k, no top-p."""
    return GenerationSettings(max_completion_length, temperature, context.precision.generation_batch_size)
