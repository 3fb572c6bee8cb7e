"""The on-policy trainer: rollouts of the current student -> teacher's context -> divergence -> step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from cl_bench.harness.generation.base import Completion, GenerationSettings, Prompt
from cl_bench.methods.training.anchors import Anchor, anchor_loss
from cl_bench.methods.training.divergences import Divergence, chunked, tempered
from cl_bench.methods.training.forward import head_of, hidden_at, shifted
from cl_bench.methods.training.losses import Reduction, loss_weights, skip_mask, tokens_to_skip
from cl_bench.methods.training.mixin import TrainingMixin, TrainingSession, training_arguments
from cl_bench.methods.training.rows import pad_batch
from cl_bench.methods.training.teachers import Teacher
from cl_bench.tasks.base import Example, Message


@dataclass(frozen=True, slots=True)
class OnPolicyObjective:
    """What the student's own samples are trained towards.

    Attributes:
        teacher: Scores the student's samples.
        teacher_messages: The teacher's prompt for an example (with the demonstration, or plain).
        divergence: Student logits and teacher logits to divergence per token.
        reduction: How token divergences become the step's loss.
        generation: Length and temperature of the rollouts; a temperature other than 1 divides both models' logits in
            the divergence too.
        needs_demonstration: Rows without a demonstration are dropped and counted.
        skip_tokens: First tokens left out of the loss at most (see ``losses.tokens_to_skip``).
        anchor: What the student is held near on its own samples, or None; at temperature 1.
    """

    teacher: Teacher
    teacher_messages: Callable[[Example], Sequence[Message]]
    divergence: Divergence
    reduction: Reduction
    generation: GenerationSettings
    skip_tokens: int = 0
    needs_demonstration: bool = False
    anchor: Anchor | None = None


@dataclass(slots=True)
class PromptPairs:
    """The stage's prompts as ids by ``Example.key``, for student and teacher; what fits neither is dropped, counted."""

    examples: list[Example] = field(default_factory=list)
    student: dict[tuple[str, str], tuple[int, ...]] = field(default_factory=dict)
    teacher: dict[tuple[str, str], tuple[int, ...]] = field(default_factory=dict)
    rejected: dict[str, int] = field(default_factory=dict)


def prompt_pairs(session: TrainingSession, objective: OnPolicyObjective) -> PromptPairs:
    """Render every example's two prompts; nothing is truncated."""
    pairs = PromptPairs()
    new_tokens = objective.generation.max_new_tokens
    longest = session.settings.max_length
    for example in session.stage.examples:
        if not example.demonstration and objective.needs_demonstration:
            pairs.rejected["no_demonstration"] = pairs.rejected.get("no_demonstration", 0) + 1
            continue
        student = session.student.prompt_ids(example.messages)
        teacher = objective.teacher.chat.prompt_ids(objective.teacher_messages(example))
        if len(student) + new_tokens > min(longest, session.student.context_length):
            pairs.rejected["prompt_too_long"] = pairs.rejected.get("prompt_too_long", 0) + 1
        elif len(teacher) + new_tokens > objective.teacher.chat.context_length:
            pairs.rejected["teacher_prompt_too_long"] = pairs.rejected.get("teacher_prompt_too_long", 0) + 1
        else:
            pairs.examples.append(example)
            pairs.student[example.key], pairs.teacher[example.key] = student, teacher
    return pairs


def on_policy_loss(
    model: Any,
    teacher: Any,
    batch: Mapping[str, Tensor],
    divergence: Divergence,
    temperature: float,
    anchor: Anchor | None = None,
) -> Tensor:
    """Sum of ``loss_weights`` x (divergence + the anchor's) over a micro-batch.

    Args:
        model: The student.
        teacher: The teacher's model.
        batch: ``input_ids``, ``attention_mask``, ``loss_weights`` [B, T] for the student and ``teacher_input_ids``,
            ``teacher_attention_mask``, ``teacher_keep`` [B, U] for the teacher. The k-th loss token of the batch is the
            same completion token in both, at its own prompt's offset.
        divergence: Which.
        temperature: Divides both models' logits.
        anchor: What the student is held near, or None.
    """
    under_loss = batch["loss_weights"] > 0
    keep = shifted(under_loss)
    student_hidden = hidden_at(model, batch, keep)
    teacher_batch = {"input_ids": batch["teacher_input_ids"], "attention_mask": batch["teacher_attention_mask"]}
    with torch.no_grad():
        teacher_hidden = hidden_at(teacher, teacher_batch, shifted(batch["teacher_keep"]))
    values = chunked(
        tempered(divergence, temperature),
        student_hidden,
        teacher_hidden,
        head_of(model),
        head_of(teacher),
        int(model.config.vocab_size),
        batch["input_ids"][under_loss],
    )
    if anchor is not None:
        values = values + anchor_loss(anchor, model, student_hidden, batch, keep)
    return (values * batch["loss_weights"][under_loss]).sum()


def on_policy_trainer(session: TrainingSession, objective: OnPolicyObjective, pairs: PromptPairs) -> Any:
    """A trainer whose optimizer steps begin with rollouts of the student as it is then.

    All rollouts of an optimizer step are drawn before its first backward pass, each from its own generator keyed by
    (seed, stage, example, visit), so neither micro-batches nor a resume change them.
    """
    from transformers import Trainer, TrainingArguments

    class OnPolicyTrainer(TrainingMixin, Trainer):  # type: ignore[misc]
        def prepare_step(self, batches: list[Any]) -> list[dict[str, Tensor]]:
            examples = [example for batch in batches for example in batch]
            completions = _rollouts(self, session, objective, pairs, examples)
            rows = list(zip(examples, completions, strict=True))
            micro = [rows[i : i + len(batches[0])] for i in range(0, len(rows), len(batches[0]))]
            return _weighted([_pad(session, pairs, part) for part in micro], objective, completions)

        def step_loss(self, model: Any, batch: Mapping[str, Tensor]) -> Tensor:
            session.counters.teacher_tokens += int(batch["teacher_attention_mask"].sum())
            if objective.anchor is not None:
                session.counters.anchor_flops += objective.anchor.flops(batch)
            teacher, temperature = objective.teacher.chat.model, objective.generation.temperature
            return on_policy_loss(model, teacher, batch, objective.divergence, temperature, objective.anchor)

    trainer = OnPolicyTrainer(
        model=session.student.model,
        args=training_arguments(session, TrainingArguments),
        train_dataset=_Rows(pairs.examples),
        data_collator=_collate,
    )
    trainer.session = session
    return trainer


def _collate(examples: list[Example]) -> Any:
    # Rendered and padded in ``prepare_step``, once the completions exist.
    return examples


class _Rows(torch.utils.data.Dataset[Example]):
    def __init__(self, examples: Sequence[Example]) -> None:
        self._examples = examples

    def __len__(self) -> int:
        return len(self._examples)

    def __getitem__(self, index: int) -> Example:
        return self._examples[index]


def _rollouts(
    trainer: Any,
    session: TrainingSession,
    objective: OnPolicyObjective,
    pairs: PromptPairs,
    examples: Sequence[Example],
) -> list[Completion]:
    visit = int(trainer.state.epoch or 0)
    step = trainer.state.global_step + 1
    prompts = [
        Prompt(pairs.student[example.key], session.context.row_seed("rollout", example.id, visit))
        for example in examples
    ]
    completions = session.context.sampler(session.student).generate(prompts, objective.generation)
    for example, completion in zip(examples, completions, strict=True):
        row = {"step": step, "id": example.id, "text": completion.text, "ended": completion.ended}
        session.context.ledger.append({**row, "tokens": list(completion.ids)})
    session.counters.generated_tokens += sum(len(c.ids) for c in completions)
    session.counters.generation_prompt_tokens += sum(len(p.ids) for p in prompts)
    return completions


def _pad(session: TrainingSession, pairs: PromptPairs, rows: Sequence[tuple[Example, Completion]]) -> dict[str, Tensor]:
    pad_id = session.student.pad_id
    student = pad_batch([(pairs.student[e.key], c.ids) for e, c in rows], pad_id)
    teacher = pad_batch([(pairs.teacher[e.key], c.ids) for e, c in rows], pad_id)
    return {**student, **{f"teacher_{key}": value for key, value in teacher.items()}}


def _weighted(
    batches: list[dict[str, Tensor]], objective: OnPolicyObjective, completions: Sequence[Completion]
) -> list[dict[str, Tensor]]:
    skip = tokens_to_skip(objective.skip_tokens, [len(c.ids) for c in completions])
    for batch in batches:
        batch["kept"] = skip_mask(batch.pop("completion_mask"), skip)
        batch["teacher_keep"] = skip_mask(batch.pop("teacher_completion_mask"), skip)
    tokens = sum(int(batch["kept"].sum()) for batch in batches)
    for batch in batches:
        batch["loss_weights"] = loss_weights(batch.pop("kept"), objective.reduction, tokens, len(completions))
    return batches
