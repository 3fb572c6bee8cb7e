"""One optimizer step of our trainers and of trl's on the same rows, with plain SGD, and how far the two are apart.

SGD, because Adam divides a wrong scale of the loss out again.
"""

from __future__ import annotations

import copy
import gc
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor

from cl_bench.harness.generation.base import Completion, GenerationSettings, Prompt, Sampler
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.harness.seeds import global_seed
from cl_bench.methods.base import Fidelity, Method, MethodSettings, Modifier, Precision, Stage, Student
from cl_bench.methods.training.mixin import TrainingMixin
from cl_bench.methods.training.rows import pad_batch
from cl_bench.tasks.base import Example, Score
from tests.methods.probes import Gradients, full_logits
from tests.support import TinyContext, toy_examples, weights

LARGEST_DIFFERENCE = 1e-4
SMALLEST_DRIFT = 1e-3
ROWS = toy_examples(4)
SAMPLES = 3
LONGEST = 20
TEMPERATURE = 1.3
COMMON: dict[str, Any] = {
    "batch_size": len(ROWS),
    "epochs": 1,
    "warmup_ratio": 0.0,
    "temperature": TEMPERATURE,
    "max_completion_length": LONGEST,
}
"""Settings of our on-policy methods: one optimizer step over the four rows."""
RIGHT = ((1, 0, 0), (1, 1, 0), (0, 0, 0), (0, 1, 1))
"""Verdicts on the samples of each row; one group has nothing to tell apart."""
LENGTHS = ((4, 9, 1), (20, 2, 7), (5, 5, 11), (16, 3, 8))


@dataclass(frozen=True, slots=True)
class Step:
    """What training did.

    Attributes:
        gradients: Of the first optimizer step, accumulated and before clipping, by parameter name.
        update: Weights after the last optimizer step less those before the first.
        start: Weights before the first.
    """

    gradients: Gradients
    update: Gradients
    start: Gradients


@dataclass(frozen=True, slots=True)
class Difference:
    """Norms over all parameters: differences relative to the peer's, and how far the peer moved from its start."""

    gradient: float
    update: float
    drift: float


def flat(tensors: Mapping[str, Tensor]) -> Tensor:
    """All entries in order of their names, fp64."""
    return torch.cat([tensors[name].double().flatten() for name in sorted(tensors)])


def difference(ours: Step, theirs: Step) -> Difference:
    """How far two steps are apart."""
    assert ours.gradients.keys() == theirs.gradients.keys() and ours.gradients

    def relative(one: Gradients, other: Gradients) -> float:
        return float((flat(one) - flat(other)).norm() / flat(other).norm())

    drift = float(flat(theirs.update).norm() / flat(theirs.start).norm())
    return Difference(relative(ours.gradients, theirs.gradients), relative(ours.update, theirs.update), drift)


def assert_equivalent(ours: Step, theirs: Step) -> Difference:
    """Equal gradients and equal updates, and a step long enough to show a difference."""
    found = difference(ours, theirs)
    assert found.drift >= SMALLEST_DRIFT, found
    assert found.gradient <= LARGEST_DIFFERENCE, found
    assert found.update <= LARGEST_DIFFERENCE, found
    return found


class FirstGradients(Modifier):
    """Copies the accumulated gradients of the first optimizer step and lets the training go on."""

    name: ClassVar[str] = "first-gradients"
    fidelity: ClassVar[Fidelity] = Fidelity.PAPER_FORMULA
    Settings: ClassVar[type[MethodSettings]] = MethodSettings

    def __init__(self) -> None:
        super().__init__()
        self.gradients: Gradients = {}

    def parameter_penalty(self, student: Student) -> Tensor | None:
        if not self.gradients:
            self.gradients = gradients_of(student.model)
        return None


def gradients_of(model: Any) -> Gradients:
    """A copy of a model's gradients."""
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


@contextmanager
def old_objects_left_alone() -> Iterator[None]:
    """Trainers collect garbage; the libraries' many objects, which outlive the test, need not be searched each time."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def our_step(
    method: Method, student: ChatModel, stage: Stage, micro: int, sampler: Sampler | None = None, **given: Any
) -> Step:
    """Train a copy of the student with a method's own trainer, with SGD in place of AdamW."""

    class Context(TinyContext):
        def sampler(self, model: ChatModel, fixed: bool = False) -> Sampler:
            return sampler or super().sampler(model)

    def plain_sgd(self: Any, *rest: Any) -> torch.optim.Optimizer:
        optimizer = torch.optim.SGD(self.model.parameters(), lr=self.args.learning_rate)
        self.optimizer = optimizer
        return optimizer

    own, probe = copy.deepcopy(student), FirstGradients()
    with (
        tempfile.TemporaryDirectory() as folder,
        pytest.MonkeyPatch.context() as patch,
        global_seed(7),
        old_objects_left_alone(),
    ):
        patch.setattr(TrainingMixin, "create_optimizer", plain_sgd, raising=False)
        precision = Precision(micro_batch_size=micro)
        context = Context(Path(folder), precision=precision, modifiers=[probe], **given)
        method.adapt(own, stage, context)
    return _step(probe.gradients, own.model, student)


def _step(gradients: Gradients, model: Any, student: ChatModel) -> Step:
    start = weights(student)
    after = {name: p.detach() for name, p in model.named_parameters()}
    return Step(gradients, {name: after[name] - start[name] for name in start}, start)


def peer_step(make: Callable[[Any, Path], Any], student: ChatModel) -> Step:
    """Train a copy of the student with a trainer of trl.

    Args:
        make: From the model to train and a folder to a trainer.
        student: The model; its copy is trained.
    """
    from transformers import TrainerCallback

    model, found = copy.deepcopy(student.model), dict[str, Tensor]()

    class Observer(TrainerCallback):
        def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if not found:
                found.update(gradients_of(kwargs["model"]))

    with tempfile.TemporaryDirectory() as folder, global_seed(7), old_objects_left_alone():
        trainer = make(model, Path(folder))
        trainer.add_callback(Observer())
        trainer.train()
    return _step(found, model, student)


def peer_arguments(cls: Any, folder: Path, micro: int, accumulation: int, learning_rate: float, **own: Any) -> Any:
    """A configuration of trl with SGD, a constant learning rate, no clipping, fp32 on the CPU, rows in their order."""
    return cls(
        output_dir=str(folder),
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=accumulation,
        learning_rate=learning_rate,
        optim="sgd",
        lr_scheduler_type="constant",
        weight_decay=0.0,
        max_grad_norm=0.0,
        bf16=False,
        use_cpu=True,
        gradient_checkpointing=False,
        report_to="none",
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
        dataloader_pin_memory=False,
        shuffle_dataset=False,
        **own,
    )


def left_padding(student: ChatModel) -> Any:
    """The student's tokenizer as trl's on-policy trainers want it."""
    tokenizer: Any = copy.deepcopy(student.tokenizer)
    tokenizer.padding_side = "left"
    return tokenizer


def verdict(example: Example, text: str) -> Score:
    """The verdict that a recorded sample carries as its text."""
    return Score(text == "right", text, True)


def recorded_stage() -> Stage:
    """The four rows, scored by what their recorded samples say."""
    return Stage(1, "toy", ROWS, (), {"toy": verdict})


class Recorded(Sampler):
    """Gives the same samples whoever asks: for each row, completions of different lengths.

    Their log-probabilities are those of the policy named as theirs, at a temperature.
    """

    def __init__(self, policy: ChatModel, temperature: float, samples: int = SAMPLES) -> None:
        self.context_length = policy.context_length
        generator = torch.Generator().manual_seed(11)
        self.by_prompt: dict[tuple[int, ...], list[Completion]] = {}
        for row, lengths, verdicts in zip(ROWS, LENGTHS, RIGHT, strict=True):
            prompt = policy.prompt_ids(row.messages)
            self.by_prompt[prompt] = [
                self._completion(policy, prompt, length, right, temperature, generator)
                for length, right in list(zip(lengths, verdicts, strict=True))[:samples]
            ]

    @staticmethod
    def _completion(
        policy: ChatModel, prompt: Sequence[int], length: int, right: int, temperature: float, generator: Any
    ) -> Completion:
        ids = torch.randint(3, 250, (length,), generator=generator).tolist()
        ended = length < LONGEST
        if ended:
            ids[-1] = policy.end_id
        with torch.no_grad():
            log_probs = (full_logits(policy.model, prompt, ids) / temperature).log_softmax(-1)
        own = log_probs[torch.arange(length), torch.tensor(ids)]
        text = "right" if right else "wrong"
        return Completion(tuple(ids), text, "eos" if ended else "length", tuple(own.tolist()))

    def generate(self, prompts: Sequence[Prompt], settings: GenerationSettings) -> list[Completion]:
        assert settings.max_new_tokens == LONGEST
        return self.in_order([prompt.ids for prompt in prompts])

    def in_order(self, prompts: Sequence[Sequence[int]]) -> list[Completion]:
        """The samples of prompts that may be repeated; the k-th repetition gets the k-th sample."""
        left = {prompt: iter(found) for prompt, found in self.by_prompt.items()}
        return [next(left[tuple(prompt)]) for prompt in prompts]

    def right(self, ids: Sequence[int]) -> float:
        """The verdict on a sample, by its tokens."""
        (found,) = [c.text for own in self.by_prompt.values() for c in own if c.ids == tuple(ids)]
        return float(found == "right")

    def old_log_probs(self, ids: Sequence[int]) -> tuple[float, ...]:
        """Log-probabilities of a sample's tokens under the policy that drew it."""
        (found,) = [c.logprobs for own in self.by_prompt.values() for c in own if c.ids == tuple(ids)]
        return found


def moved(student: ChatModel, distance: float, seed: int = 5) -> ChatModel:
    """A copy of a model with noise of that standard deviation on every weight."""
    other = ChatModel(copy.deepcopy(student.model), student.tokenizer, f"{student.name}-moved")
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in other.model.parameters():
            parameter.add_(distance * torch.randn(parameter.shape, generator=generator))
    return other


def prompt_rows() -> Any:
    """The prompts as trl's on-policy trainers take them."""
    from datasets import Dataset

    return Dataset.from_list([{"prompt": list(row.messages)} for row in ROWS])


def prompt_included(rows: Any, pad_id: int) -> dict[str, Tensor]:
    """The mistake of a loss that begins one token early, in the prompt, and ends one early."""
    batch = pad_batch(rows, pad_id)
    return {**batch, "completion_mask": torch.nn.functional.pad(batch["completion_mask"][:, 1:], (0, 1))}
