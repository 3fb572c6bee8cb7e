"""EWC: a quadratic pull towards earlier weights, each weighted by its Fisher information."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, cast

import torch
from torch import Tensor

from cl_bench.methods.base import Context, Fidelity, MethodSettings, Modifier, Stage, Student, setting
from cl_bench.methods.training.fisher import quadratic_penalty, squared_gradients, trained_weights
from cl_bench.methods.training.forward import head_of, hidden_at, shifted
from cl_bench.methods.training.losses import cross_entropy
from cl_bench.methods.training.rows import pad_batch
from cl_bench.methods.training.settings import rollouts
from cl_bench.tasks.base import Example

_PAPER = "EWC (1612.00796)"


class EWCSettings(MethodSettings):
    """Settings of EWC."""

    strength: float = setting(
        1e4, "Lambda: weight of half the penalty. Fisher entries are small: try 1e2 to 1e6.", unit="1", source=_PAPER,
        inferred=True, ge=0,
    )  # fmt: skip
    mode: Literal["separate", "online"] = setting(
        "separate",
        "separate: one anchor and Fisher per earlier stage; online: one decayed sum, anchored at the last stage.",
        unit="choice",
        source="EWC (1612.00796); online: Schwarz et al. (1805.06370)",
    )
    decay: float = setting(
        1.0, "Of the online Fisher at each new stage.", unit="1", source="1805.06370", inferred=True, ge=0, le=1
    )
    sequences: int = setting(
        128, "Training rows that the Fisher is estimated on.", unit="rows", source=_PAPER, inferred=True, ge=1
    )
    labels: Literal["demonstration", "sample"] = setting(
        "demonstration",
        "Responses of those rows: the demonstrations (empirical Fisher), or samples of the model (true Fisher).",
        unit="choice",
        source=_PAPER,
        inferred=True,
    )
    max_completion_length: int = setting(
        256, "Longest sampled response.", unit="tokens", source=_PAPER, inferred=True, ge=1
    )


class EWC(Modifier):
    """Adds strength / 2 x the sum of Fisher x (weight - earlier weight)^2 once per optimizer step (1612.00796).

    After each stage the diagonal Fisher is the mean over rows of the squared gradient of each row's own mean
    log-likelihood a token, fp32. The first stage has no penalty. avalanche and mammoth have no half, and avalanche
    squares the gradient of a batch: their lambda is not this one.
    """

    name: ClassVar[str] = "ewc"
    paper: ClassVar[str] = "1612.00796"
    fidelity: ClassVar[Fidelity] = Fidelity.REFERENCE_EXECUTED
    checked: ClassVar[str] = "independent vectors, cross-checked with avalanche; gradients by hand"
    Settings: ClassVar[type[MethodSettings]] = EWCSettings

    def __init__(self, settings: MethodSettings | None = None) -> None:
        """Build with settings (defaults where None)."""
        super().__init__(settings)
        self._terms: list[dict[str, dict[str, Tensor]]] = []

    def before_stage(self, student: Student, stage: Stage, context: Context) -> None:
        """Bring what was read from a checkpoint to the student's device."""
        device = student.model.device
        self._terms = [
            {part: {name: value.to(device) for name, value in values.items()} for part, values in term.items()}
            for term in self._terms
        ]

    def parameter_penalty(self, student: Student) -> Tensor | None:
        """The penalty, a scalar; None before any stage has ended."""
        strength = cast(EWCSettings, self.settings).strength
        weights = trained_weights(student)
        parts = [quadratic_penalty(weights, term["anchor"], term["importance"], strength) for term in self._terms]
        return torch.stack(parts).sum() if parts else None

    def after_stage(self, student: Student, stage: Stage, context: Context) -> None:
        """Estimate the Fisher information at the weights that the stage ended with."""
        settings = cast(EWCSettings, self.settings)
        weights = trained_weights(student)
        rows = self._rows(student, stage, context, settings)
        importance = squared_gradients(weights, ([(1.0, _log_likelihood(student, row))] for row in rows))
        if settings.mode == "online" and self._terms:
            earlier = self._terms.pop()["importance"]
            importance = {name: value + settings.decay * earlier[name] for name, value in importance.items()}
        anchor = {name: weight.detach().clone() for name, weight in weights.items()}
        self._terms.append({"anchor": anchor, "importance": importance})

    def state_dict(self) -> dict[str, Any]:
        """Anchors and Fisher information of the stages so far."""
        return {"terms": self._terms}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Inverse of ``state_dict``."""
        self._terms = list(state["terms"])

    def _rows(
        self, student: Student, stage: Stage, context: Context, settings: EWCSettings
    ) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
        """Prompt and response ids of a spread of the stage's rows that fit the context."""
        examples = _spread(
            [e for e in stage.examples if e.demonstration or settings.labels == "sample"], settings.sequences
        )
        for example in examples:
            prompt = student.prompt_ids(example.messages)
            if settings.labels == "demonstration":
                response: Sequence[int] = student.completion_ids(example.demonstration or "")
            else:
                response = _sampled(student, prompt, example, context, settings)
            if response and len(prompt) + len(response) <= student.context_length:
                yield prompt, response


def _spread(examples: Sequence[Example], count: int) -> list[Example]:
    """``count`` examples at equal distances, so that all kinds of rows are among them."""
    if len(examples) <= count:
        return list(examples)
    return [examples[index * len(examples) // count] for index in range(count)]


def _sampled(
    student: Student, prompt: tuple[int, ...], example: Example, context: Context, settings: EWCSettings
) -> Sequence[int]:
    from cl_bench.harness.generation.base import Prompt

    sampler, how = context.sampler(student), rollouts(settings.max_completion_length, 1.0, context)
    if not sampler.fits(len(prompt), how):
        return ()
    return sampler.generate([Prompt(prompt, context.row_seed("fisher", example.id))], how)[0].ids


def _log_likelihood(student: Student, row: tuple[Sequence[int], Sequence[int]]) -> Tensor:
    """Mean log-likelihood of a response's tokens, a scalar with gradient."""
    batch = {name: value.to(student.model.device) for name, value in pad_batch([row], student.pad_id).items()}
    under_loss = batch["completion_mask"].bool()
    logits = head_of(student.model)(hidden_at(student.model, batch, shifted(under_loss)))
    return -cross_entropy(logits, batch["input_ids"][under_loss]).mean()
