"""What both trainers share: checkpoint and restore, modifiers, normalisation over the optimizer step, teachers."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from cl_bench.harness.errors import DivergedError, blaming, writing
from cl_bench.harness.models.precision import autocast_dtype
from cl_bench.harness.state_file import load_state, save_state
from cl_bench.methods.base import Context, Method, Stage, Student
from cl_bench.methods.training.forward import computed_tokens
from cl_bench.methods.training.ledger import Ledger
from cl_bench.methods.training.settings import TrainingSettings
from cl_bench.methods.training.teachers import Teacher
from cl_bench.methods.training.trained import remember

if TYPE_CHECKING:
    from transformers import TrainingArguments

    from cl_bench.methods.training.rows import TrainingRow

_STATE = "cl_bench_state"
_LEDGER = "ledger.jsonl"


@dataclass(slots=True)
class Counters:
    """What a stage has done so far; survives a resume.

    ``left_out`` counts prompts that gave nothing to learn from, by reason; ``remarks`` what the report should mention.
    """

    steps: int = 0
    trained_tokens: int = 0
    forward_tokens: int = 0
    teacher_tokens: int = 0
    anchor_flops: float = 0.0
    generated_tokens: int = 0
    generation_prompt_tokens: int = 0
    samples: int = 0
    usable_samples: int = 0
    unfit_samples: int = 0
    skipped_steps: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    remarks: dict[str, int] = field(default_factory=dict)

    def leave_out(self, reason: str) -> None:
        """Count a prompt that gave nothing to learn from."""
        self.left_out[reason] = self.left_out.get(reason, 0) + 1

    def remark(self, what: str) -> None:
        """Count something that the report should mention."""
        self.remarks[what] = self.remarks.get(what, 0) + 1


@dataclass(slots=True)
class TrainingSession:
    """Everything one stage of training works on.

    Attributes:
        method: The method, for its ``training_state``.
        student: Trained in place.
        stage: Rows and scorer.
        context: Checkpoints, seeds, progress, modifiers, ledger.
        settings: The method's settings for this stage.
        teachers: Teachers by name; updated after every optimizer step and kept in checkpoints.
        counters: Work done, restored on resume.
        total_steps: Optimizer steps of the whole stage; known once training begins.
    """

    method: Method
    student: Student
    stage: Stage
    context: Context
    settings: TrainingSettings
    teachers: dict[str, Teacher] = field(default_factory=dict)
    counters: Counters = field(default_factory=Counters)
    total_steps: int = 0
    _forward: Any = field(init=False, default=None)

    def __post_init__(self) -> None:
        """Remember the student's forward pass: trainers put their own on the model and leave it there."""
        self._forward = self.student.model.__dict__.get("forward")

    def release(self) -> None:
        """Give the student its own forward pass back, in evaluation mode."""
        if self._forward is None:
            self.student.model.__dict__.pop("forward", None)
        else:
            self.student.model.forward = self._forward
        self.student.model.eval()

    def save(self, folder: Path) -> None:
        """Write teachers, counters, states of method and modifiers, and the ledger into a checkpoint folder."""
        state = {
            "counters": asdict(self.counters),
            "teachers": {name: teacher.state() for name, teacher in self.teachers.items()},
            "method": self.method.training_state(),
            "modifiers": [modifier.training_state() for modifier in self.context.modifiers],
        }
        save_state(folder, _STATE, state)
        self.context.ledger.write(folder / _LEDGER)

    def restore(self, folder: Path) -> None:
        """Inverse of ``save``."""
        state = load_state(folder, _STATE)
        self.counters = Counters(**state["counters"])
        for name, teacher in self.teachers.items():
            teacher.load_state(state["teachers"][name])
        self.method.load_training_state(state["method"])
        for modifier, modifier_state in zip(self.context.modifiers, state["modifiers"], strict=True):
            modifier.load_training_state(modifier_state)
        restore_ledger(self.context.ledger, folder)


def restore_ledger(ledger: Ledger, checkpoint: Path) -> None:
    """Put the ledger of a checkpoint folder back."""
    ledger.replace(Ledger.read(checkpoint / _LEDGER))


def training_arguments(session: TrainingSession, cls: Any, samples: int = 1, **extra: Any) -> TrainingArguments:
    """Arguments of transformers' (or trl's) trainer for a session; nothing is left to a default that hides a choice.

    ``samples`` is the number of sequences that each training row becomes.
    """
    settings, precision = session.settings, session.context.precision
    # An optimizer step is a whole number of micro-batches, or its size would not be the one asked for.
    largest = max(1, precision.micro_batch_size // samples)
    micro = max(n for n in range(1, largest + 1) if settings.batch_size % n == 0)
    on_cpu = session.student.model.device.type == "cpu"
    arguments: TrainingArguments = cls(
        output_dir=str(session.context.scratch / "trainer"),
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=settings.batch_size // micro,
        num_train_epochs=settings.epochs,
        learning_rate=settings.learning_rate,
        lr_scheduler_type=settings.schedule if settings.schedule != "constant" else "constant_with_warmup",
        weight_decay=settings.weight_decay,
        max_grad_norm=settings.max_grad_norm,
        optim="adamw_torch_fused",
        # Autocast is ours, in ``compute_loss``: the trainer's would sit in ``model.forward``, which the losses go past,
        # and would stay there, so that everything sampled afterwards came out of a bf16 model.
        bf16=False,
        use_cpu=on_cpu,
        seed=session.context.seed & 0x7FFFFFFF,
        data_seed=session.context.seed & 0x7FFFFFFF,
        # trl's default is on; the old name is still what its configuration declares.
        **{"gradient_checkpointing": False, "activation_checkpointing": False},
        save_strategy="no",
        logging_strategy="steps",
        logging_steps=1,
        logging_nan_inf_filter=False,
        report_to="none",
        disable_tqdm=True,
        remove_unused_columns=False,
        dataloader_pin_memory=not on_cpu,
        **extra,
    )
    return arguments


class TrainingMixin:
    """Mixed into a Trainer of transformers or trl. Subclasses give ``prepare_step`` and ``step_loss``.

    ``prepare_step`` sees all micro-batches of an optimizer step at once and gives every token its share of the step's
    loss (``loss_weights``), so that a loss never depends on how the step was split.
    """

    session: TrainingSession
    trained_rows: Sequence[TrainingRow] | None = None
    """All rows of supervised training; None where the student's rollouts in the ledger are trained on."""
    _nothing_under_loss = False

    def prepare_step(self, batches: list[Any]) -> list[dict[str, Tensor]]:
        """Turn an optimizer step's collated micro-batches into tensors with ``loss_weights`` [B, T]."""
        raise NotImplementedError

    def step_loss(self, model: Any, batch: Mapping[str, Tensor]) -> Tensor:
        """A micro-batch's share of the optimizer step's loss, a scalar."""
        raise NotImplementedError

    def run(self) -> None:
        """Train the stage, from its newest checkpoint where there is one; raises ``DivergedError``."""
        session, trainer = self.session, self._trainer()
        # The trainers multiply losses for accumulation unless told that the loss is already the step's share.
        trainer.loss_is_scaled_for_ga = True
        trainer.add_callback(_make_callback(session))
        # Console output belongs to the progress display.
        for callback in ("PrinterCallback", "ProgressCallback"):
            trainer.callback_handler.callbacks = [
                c for c in trainer.callback_handler.callbacks if type(c).__name__ != callback
            ]
        checkpoint = session.context.checkpoints.latest()
        if checkpoint is not None:
            session.restore(checkpoint)
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
        if not all(bool(torch.isfinite(p).all()) for p in session.student.model.parameters()):
            raise DivergedError(f"weights became non-finite in stage {session.stage.name}", hint="lower learning_rate")
        remember(session, self.trained_rows)
        session.release()

    def logs(self) -> list[dict[str, float]]:
        """Loss, gradient norm and learning rate by step."""
        history = self._trainer().state.log_history
        return [{k: float(v) for k, v in entry.items()} for entry in history if "loss" in entry]

    def get_batch_samples(self, epoch_iterator: Iterator[Any], num_batches: int, device: Any) -> tuple[list[Any], int]:
        """Collect an optimizer step's micro-batches and prepare them together."""
        batches = []
        for _ in range(num_batches):
            try:
                batches.append(next(epoch_iterator))
            except StopIteration:
                break
        prepared = self.prepare_step(batches)
        tokens = sum(int((batch["loss_weights"] > 0).sum()) for batch in prepared)
        self.session.counters.trained_tokens += tokens
        self._nothing_under_loss = tokens == 0
        self.session.counters.skipped_steps += self._nothing_under_loss
        return prepared, tokens

    def compute_loss(
        self,
        model: Any,
        inputs: Mapping[str, Tensor],
        return_outputs: bool = False,
        num_items_in_batch: int | None = None,
    ) -> Any:
        """The micro-batch's share of the loss plus the modifiers' token penalties."""
        session = self.session
        session.counters.forward_tokens += computed_tokens(model, inputs)
        with _autocast(session):
            loss = self.step_loss(model, inputs)
            for modifier in session.context.modifiers:
                with blaming(modifier):
                    penalty = modifier.token_penalty(session.student, inputs)
                    if penalty is not None:
                        _refuse_non_finite(penalty[0], modifier.name, session.stage.name)
                        loss = loss + penalty[0] / max(int(num_items_in_batch or 0), 1)
        if not torch.isfinite(loss.detach()):
            step = self._trainer().state.global_step + 1
            raise DivergedError(
                f"the loss became {float(loss.detach())} in stage {session.stage.name}, step {step}",
                hint="lower learning_rate, or look at the rows in the stage's data folder",
            )
        return (loss, None) if return_outputs else loss

    def training_step(self, model: Any, inputs: Any, num_items_in_batch: int | None = None) -> Tensor:
        """Backward of a micro-batch; after the step's last one, the parameter penalties, before clipping."""
        loss: Tensor = super().training_step(model, inputs, num_items_in_batch)  # type: ignore[misc]
        trainer = self._trainer()
        if trainer.accelerator.sync_gradients and self._nothing_under_loss:
            # Without gradients the optimizer leaves the weights alone; with zeros its momentum would move them.
            self.session.student.model.zero_grad(set_to_none=True)
        elif trainer.accelerator.sync_gradients:
            for modifier in self.session.context.modifiers:
                with blaming(modifier):
                    penalty = modifier.parameter_penalty(self.session.student)
                    if penalty is not None:
                        _refuse_non_finite(penalty, modifier.name, self.session.stage.name)
                        trainer.accelerator.backward(penalty)
                        loss = loss + penalty.detach()
        return loss

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        """Warm up over a share of the stage's steps and never over all of them: a lone step has a rate above zero."""
        steps = min(math.ceil(num_training_steps * self.session.settings.warmup_ratio), num_training_steps - 1)
        self._trainer().args.warmup_steps = max(steps, 0)
        return super().create_scheduler(num_training_steps, optimizer)  # type: ignore[misc]

    def floating_point_ops(self, inputs: Any) -> int:
        """Counted by the session instead."""
        return 0

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        trainer = self._trainer()
        step = trainer.state.global_step
        folder = Path(trainer.args.output_dir) / f"checkpoint-{step}"
        with writing(folder):
            super()._save_checkpoint(model, trial)  # type: ignore[misc]
            (folder / "training_args.bin").unlink(missing_ok=True)
            self.session.save(folder)
        self.session.context.checkpoints.save(step, folder)
        shutil.rmtree(folder, ignore_errors=True)

    def _trainer(self) -> Any:
        return self


def _refuse_non_finite(penalty: Tensor | float, modifier: str, stage: str) -> None:
    value = float(torch.as_tensor(penalty).detach().sum())
    if not math.isfinite(value):
        raise DivergedError(
            f"the penalty of {modifier} became {value} in stage {stage}",
            hint=f"lower the learning rate or the settings of {modifier}",
        )


def _autocast(session: TrainingSession) -> AbstractContextManager[Any]:
    """The run's training format around student, teacher and penalties alike; master weights stay fp32."""
    dtype = autocast_dtype(session.context.precision.training)
    return nullcontext() if dtype is None else torch.autocast(session.student.model.device.type, dtype=dtype)


def _make_callback(session: TrainingSession) -> Any:
    """A callback that moves teachers, reports progress and asks for checkpoints."""
    from transformers import TrainerCallback

    class SessionCallback(TrainerCallback):
        def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            session.total_steps = state.max_steps
            session.context.progress.phase(f"train {session.stage.name}", state.max_steps)
            session.context.progress.advance(state.global_step)

        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            session.counters.steps = state.global_step
            for teacher in session.teachers.values():
                teacher.update(session.student)
            session.context.after_step(state.global_step)
            # The last step's state is the stage's own checkpoint, written by the runner right after.
            if state.global_step < state.max_steps and session.context.checkpoints.due(state.global_step):
                control.should_save = True

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
            if logs and "loss" in logs:
                session.context.progress.advance(1, loss=float(logs["loss"]))

    return SessionCallback()
