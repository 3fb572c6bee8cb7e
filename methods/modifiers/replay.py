"""Replay: rows of earlier stages, or of the untouched model's own writing, among those of the new one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import zip_longest
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

from cl_bench.harness.errors import DataError, UsageError
from cl_bench.harness.files import content_hash
from cl_bench.harness.generation.base import Prompt
from cl_bench.harness.jsonl import read_jsonl
from cl_bench.methods.base import Context, Fidelity, MethodSettings, Modifier, Stage, Student, setting
from cl_bench.methods.training.settings import rollouts
from cl_bench.tasks.base import Example, Score

PSEUDO = "pseudo-replay"
"""Task name of rows that the untouched model wrote for prompts of a file."""


class ReplaySettings(MethodSettings):
    """Settings of replay."""

    share: float = setting(
        0.1, "Share of replayed rows among a stage's training rows.", unit="fraction", source="cl-bench",
        inferred=True, gt=0, lt=1,
    )  # fmt: skip
    per_stage: int = setting(
        200, "Rows kept of each stage, drawn evenly.", unit="rows", source="cl-bench", inferred=True, ge=1
    )
    budget: Literal["inside", "on_top"] = setting(
        "inside",
        "inside: replayed rows take the place of as many new ones, so that no step is added; on_top: rows are added.",
        unit="choice",
        source="cl-bench",
        inferred=True,
    )
    responses: Literal["demonstration", "base"] = setting(
        "demonstration",
        "Responses of replayed rows: their demonstrations, or the untouched model's own (pseudo-replay).",
        unit="choice",
        source="pseudo-replay: Robins (1995)",
    )
    prompts: str = setting(
        "",
        "For responses=base: a file of JSON lines with a prompt each, replayed from the first stage on; empty: the "
        "prompts of earlier stages.",
        unit="path",
        source="cl-bench",
        inferred=True,
    )
    max_completion_length: int = setting(
        256, "Longest response of the untouched model.", unit="tokens", source="cl-bench", inferred=True, ge=1
    )


class Replay(Modifier):
    """A share of every stage's rows comes from a buffer with an equal number of training rows of each earlier stage.

    The method's own objective is taken on the mixture. Nothing that is evaluated enters the buffer: it holds training
    rows alone. In pseudo-replay the untouched model answers at temperature 1.
    """

    name: ClassVar[str] = "replay"
    paper: ClassVar[str] = "Robins (1995); Rolnick et al. (1811.11682)"
    fidelity: ClassVar[Fidelity] = Fidelity.PAPER_FORMULA
    checked: ClassVar[str] = "buffers by hand"
    Settings: ClassVar[type[MethodSettings]] = ReplaySettings

    def __init__(self, settings: MethodSettings | None = None) -> None:
        """Build with settings (defaults where None); raises ``UsageError`` for prompts without responses=base."""
        super().__init__(settings)
        if self._own.prompts and self._own.responses != "base":
            raise UsageError(
                "modifier.replay.prompts has no responses of its own", hint="--set modifier.replay.responses=base"
            )
        self._buffer: list[list[Example]] = []
        self._seed = 0

    @property
    def _own(self) -> ReplaySettings:
        return cast(ReplaySettings, self.settings)

    @property
    def replaces_rows(self) -> bool:
        """Whether the step budget stays."""
        return self._own.budget == "inside"

    def before_stage(self, student: Student, stage: Stage, context: Context) -> None:
        """Fill the buffer from the file of prompts, where there is one and the buffer is empty."""
        self._seed = context.seed
        if self._own.prompts and not self._buffer:
            found = drawn(read_prompts(Path(self._own.prompts)), self._own.per_stage, context.seed)
            self._buffer.append(answered(found, context, self._own.max_completion_length))

    def examples(self, stage: Stage) -> Iterable[Example]:
        """An equal number of rows of each earlier stage, as many as the share asks for and the buffer holds."""
        own, share = len(stage.examples), self._own.share
        wanted = round(own * share if self.replaces_rows else own * share / (1 - share))
        return in_turn([drawn(rows, len(rows), f"{self._seed}/{stage.name}") for rows in self._buffer], wanted)

    def scorers(self) -> Mapping[str, Callable[[Example, str], Score]]:
        """Of rows from a file of prompts: right is what the untouched model wrote."""
        return {PSEUDO: _same_text} if self._own.prompts else {}

    def after_stage(self, student: Student, stage: Stage, context: Context) -> None:
        """Put rows of this stage into the buffer."""
        if self._own.prompts:
            return
        held = {example.key for rows in self._buffer for example in rows}
        new = drawn([e for e in stage.examples if e.key not in held], self._own.per_stage, context.seed)
        if self._own.responses == "base":
            new = answered(new, context, self._own.max_completion_length)
        self._buffer.append(new)

    def state_dict(self) -> dict[str, Any]:
        """The buffer."""
        return {"buffer": [[asdict(example) for example in rows] for rows in self._buffer]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Inverse of ``state_dict``."""
        self._buffer = [[_example(row) for row in rows] for rows in state["buffer"]]


def drawn(examples: Sequence[Example], count: int, seed: object) -> list[Example]:
    """That many examples at most, evenly drawn, in an order that the seed decides."""
    return sorted(examples, key=lambda example: content_hash([str(seed), *example.key]))[:count]


def in_turn(columns: Sequence[Sequence[Example]], count: int) -> list[Example]:
    """The first ``count`` examples of the columns' rows, one of each column in turn."""
    return [example for row in zip_longest(*columns) for example in row if example is not None][:count]


def answered(examples: Sequence[Example], context: Context, max_completion_length: int) -> list[Example]:
    """The examples with what the untouched model answers; those that do not fit or are cut are left out."""
    base, how = context.original(), rollouts(max_completion_length, 1.0, context)
    sampler = context.sampler(base, fixed=True)
    asked = [(example, base.prompt_ids(example.messages)) for example in examples]
    fitting = [(example, ids) for example, ids in asked if sampler.fits(len(ids), how)]
    prompts = [Prompt(ids, context.row_seed("pseudo-replay", example.id)) for example, ids in fitting]
    written = sampler.generate(prompts, how) if prompts else []
    return [
        Example(e.task, e.id, e.messages, completion.text, e.answer or completion.text, e.choices, e.meta)
        for (e, _), completion in zip(fitting, written, strict=True)
        if completion.ended != "length" and completion.text
    ]


def read_prompts(file: Path) -> list[Example]:
    """The prompts of a file of JSON lines, each an object with the text ``prompt``; ids are hashes of the text.

    Raises:
        DataError: The file cannot be read, a line is no JSON object with a prompt, an ``id`` is there that is no string
            or comes twice, or a prompt is empty.
    """
    texts = dict.fromkeys(str(row["prompt"]) for row in read_jsonl(file, {"prompt": "str"}))
    if not all(text.strip() for text in texts):
        raise DataError(f"{file}: a prompt is empty", hint='modifier.replay.prompts names JSON lines {"prompt": TEXT}')
    return [Example(PSEUDO, content_hash([text])[:16], ({"role": "user", "content": text},)) for text in texts]


def _same_text(example: Example, text: str) -> Score:
    return Score(text.strip() == example.demonstration, text.strip() or None, True)


def _example(row: Mapping[str, Any]) -> Example:
    choices = None if row["choices"] is None else tuple(row["choices"])
    return Example(**{**row, "messages": tuple(row["messages"]), "choices": choices})
