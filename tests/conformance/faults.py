"""Methods that each do one thing wrong, and two with a loop of their own."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from cl_bench.harness.state_file import load_state, save_state
from cl_bench.methods.base import (
    Adaptation,
    Context,
    Fidelity,
    Method,
    MethodSettings,
    Need,
    Stage,
    Student,
    setting,
)
from cl_bench.methods.sft import SFT
from cl_bench.methods.training.adaptation import adaptation_of, rows_hash
from cl_bench.methods.training.demonstrations import demonstration_rows
from cl_bench.methods.training.losses import cross_entropy
from cl_bench.methods.training.mixin import TrainingSession
from cl_bench.methods.training.rows import pad_batch
from cl_bench.methods.training.settings import TrainingSettings
from cl_bench.methods.training.supervised import TokenLoss, supervised_trainer


class Faulty(SFT):
    """SFT with room for faults; without one it is right."""

    Settings: ClassVar[type[MethodSettings]] = TrainingSettings
    fault: ClassVar[str] = ""

    def adapt(self, student: Student, stage: Stage, context: Context) -> Adaptation:
        """Train on the demonstrations."""
        settings: Any = self.settings
        settings = settings.for_stage(stage)
        session = TrainingSession(self, student, stage, context, settings)
        rows = demonstration_rows(student, stage, settings.max_length, {})
        side: Any = student.tokenizer.padding_side
        trainer = supervised_trainer(session, rows, self.loss(context), padding_side=side)
        self.tamper(trainer)
        trainer.run()
        return adaptation_of(session, trainer, {}, rows_hash(rows))

    def loss(self, context: Context) -> TokenLoss:
        """The loss of a token."""
        return cross_entropy

    def tamper(self, trainer: Any) -> None:
        """Change the trainer."""


def _after(trainer: Any, change: Callable[[list[dict[str, Tensor]]], None]) -> None:
    prepare = trainer.prepare_step

    def changed(batches: list[Any]) -> list[dict[str, Tensor]]:
        prepared: list[dict[str, Tensor]] = prepare(batches)
        change(prepared)
        return prepared

    trainer.prepare_step = changed


class MiscallsTheSampler(Faulty):
    """Calls what cannot be called."""

    def adapt(self, student: Student, stage: Stage, context: Context) -> Adaptation:
        """Raise."""
        samples: Any = context.sampler(student)("a prompt")  # type: ignore[operator]
        return super().adapt(samples, stage, context)


class MicroBatchMean(Faulty):
    """The mean over each micro-batch, then over micro-batches."""

    def tamper(self, trainer: Any) -> None:
        def change(batches: list[dict[str, Tensor]]) -> None:
            for batch in batches:
                batch["loss_weights"] /= batch["loss_weights"].sum() * len(batches)

        _after(trainer, change)


class FirstRowDouble(Faulty):
    """The first row of a step counts twice."""

    def tamper(self, trainer: Any) -> None:
        def change(batches: list[dict[str, Tensor]]) -> None:
            batches[0]["loss_weights"][0] *= 2

        _after(trainer, change)


class LastColumnDropped(Faulty):
    """No loss in the last column, which holds other tokens when padding is on the left."""

    def tamper(self, trainer: Any) -> None:
        def change(batches: list[dict[str, Tensor]]) -> None:
            for batch in batches:
                batch["loss_weights"][:, -1] = 0

        _after(trainer, change)


class MovingTeacher(Faulty):
    """Averages into the model that the context handed out."""

    def loss(self, context: Context) -> TokenLoss:
        with torch.no_grad():
            for weight in context.task_start().model.parameters():
                weight.mul_(1.01)
        return cross_entropy


class MovingAligner(Faulty):
    """Trains the aligner a little."""

    def loss(self, context: Context) -> TokenLoss:
        next(context.aligner().model.parameters()).data.add_(1e-3)
        return cross_entropy


class _Scaled(Faulty):
    def loss(self, context: Context) -> TokenLoss:
        scale = self.scale()
        return lambda logits, labels: (scale + 0.5) * cross_entropy(logits, labels)

    def scale(self) -> float:
        raise NotImplementedError


class TorchGenerator(_Scaled):
    """Draws from torch's global generator as it finds it."""

    def scale(self) -> float:
        return float(torch.rand(()))


class NumpyGenerator(_Scaled):
    """Draws from numpy's."""

    def scale(self) -> float:
        return float(np.random.rand())


class PythonGenerator(_Scaled):
    """Draws from Python's."""

    def scale(self) -> float:
        return random.random()


class ForgetsSteps(Faulty):
    """The loss depends on the steps made, which no checkpoint holds."""

    made = 0

    def loss(self, context: Context) -> TokenLoss:
        def token_loss(logits: Tensor, labels: Tensor) -> Tensor:
            self.made += 1
            return cross_entropy(logits, labels) / self.made + logits.square().mean(-1) * self.made

        return token_loss


class ForgetsStages(_Scaled):
    """The loss depends on the stages seen, which ``state_dict`` does not hold."""

    seen = 0

    def scale(self) -> float:
        self.seen += 1
        return float(self.seen)


class KeepsAnObject(Faulty):
    """A state that cannot be written."""

    def state_dict(self) -> dict[str, Any]:
        return {"seen": frozenset({1})}


class LoadsNothing(Faulty):
    """A state in the middle of a stage that is written and never read."""

    average = 0.0

    def loss(self, context: Context) -> TokenLoss:
        self.average = 1.0
        return cross_entropy

    def training_state(self) -> dict[str, Any]:
        return {"average": self.average}


class UnreadSettings(TrainingSettings):
    """One setting too many."""

    ignored: float = setting(0.1, "Does nothing.", unit="1", source="cl-bench")


class Unread(Faulty):
    """Shows a setting that does nothing."""

    Settings: ClassVar[type[MethodSettings]] = UnreadSettings


class ConditionalSettings(TrainingSettings):
    """A setting that is read under another one's switch."""

    scaled: bool = setting(False, "Use the factor.", unit="switch", source="cl-bench")
    factor: float = setting(2.0, "Times the loss.", unit="1", source="cl-bench")


class Conditional(_Scaled):
    """Right: the factor is read where the switch is on."""

    Settings: ClassVar[type[MethodSettings]] = ConditionalSettings

    def scale(self) -> float:
        settings: Any = self.settings
        return float(settings.factor) if settings.scaled else 0.5


class Peeks(Faulty):
    """Reaches the task behind the scorer and reads its test rows."""

    def adapt(self, student: Student, stage: Stage, context: Context) -> Adaptation:
        scorer: Any = next(iter(stage._scorers.values()))
        for cell in scorer.__closure__:
            cell.cell_contents.__self__.test()
        return super().adapt(student, stage, context)


class Idle(SFT):
    """Trains nothing."""

    def adapt(self, student: Student, stage: Stage, context: Context) -> Adaptation:
        return Adaptation(steps=1)


class Diverges(SFT):
    """Leaves weights that are no numbers."""

    def adapt(self, student: Student, stage: Stage, context: Context) -> Adaptation:
        next(student.model.parameters()).data.fill_(float("nan"))
        return Adaptation(steps=1)


class Raises(SFT):
    """Fails."""

    def adapt(self, student: Student, stage: Stage, context: Context) -> Adaptation:
        raise ZeroDivisionError("in the middle")


class OwnLoopSettings(MethodSettings):
    """Few."""

    step_rows: int = setting(4, "Rows in a step.", unit="rows", source="cl-bench", ge=1)
    rate: float = setting(1e-2, "Learning rate.", unit="1", source="cl-bench", gt=0)


class OwnLoop(Method):
    """Right: plain gradient descent in a loop of its own, with checkpoints."""

    name: ClassVar[str] = "own-loop"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.DEMONSTRATIONS})
    fidelity: ClassVar[Fidelity] = Fidelity.RECONSTRUCTED
    takes_modifiers: ClassVar[bool] = False
    Settings: ClassVar[type[MethodSettings]] = OwnLoopSettings

    def adapt(self, student: Student, stage: Stage, context: Context) -> Adaptation:
        settings: Any = self.settings
        model: Any = student.model
        rows = sorted(demonstration_rows(student, stage, 1024, {}), key=lambda row: row.example_id)
        steps = [rows[start : start + settings.step_rows] for start in range(0, len(rows), settings.step_rows)]
        done = 0
        found = context.checkpoints.latest()
        if found is not None:
            state = load_state(found, "own")
            done = int(state["done"])
            model.load_state_dict(state["weights"], strict=False)
        for number, step in enumerate(steps[done:], start=done + 1):
            model.zero_grad()
            tokens = sum(len(row.completion_ids) for row in step)
            for start in range(0, len(step), context.precision.micro_batch_size):
                part = step[start : start + context.precision.micro_batch_size]
                batch = pad_batch([(row.prompt_ids, row.completion_ids) for row in part], student.pad_id)
                self.micro_loss(model, batch, tokens).backward()
            with torch.no_grad():
                for weight in model.parameters():
                    weight -= settings.rate * weight.grad
            context.after_step(number)
            if number < len(steps) and context.checkpoints.due(number):
                folder = context.scratch / "own"
                weights = dict(model.named_parameters())
                save_state(folder, "own", {"done": number, "weights": weights})
                context.checkpoints.save(number, folder)
        return Adaptation(steps=len(steps))

    def micro_loss(self, model: Any, batch: Mapping[str, Tensor], tokens: int) -> Tensor:
        """The micro-batch's share of the step's token mean."""
        logits = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits[:, :-1]
        labels = batch["input_ids"][:, 1:].masked_fill(batch["completion_mask"][:, 1:] == 0, -100)
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum") / tokens


class OwnLoopMicroBatchMean(OwnLoop):
    """The same loop with the mean over each micro-batch."""

    def micro_loss(self, model: Any, batch: Mapping[str, Tensor], tokens: int) -> Tensor:
        return super().micro_loss(model, batch, int(batch["completion_mask"].sum()))


class OwnLoopInDisguise(OwnLoop):
    """Says that it takes modifiers, and calls none."""

    takes_modifiers: ClassVar[bool] = True


class SilentLoop(OwnLoop):
    """Reports no step to the context."""

    def adapt(self, student: Student, stage: Stage, context: Context) -> Adaptation:
        context.after_step = lambda step: None  # type: ignore[method-assign]
        return super().adapt(student, stage, context)
