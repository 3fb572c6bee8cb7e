"""The on-policy trainer: rollouts of the current student -> teacher's context -> divergence -> step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from cl_bench.harness.generation.base import GenerationSettings
from cl_bench.methods.training.anchors import Anchor, anchor_loss
from cl_bench.methods.training.divergences import Divergence, chunked, importance_weights, tempered, token_log_probs
from cl_bench.methods.training.forward import computed_tokens, head_of, hidden_at, shifted
from cl_bench.methods.training.groups import Choose, Group, TeacherSample, draw_groups, split_evenly
from cl_bench.methods.training.losses import Reduction, loss_weights, skip_mask, tokens_to_skip
from cl_bench.methods.training.mixin import Counters, TrainingMixin, TrainingSession, training_arguments
from cl_bench.methods.training.rollouts import BlockSampler, shuffle
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
        samples: Samples of each prompt in a step.
        choose: Which samples of a group are trained on, each with the teacher's prompt (then ``teacher_messages`` only
            says whether a prompt fits at all); None: all, under ``teacher_messages``.
        importance_clip: Weigh each token by its probability ratio against the policy that drew it, cut there; None: no
            weights. The ratio is 1 where sampling and training compute alike.
        updates: Optimizer steps that each batch of rollouts is split into; from the second on the student has moved.
    """

    teacher: Teacher
    teacher_messages: Callable[[Example], Sequence[Message]]
    divergence: Divergence
    reduction: Reduction
    generation: GenerationSettings
    skip_tokens: int = 0
    needs_demonstration: bool = False
    anchor: Anchor | None = None
    samples: int = 1
    choose: Choose | None = None
    importance_clip: float | None = None
    updates: int = 1


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
    importance_clip: float | None = None,
) -> Tensor:
    """Sum of ``loss_weights`` x (divergence + the anchor's) over a micro-batch.

    Args:
        model: The student.
        teacher: The teacher's model.
        batch: ``input_ids``, ``attention_mask``, ``loss_weights`` [B, T] for the student and ``teacher_input_ids``,
            ``teacher_attention_mask``, ``teacher_keep`` [B, U] for the teacher, and of each perhaps the
            ``prompt_lengths`` (see ``forward.hidden_at``). The k-th loss token of the batch is the
            same completion token in both, at its own prompt's offset. With an importance clip also ``old_log_probs``
            [B, T], of each token under the policy that drew it.
        divergence: Which.
        temperature: Divides both models' logits.
        anchor: What the student is held near, or None.
        importance_clip: See ``OnPolicyObjective``.
    """
    under_loss = batch["loss_weights"] > 0
    keep = shifted(under_loss)
    student_hidden = hidden_at(model, batch, keep)
    with torch.no_grad():
        teacher_hidden = hidden_at(teacher, _teacher_view(batch), shifted(batch["teacher_keep"]))
    values = chunked(
        tempered(divergence, temperature),
        student_hidden,
        teacher_hidden,
        head_of(model),
        head_of(teacher),
        int(model.config.vocab_size),
        batch["input_ids"][under_loss],
    )
    if importance_clip is not None:
        with torch.no_grad():
            log_probs = token_log_probs(head_of(model), student_hidden, batch["input_ids"][under_loss], temperature)
        values = values * importance_weights(log_probs, batch["old_log_probs"][under_loss], importance_clip)
    if anchor is not None:
        values = values + anchor_loss(anchor, model, student_hidden, batch, keep)
    return (values * batch["loss_weights"][under_loss]).sum()


def _teacher_view(batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
    names = ("input_ids", "attention_mask", "prompt_lengths")
    return {name: batch[f"teacher_{name}"] for name in names if f"teacher_{name}" in batch}


def on_policy_trainer(session: TrainingSession, objective: OnPolicyObjective, pairs: PromptPairs) -> Any:
    """A trainer whose batches of rollouts are drawn from the student as it is then.

    All rollouts of a batch are drawn before its first backward pass, each from its own generator keyed by (seed, stage,
    example, visit), so neither micro-batches nor a resume change them. Where a batch serves several optimizer steps,
    its samples are shuffled and split over them, and a resume reads them from the ledger.
    """
    from transformers import Trainer, TrainingArguments

    updates = objective.updates

    class OnPolicyTrainer(TrainingMixin, Trainer):  # type: ignore[misc]
        _batch: tuple[int, list[TeacherSample], TeacherSample] | None = None

        @property
        def last_samples(self) -> list[TeacherSample]:
            """Samples of the newest batch that are under the loss."""
            return self._batch[1] if self._batch else []

        def _get_train_sampler(self, train_dataset: Any = None) -> Any:
            if updates == 1:
                return super()._get_train_sampler(train_dataset)
            return BlockSampler(len(pairs.examples), session.settings.batch_size, updates, session.context.seed)

        def prepare_step(self, batches: list[Any]) -> list[dict[str, Tensor]]:
            examples = [example for batch in batches for example in batch]
            block, update = divmod(self.state.global_step, updates)
            if self._batch is None or self._batch[0] != block:
                visit = int(self.state.epoch or 0)
                self._batch = (block, *_samples(session, objective, pairs, examples, block, update, visit))
            _, samples, filler = self._batch
            own = samples[split_evenly(len(samples), updates)[update]]
            parts = [own[where] for where in split_evenly(len(own), len(batches))]
            # A micro-batch without a sample still needs a row to run through the model: none of its tokens counts.
            padded = [_pad(session.student.pad_id, part or [filler], counted=bool(part)) for part in parts]
            return _weighted(padded, objective, own)

        def step_loss(self, model: Any, batch: Mapping[str, Tensor]) -> Tensor:
            if objective.anchor is not None:
                session.counters.anchor_flops += objective.anchor.flops(batch)
            teacher, temperature = objective.teacher.chat.model, objective.generation.temperature
            session.counters.teacher_tokens += computed_tokens(teacher, _teacher_view(batch))
            return on_policy_loss(
                model, teacher, batch, objective.divergence, temperature, objective.anchor, objective.importance_clip
            )

    trainer = OnPolicyTrainer(
        model=session.student.model,
        args=training_arguments(session, TrainingArguments, max(1, objective.samples // updates)),
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


def _samples(
    session: TrainingSession,
    objective: OnPolicyObjective,
    pairs: PromptPairs,
    examples: Sequence[Example],
    block: int,
    update: int,
    visit: int,
) -> tuple[list[TeacherSample], TeacherSample]:
    """A batch's samples under the loss, and one sample that stands in where a micro-batch has none.

    Drawn at the batch's first update; at a later one, after a resume, read back from the ledger.
    """
    updates, count, how = objective.updates, objective.samples, objective.generation
    step = block * updates + 1
    groups = draw_groups(
        session, examples, pairs.student, how, count, step=step, visit=visit, update=update, with_log_probs=updates > 1
    )
    samples = [s for group in groups for s in _chosen(session, objective, pairs, group, counted=update == 0)]
    if updates > 1:
        shuffle(samples, session, block)
    first = groups[0]
    return samples, TeacherSample(first.example, first.prompt_ids, first.completions[0], first.prompt_ids)


def _chosen(
    session: TrainingSession, objective: OnPolicyObjective, pairs: PromptPairs, group: Group, *, counted: bool
) -> Iterator[TeacherSample]:
    """The group's samples under the loss; one whose teacher prompt does not fit is left out and counted.

    ``counted`` is False where the group was counted before: after a resume between two steps of its batch.
    """
    counters = session.counters if counted else Counters()
    counters.samples += len(group.completions)
    if objective.choose is None:
        choices = [(index, pairs.teacher[group.example.key]) for index in range(len(group.completions))]
    else:
        chat = objective.teacher.chat
        choices = [(index, chat.prompt_ids(messages)) for index, messages in objective.choose(group, counters)]
    for index, teacher_ids in choices:
        completion = group.completions[index]
        if len(teacher_ids) + len(completion.ids) > objective.teacher.chat.context_length:
            counters.unfit_samples += 1
            continue
        counters.usable_samples += 1
        yield TeacherSample(group.example, group.prompt_ids, completion, teacher_ids)


def _pad(pad_id: int, samples: Sequence[TeacherSample], counted: bool) -> dict[str, Tensor]:
    student = pad_batch([(sample.prompt_ids, sample.completion.ids) for sample in samples], pad_id)
    teacher = pad_batch([(sample.teacher_ids, sample.completion.ids) for sample in samples], pad_id)
    old = torch.zeros(student["input_ids"].shape)
    old[student["completion_mask"].bool()] = torch.tensor([p for s in samples for p in s.completion.logprobs])
    if not counted:
        student["completion_mask"].zero_()
        teacher["completion_mask"].zero_()
    return {**student, "old_log_probs": old, **{f"teacher_{key}": value for key, value in teacher.items()}}


def _weighted(
    batches: list[dict[str, Tensor]], objective: OnPolicyObjective, samples: Sequence[TeacherSample]
) -> list[dict[str, Tensor]]:
    skip = tokens_to_skip(objective.skip_tokens, [len(sample.completion.ids) for sample in samples])
    for batch in batches:
        batch["kept"] = skip_mask(batch.pop("completion_mask"), skip)
        batch["teacher_keep"] = skip_mask(batch.pop("teacher_completion_mask"), skip)
    tokens = sum(int(batch["kept"].sum()) for batch in batches)
    for batch in batches:
        batch["loss_weights"] = loss_weights(batch.pop("kept"), objective.reduction, tokens, len(samples))
    return batches
