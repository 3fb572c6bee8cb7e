"""A causal language model with its tokenizer and chat template: what students, aligners and teachers all are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cl_bench.tasks.base import Message

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


THINKING_SWITCH = "enable_thinking"
"""Variable of the chat templates that can switch reasoning blocks, as in Qwen3's and those after it."""


@dataclass(slots=True)
class ChatModel:
    """A model and the one way its prompts and completions become token ids.

    Attributes:
        model: The causal language model; fp32 weights.
        tokenizer: Its tokenizer, with a chat template.
        name: Name for people (``lab-m``, a hub id, a folder's name).
        thinking: Whether answers begin with a reasoning block, for models whose chat template can switch it; None
            leaves the template's own default.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    name: str
    thinking: bool | None = None

    @property
    def context_length(self) -> int:
        """Longest sequence the model takes, in tokens."""
        return int(self.model.config.max_position_embeddings)

    @property
    def end_id(self) -> int:
        """Id of the token that ends a completion."""
        return int(self.tokenizer.eos_token_id)

    @property
    def end_ids(self) -> frozenset[int]:
        """Ids that end a sampled answer: ``end_id`` and what the model's generation configuration names.

        Many instruction-tuned models end a turn with another token than the one that the tokenizer calls its end.
        """
        named = getattr(getattr(self.model, "generation_config", None), "eos_token_id", None)
        further = named if isinstance(named, list | tuple) else [named]
        return frozenset((self.end_id, *(int(token) for token in further if token is not None)))

    @property
    def pad_id(self) -> int:
        """Id used for padding; the end token where the tokenizer declares none."""
        pad = self.tokenizer.pad_token_id
        return int(pad) if pad is not None else self.end_id

    def prompt_ids(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Ids of the rendered chat up to where the assistant's answer begins."""
        return self.text_ids(self.render(messages))

    @property
    def begins_prompts(self) -> bool:
        """Whether prompts begin with a start token."""
        start = self.tokenizer.bos_token_id
        return start is not None and self.prompt_ids([{"role": "user", "content": "?"}])[:1] == (start,)

    def text_ids(self, text: str) -> tuple[int, ...]:
        """Ids of a prompt's text with exactly one start token, where the tokenizer has prompts begin with one."""
        start = self.tokenizer.bos_token
        special = not (start and text.startswith(start))
        return tuple(self.tokenizer(text, add_special_tokens=special)["input_ids"])

    def render(self, messages: Sequence[Message], open_answer: bool = False) -> str:
        """The chat as text.

        Args:
            messages: The turns.
            open_answer: The last turn is the assistant's and is left open to be continued; otherwise the text ends
                where the assistant's answer begins.
        """
        switch: dict[str, Any] = {} if self.thinking is None else {THINKING_SWITCH: self.thinking}
        return str(
            self.tokenizer.apply_chat_template(
                list(messages),
                tokenize=False,
                add_generation_prompt=not open_answer,
                continue_final_message=open_answer,
                **switch,
            )
        )

    def completion_ids(self, text: str) -> tuple[int, ...]:
        """Ids of an assistant's answer, with the end token."""
        return (*self.tokenizer(text, add_special_tokens=False)["input_ids"], self.end_id)

    def decode(self, ids: Sequence[int]) -> str:
        """Text of completion ids without special tokens, stripped."""
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=True)).strip()

    def parameter_count(self) -> int:
        """Number of weights, tied ones once."""
        return sum(p.numel() for p in self.model.parameters())
