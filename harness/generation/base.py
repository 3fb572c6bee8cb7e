"""The sampler interface: prompts in, completions out. Implementations: ``local`` (this process)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from cl_bench.harness.generation.batches import KeptBatches


@dataclass(frozen=True, slots=True)
class GenerationSettings:
    """How to generate.

    Attributes:
        max_new_tokens: Longest completion, in tokens, the end token included.
        temperature: 0 is greedy; otherwise logits are divided by it. No top-k, no top-p.
        batch_size: Rows decoded together. In fp32 it does not change the tokens; it is recorded all the same.
        stop: Strings that end a completion; the text is cut before the first of them.
    """

    max_new_tokens: int
    temperature: float = 0.0
    batch_size: int = 128
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Prompt:
    """One row to complete.

    Attributes:
        ids: Token ids of the rendered prompt.
        seed: Seed of the row's own generator (see ``harness.seeds.row_seed``); unused when greedy.
    """

    ids: tuple[int, ...]
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Completion:
    """One sampled completion.

    Attributes:
        ids: Token ids, the end token included where one was sampled.
        text: Decoded text without special tokens.
        ended: "eos" (end token), "length" (limit reached) or "stop" (stop string).
        logprobs: Log-probability of each token under the distribution it was drawn from (temperature applied).
    """

    ids: tuple[int, ...]
    text: str
    ended: Literal["eos", "length", "stop"]
    logprobs: tuple[float, ...]


class Sampler(ABC):
    """Generates completions with a model it was built around.

    A prompt whose length plus ``max_new_tokens`` exceeds ``context_length`` is refused with ``UsageError``; callers
    that want a counted skip check ``fits`` first.
    """

    context_length: int
    kept: KeptBatches | None = None
    """Where finished batches of this model are kept, or None."""

    @abstractmethod
    def generate(self, prompts: Sequence[Prompt], settings: GenerationSettings) -> list[Completion]:
        """One completion per prompt, in the order given. Rows that share ``ids`` share one prefill."""

    def fits(self, prompt_length: int, settings: GenerationSettings) -> bool:
        """Whether a prompt of that many tokens leaves room for ``max_new_tokens``."""
        return prompt_length + settings.max_new_tokens <= self.context_length
