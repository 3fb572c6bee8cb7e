"""A tiny random model with a real tokenizer, toy rows, and a context without a run: what checks in seconds stand on."""

from __future__ import annotations

import copy
import functools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch

from cl_bench.harness.cache import Cache
from cl_bench.harness.generation.base import Sampler
from cl_bench.harness.generation.local import LocalSampler
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.harness.models.load import freeze
from cl_bench.harness.progress import SilentProgress
from cl_bench.harness.seeds import row_seed
from cl_bench.harness.stage_checkpoints import StageCheckpointFolder
from cl_bench.methods.base import Context, Modifier, Precision, Stage
from cl_bench.methods.training.ledger import Ledger
from cl_bench.tasks.base import Example, Score

_TEMPLATE = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


@functools.cache
def tiny_tokenizer() -> Any:
    """A byte-level tokenizer with ChatML and no merges."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(["user assistant answer the sum is"], trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    fast.chat_template = _TEMPLATE
    return fast


def tiny_model(
    seed: int = 0, vocabulary: int | None = None, width: int = 16, context_length: int = 160, ends: float = 1.0
) -> ChatModel:
    """A random Qwen2 of a few thousand weights; the same seed gives the same weights.

    Args:
        seed: Of the weights.
        vocabulary: Rows of the embedding; the tokenizer's own number where None.
        width: Size of the hidden states.
        context_length: Longest sequence in tokens.
        ends: Times the end token's row of the embedding: 8 ends six to eight of ten samples within 12 tokens.
    """
    from transformers import Qwen2Config, Qwen2ForCausalLM

    tokenizer = tiny_tokenizer()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        config = Qwen2Config(
            vocab_size=vocabulary or len(tokenizer),
            hidden_size=width,
            intermediate_size=2 * width,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=2,
            max_position_embeddings=context_length,
            tie_word_embeddings=True,
            initializer_range=0.2,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.eos_token_id,
            bos_token_id=None,
        )
        model = Qwen2ForCausalLM(config)
    with torch.no_grad():
        cast(Any, model.get_input_embeddings()).weight[tokenizer.eos_token_id] *= ends
    model.eval()
    return ChatModel(model, tokenizer, f"tiny-{seed}")


def _frozen_copy(chat: ChatModel) -> ChatModel:
    return freeze(replace(chat, model=copy.deepcopy(chat.model)))


def weights(model: ChatModel) -> dict[str, torch.Tensor]:
    """A copy of a model's weights."""
    return {name: p.detach().clone() for name, p in model.model.named_parameters()}


def same_weights(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    """Whether two sets of weights are equal bit for bit."""
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def toy_examples(count: int) -> list[Example]:
    """Sums with answers of different lengths."""
    return [
        Example(
            task="toy",
            id=f"toy-{i}",
            messages=({"role": "user", "content": f"{i}+{i * i}?"},),
            demonstration=f"sum {'so ' * (i % 4)}is {i + i * i}",
            answer=str(i + i * i),
        )
        for i in range(count)
    ]


def toy_score(example: Example, text: str) -> Score:
    """Right when the answer is the last word."""
    last = text.split()[-1] if text.split() else None
    return Score(last == example.answer, last, last is not None)


def toy_stage(examples: Sequence[Example], index: int = 1) -> Stage:
    """A stage over toy examples."""
    return Stage(index, "toy", examples, (), {"toy": toy_score})


class Stopped(Exception):
    """Raised by ``TinyContext`` in place of a kill."""


class TinyContext(Context):
    """A context without a run: checkpoints, cache and scratch in one folder."""

    def __init__(
        self,
        folder: Path,
        seed: int = 0,
        precision: Precision | None = None,
        every_steps: int | None = None,
        stop_at: int | None = None,
        aligner: ChatModel | None = None,
        modifiers: Sequence[Modifier] = (),
        original: ChatModel | None = None,
        task_start: ChatModel | None = None,
        stage: str = "toy",
    ) -> None:
        """``stop_at``: raise ``Stopped`` after that optimizer step; ``task_start`` is ``original`` where not given."""
        self.seed, self.precision = seed, precision or Precision(micro_batch_size=4)
        self.scratch, self.cache = folder / "scratch", Cache(folder / "cache")
        self.progress, self.ledger, self.modifiers = SilentProgress(quiet=True), Ledger(), modifiers
        self.checkpoints = StageCheckpointFolder(folder / "mid", None, every_steps)
        self.backend, self.backend_version = "local", "test"
        self._aligner, self._stop_at, self._stage = aligner, stop_at, stage
        self.original_weights, self._task_start = original, task_start

    def aligner(self) -> ChatModel:
        """The aligner given, frozen."""
        assert self._aligner is not None
        return freeze(self._aligner)

    def aligner_fingerprint(self) -> str:
        """Name of the aligner given."""
        return self.aligner().name

    def aligner_parameters(self) -> int:
        """Weights of the aligner given."""
        return self.aligner().parameter_count()

    def scorer_identity(self) -> str:
        """One scorer."""
        return "toy"

    def original(self) -> ChatModel:
        """A frozen copy of the model registered as original."""
        assert self.original_weights is not None
        return _frozen_copy(self.original_weights)

    def task_start(self) -> ChatModel:
        """A frozen copy of the model registered as the stage's beginning, or of the original."""
        return self.original() if self._task_start is None else _frozen_copy(self._task_start)

    def sampler(self, model: ChatModel, fixed: bool = False) -> Sampler:
        """The local sampler."""
        return LocalSampler(model)

    def row_seed(self, purpose: str, example_id: str, visit: int = 0, rollout: int = 0) -> int:
        """Seed of a row."""
        return row_seed(self.seed, self._stage, purpose, example_id, visit, rollout)

    def after_step(self, step: int) -> None:
        """Stop where asked to."""
        if step == self._stop_at:
            raise Stopped
