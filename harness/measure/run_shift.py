"""How far a stage moved the model: KL on the base's own answers, on the model's own and on those of the row before."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from cl_bench.harness.context import sampler_for
from cl_bench.harness.generation.base import Prompt
from cl_bench.harness.measure.evaluation import no_trace, with_system_prompt
from cl_bench.harness.measure.run_evaluation import TaskColumn, decoded_together
from cl_bench.harness.measure.shift import TokenRow, measure_kl
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.harness.seeds import row_seed
from cl_bench.harness.spec import RunSpec

Rows = dict[str, list[TokenRow]]
"""Prompt and completion ids by column."""
SHIFT_VERSION = 1
_ROWS = 64
"""Prompts of each task that shift is measured on: the first of the column's fixed rows."""
_LONGEST = 128
"""Tokens of a sample at most: a mean per token needs no longer ones, and at temperature 1 a small model rarely ends."""


class ShiftMeter:
    """Measures the shift of one run's stages; the base's samples are drawn once."""

    def __init__(self, spec: RunSpec, columns: Sequence[TaskColumn]) -> None:
        """Start without samples.

        Args:
            spec: The run.
            columns: The sequence's columns.
        """
        self._spec, self._columns = spec, columns
        self._base_rows: Rows | None = None
        self._latest: tuple[int, Rows] | None = None

    def measure(
        self, index: int, base: ChatModel, previous: ChatModel, current: ChatModel, trained: Sequence[str]
    ) -> dict[str, Any]:
        """Content of ``shift.json``.

        Args:
            index: Place of the stage in the run, from 1.
            base: The untouched model.
            previous: The model before the stage; the base in the first.
            current: The model after the stage.
            trained: Columns that the stage trained on: forward KL on their prompts is the primary number (RL's Razor).

        Returns:
            ``forward_kl`` (KL(base || current) on the base's samples) and ``reverse_kl`` (KL(current || base) on the
            current model's samples), in nats a token, by column; ``forward_kl_trained``: the mean over trained columns;
            ``previous_forward_kl``: KL(previous || current) on the previous model's samples, for the trained columns.
        """
        if self._base_rows is None:
            self._base_rows = sampled_rows(base, self._spec, self._columns)
        own = sampled_rows(current, self._spec, self._columns)
        forward = _kl(base, current, self._base_rows)
        since_previous = {name: forward[name] for name in trained if name in forward}
        if index > 1:
            since_previous = _kl(previous, current, self._rows_before(index, previous, trained))
        self._latest = index, own
        values = [forward[name]["token_mean"] for name in trained if name in forward]
        known = [float(value) for value in values if value is not None]
        return {
            "schema_version": SHIFT_VERSION,
            "unit": "nats per token",
            "rows": _ROWS,
            "longest_sample": _LONGEST,
            "forward_kl": forward,
            "reverse_kl": _kl(current, base, own),
            "previous_forward_kl": since_previous,
            "forward_kl_trained": sum(known) / len(known) if known else None,
        }

    def _rows_before(self, index: int, previous: ChatModel, trained: Sequence[str]) -> Rows:
        """The previous model's samples for the trained columns: those drawn after its own stage, where at hand."""
        columns = [item for item in self._columns if item.column.name in trained]
        if self._latest is None or self._latest[0] != index - 1:
            return sampled_rows(previous, self._spec, columns)
        return {item.column.name: self._latest[1][item.column.name] for item in columns}


def sampled_rows(model: ChatModel, spec: RunSpec, columns: Sequence[TaskColumn]) -> Rows:
    """The model's answers at temperature 1 to each column's first prompts; seeds do not depend on the run's."""
    sampler = sampler_for(model, spec.precision)
    rows: Rows = {item.column.name: [] for item in columns}
    for greedy, items in decoded_together(columns, spec):
        longest = min(greedy.max_new_tokens, _LONGEST)
        settings = dataclasses.replace(greedy, max_new_tokens=longest, temperature=1.0, stop=())
        asked = [(item.column.name, prompt) for item in items for prompt in _prompts(model, spec, item)]
        asked = [(name, prompt) for name, prompt in asked if sampler.fits(len(prompt.ids), settings)]
        with no_trace(model):
            completions = sampler.generate([prompt for _, prompt in asked], settings)
        for (name, prompt), completion in zip(asked, completions, strict=True):
            rows[name].append((prompt.ids, completion.ids))
    return rows


def _prompts(model: ChatModel, spec: RunSpec, item: TaskColumn) -> Iterator[Prompt]:
    for example in item.examples[:_ROWS]:
        ids = model.prompt_ids(with_system_prompt(example.messages, spec.evaluation.system_prompt))
        yield Prompt(ids, row_seed(0, item.column.name, "shift", example.id, 0, 0))


def _kl(first: ChatModel, second: ChatModel, rows: Rows) -> dict[str, dict[str, float | int | None]]:
    return {name: dict(measure_kl(first, second, own)) for name, own in rows.items()}
