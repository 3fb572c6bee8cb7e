"""SFT and DFT train as trl's ``SFTTrainer`` does: two optimizer steps on rows of unequal lengths, accumulated."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

import cl_bench.methods.dft as dft_module
import cl_bench.methods.training.mixin as mixin_module
import cl_bench.methods.training.supervised as supervised_module
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.methods.training.losses import cross_entropy, loss_weights
from cl_bench.methods.training.rows import pad_batch
from tests.methods.probes import make_method
from tests.methods.trl_peers import Difference, Step, assert_equivalent, our_step, peer_arguments, peer_step
from tests.support import tiny_model, toy_examples, toy_stage

EIGHT = toy_examples(8)
LOSS_TYPES = {"sft": "nll", "dft": "dft"}
RATES = {"sft": 0.05, "dft": 5.0}
EPOCHS = 2
"""Optimizer steps: all rows are in each."""


def check_rows(student: ChatModel, dataset: Any) -> None:
    """The peer's rows are the ones that ours are, token by token, with the same tokens under the loss."""
    ours = []
    for example in EIGHT:
        prompt, completion = student.prompt_ids(example.messages), student.completion_ids(example.demonstration or "")
        ours.append(([*prompt, *completion], [-100] * len(prompt) + list(completion)))
    assert [(list(row["input_ids"]), list(row["labels"])) for row in dataset] == ours


@functools.cache
def peer(name: str, micro: int = 2) -> Step:
    """What ``SFTTrainer`` does with the rows as text, in micro-batches of that size."""
    from datasets import Dataset
    from trl import SFTConfig, SFTTrainer

    student = tiny_model(0)

    def make(model: Any, folder: Path) -> Any:
        rows = [
            {
                "prompt": student.tokenizer.apply_chat_template(
                    list(example.messages), tokenize=False, add_generation_prompt=True
                ),
                "completion": example.demonstration,
            }
            for example in EIGHT
        ]
        own = {"loss_type": LOSS_TYPES[name], "completion_only_loss": True, "max_length": None}
        trainer = SFTTrainer(
            model=model,
            args=peer_arguments(SFTConfig, folder, micro, 8 // micro, RATES[name], num_train_epochs=EPOCHS, **own),
            train_dataset=Dataset.from_list(rows),
            processing_class=student.tokenizer,
        )
        check_rows(student, trainer.train_dataset)
        return trainer

    return peer_step(make, student)


def check(name: str, micro: int = 2) -> Difference:
    """Compare a method's own trainer with the peer; raises ``AssertionError`` where they differ."""
    method = make_method(name, batch_size=8, learning_rate=RATES[name], epochs=EPOCHS, warmup_ratio=0.0)
    ours = our_step(method, tiny_model(0), toy_stage(EIGHT), micro)
    return assert_equivalent(ours, peer(name))


@pytest.mark.parametrize("micro", [8, 1])
@pytest.mark.parametrize("name", LOSS_TYPES)
def test_trains_as_trl_does(name: str, micro: int) -> None:
    check(name, micro)


@pytest.mark.parametrize("name", LOSS_TYPES)
def test_trls_own_step_does_not_depend_on_its_split(name: str) -> None:
    assert_equivalent(peer(name, 8), peer(name, 2))


def scaled_by_accumulation(patch: pytest.MonkeyPatch) -> None:
    """The mistake of a trainer that returns the mean of a micro-batch where nothing divides by their number."""

    def mistaken(mask: Tensor, reduction: Any, tokens: int, sequences: int) -> Tensor:
        return loss_weights(mask, reduction, int(mask.sum()), len(mask))

    patch.setattr(supervised_module, "loss_weights", mistaken)


def micro_batches_equal(patch: pytest.MonkeyPatch) -> None:
    """The mistake of averaging micro-batches equally, whatever their number of tokens."""

    def mistaken(mask: Tensor, reduction: Any, tokens: int, sequences: int) -> Tensor:
        return loss_weights(mask, reduction, int(mask.sum()) * sequences // len(mask), sequences)

    patch.setattr(supervised_module, "loss_weights", mistaken)


def divided_by_accumulation(patch: pytest.MonkeyPatch) -> None:
    """The mistake of letting the trainer divide a loss that is the step's share already."""
    original = mixin_module.TrainingMixin.training_step

    def mistaken(self: Any, model: Any, inputs: Any, num_items_in_batch: Any = None) -> Tensor:
        self.loss_is_scaled_for_ga = False
        return original(self, model, inputs, num_items_in_batch)

    patch.setattr(mixin_module.TrainingMixin, "training_step", mistaken)


def doubled(patch: pytest.MonkeyPatch) -> None:
    original = supervised_module.supervised_loss
    patch.setattr(supervised_module, "supervised_loss", lambda *given: 2 * original(*given))


def prompt_under_the_loss(patch: pytest.MonkeyPatch) -> None:
    def mistaken(rows: Any, pad_id: int, side: Any = "right") -> dict[str, Tensor]:
        batch = pad_batch(rows, pad_id, side)
        mask = batch["attention_mask"].clone()
        # The first token of a sequence is predicted by nothing.
        mask.scatter_(1, mask.argmax(1, keepdim=True), 0)
        return {**batch, "completion_mask": mask}

    patch.setattr(supervised_module, "pad_batch", mistaken)


def end_token_not_learned(patch: pytest.MonkeyPatch) -> None:
    def mistaken(rows: Any, pad_id: int, side: Any = "right") -> dict[str, Tensor]:
        batch = pad_batch(rows, pad_id, side)
        mask = batch["completion_mask"].clone()
        last = mask.shape[1] - 1 - mask.flip(1).argmax(1, keepdim=True)
        return {**batch, "completion_mask": mask.scatter(1, last, 0)}

    patch.setattr(supervised_module, "pad_batch", mistaken)


def labels_one_late(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(supervised_module, "shifted", lambda mask: mask.bool())


def mean_of_sequences(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        supervised_module,
        "loss_weights",
        lambda mask, reduction, tokens, sequences: loss_weights(mask, "sequence_mean", tokens, sequences),
    )


def weight_carries_gradient(patch: pytest.MonkeyPatch) -> None:
    def mistaken(logits: Tensor, labels: Tensor) -> Tensor:
        losses = cross_entropy(logits, labels)
        return (-losses).exp() * losses

    patch.setattr(dft_module, "dft_loss", mistaken)


def weight_left_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(dft_module, "dft_loss", cross_entropy)


MISTAKES: list[tuple[str, Callable[[pytest.MonkeyPatch], None]]] = [
    *((name, mistake) for name in LOSS_TYPES for mistake in (doubled, scaled_by_accumulation, prompt_under_the_loss)),
    ("sft", divided_by_accumulation),
    ("sft", micro_batches_equal),
    ("sft", end_token_not_learned),
    ("sft", labels_one_late),
    ("sft", mean_of_sequences),
    ("dft", weight_carries_gradient),
    ("dft", weight_left_out),
]


@pytest.mark.parametrize(("name", "mistake"), MISTAKES, ids=lambda part: getattr(part, "__name__", part))
def test_planted_mistakes_are_caught(
    name: str, mistake: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    peer(name)
    mistake(monkeypatch)
    with pytest.raises(AssertionError, match=r"Difference\("):
        check(name)
