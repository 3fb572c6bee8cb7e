"""The supervised trainer: trl's SFTTrainer with our own token losses on the logits at loss positions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from torch import Tensor

from cl_bench.methods.training.anchors import Anchor, anchor_loss
from cl_bench.methods.training.forward import head_of, hidden_at, shifted
from cl_bench.methods.training.losses import Reduction, loss_weights
from cl_bench.methods.training.mixin import TrainingMixin, TrainingSession, training_arguments
from cl_bench.methods.training.rows import TrainingRow, pad_batch

TokenLoss = Callable[[Tensor, Tensor], Tensor]
"""(logits [N, V], labels [N]) -> loss per token [N]."""


def supervised_loss(
    model: Any, batch: Mapping[str, Tensor], token_loss: TokenLoss, anchor: Anchor | None = None
) -> Tensor:
    """Sum of ``loss_weights`` x (token loss + anchor's weight x divergence) over a micro-batch.

    Args:
        model: A causal language model.
        batch: ``input_ids``, ``attention_mask`` and ``loss_weights`` (of each token as a label), [B, T].
        token_loss: The loss of one label.
        anchor: What to stay near, or None.
    """
    under_loss = batch["loss_weights"] > 0
    keep, labels = shifted(under_loss), batch["input_ids"][under_loss]
    hidden = hidden_at(model, batch, keep)
    losses = token_loss(head_of(model)(hidden), labels)
    if anchor is not None:
        losses = losses + anchor_loss(anchor, model, hidden, batch, keep)
    return (losses * batch["loss_weights"][under_loss]).sum()


def supervised_trainer(
    session: TrainingSession,
    rows: Sequence[TrainingRow],
    token_loss: TokenLoss,
    reduction: Reduction = "token_mean",
    anchor: Anchor | None = None,
    padding_side: Literal["left", "right"] = "right",
) -> Any:
    """A trainer over prompt-completion rows.

    Args:
        session: What is trained.
        rows: Training rows; the prompt is never under the loss, the end token is.
        token_loss: Loss per token.
        reduction: How token losses become the step's loss.
        anchor: What the student is held near, or None.
        padding_side: Does not change the result; right by default.
    """
    from datasets import Dataset
    from trl import SFTConfig, SFTTrainer

    class SupervisedTrainer(TrainingMixin, SFTTrainer):  # type: ignore[misc]
        def prepare_step(self, batches: list[Any]) -> list[dict[str, Tensor]]:
            tokens = sum(int(batch["completion_mask"].sum()) for batch in batches)
            sequences = sum(len(batch["input_ids"]) for batch in batches)
            for batch in batches:
                mask = batch.pop("completion_mask")
                batch["loss_weights"] = loss_weights(mask, reduction, tokens, sequences)
            return batches

        def step_loss(self, model: Any, batch: Mapping[str, Tensor]) -> Tensor:
            if anchor is not None:
                session.counters.anchor_flops += anchor.flops(batch)
            return supervised_loss(model, batch, token_loss, anchor)

    def collate(items: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
        pairs = [(item["prompt_ids"], item["completion_ids"]) for item in items]
        return pad_batch(pairs, session.student.pad_id, padding_side)

    dataset = Dataset.from_dict(
        {
            "input_ids": [[*row.prompt_ids, *row.completion_ids] for row in rows],
            "prompt_ids": [list(row.prompt_ids) for row in rows],
            "completion_ids": [list(row.completion_ids) for row in rows],
        }
    )
    arguments = training_arguments(
        session, SFTConfig, max_length=None, packing=False, dataset_kwargs={"skip_prepare_dataset": True}
    )
    trainer = SupervisedTrainer(
        model=session.student.model,
        args=arguments,
        train_dataset=dataset,
        data_collator=collate,
        processing_class=session.student.tokenizer,
    )
    trainer.session, trainer.trained_rows = session, rows
    return trainer
