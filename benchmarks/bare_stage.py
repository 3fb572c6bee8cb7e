"""A stage and its context without a run, for benchmarks that time or weigh single training steps."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Callable, Sequence
from pathlib import Path

from cl_bench.harness.conformance.tiny import TinyContext
from cl_bench.harness.generation.base import Sampler
from cl_bench.harness.generation.local import LocalSampler
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.methods.base import Modifier, Precision, Stage
from cl_bench.tasks.base import Example, Score

_FILLERS = (" a", " of", " is", ".", ",", " the", "a", "e")


class BareContext(TinyContext):
    """A context without a run that takes another sampler and is told of every step."""

    def __init__(
        self,
        folder: Path,
        micro_batch_size: int,
        sampler: Callable[[ChatModel], Sampler] = LocalSampler,
        original: ChatModel | None = None,
        aligner: ChatModel | None = None,
        modifiers: Sequence[Modifier] = (),
        watch: Callable[[int], None] | None = None,
    ) -> None:
        """``watch`` is called after every optimizer step; ``original`` is also what the stage began with."""
        precision = Precision(micro_batch_size=micro_batch_size)
        super().__init__(folder, precision=precision, aligner=aligner, modifiers=modifiers, original=original)
        self._sampler, self._watch = sampler, watch

    def sampler(self, model: ChatModel, fixed: bool = False) -> Sampler:
        return self._sampler(model)

    def after_step(self, step: int) -> None:
        if self._watch is not None:
            self._watch(step)


def bare_stage(examples: Sequence[Example], score: Callable[[Example, str], Score] | None = None) -> Stage:
    """A stage over examples; without a scorer every answer counts as wrong."""
    return Stage(1, "benchmark", examples, (), {"benchmark": score or _wrong})


def _wrong(example: Example, text: str) -> Score:
    return Score(False, None, False)


def sized_examples(chat: ChatModel, count: int, prompt_tokens: int, demonstration: str) -> list[Example]:
    """Examples whose rendered prompts have exactly that many tokens; no two are alike.

    Raises:
        ValueError: The tokenizer has no short filler that hits the length.
    """
    examples = []
    for number in range(count):
        text = f"Row {number}:"
        while (length := _prompt_length(chat, text)) < prompt_tokens:
            fitting = [text + filler for filler in _FILLERS if _prompt_length(chat, text + filler) == length + 1]
            if not fitting:
                raise ValueError(f"no filler makes {text!r} one token longer")
            text = fitting[len(text) % len(fitting)]
        if length != prompt_tokens:
            raise ValueError(f"the shortest prompt has {length} tokens, not {prompt_tokens}")
        messages = ({"role": "user", "content": text},)
        examples.append(Example("benchmark", f"row-{number}", messages, demonstration=demonstration, answer="a"))
    return examples


def _prompt_length(chat: ChatModel, text: str) -> int:
    return len(chat.prompt_ids([{"role": "user", "content": text}]))


def machine(threads: int) -> str:
    """Cores, threads and versions in one line."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("torch", "transformers", "trl"))
    return f"{platform.machine()}, {cores} cores, {threads} threads, Python {platform.python_version()}, {versions}"
