"""A run's recorded answers in the place of the model behind lm-eval's ``evaluate``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cl_bench.harness.measure.lm_eval_model import TOO_LONG, RowRecord
from cl_bench.tasks.scoring.reading import without_thoughts

if TYPE_CHECKING:
    from lm_eval.api.instance import Instance

Sample = Mapping[str, Any]
"""One row of a ``samples.jsonl``."""


class RecordedLM:
    """Answers each request with what the model answered when the run evaluated it; whatever the prompt."""

    rank, world_size = 0, 1
    tokenizer_name = "recorded"

    def __init__(self, samples: Mapping[str, Sequence[Sample]]) -> None:
        """Use recorded rows.

        Args:
            samples: Rows of each benchmark, in the order in which they were evaluated.
        """
        self._samples = samples
        self.records = {
            (name, place): RowRecord(tokens=row["tokens"], ended=row["ended"], response=row.get("response"))
            for name, rows in samples.items()
            for place, row in enumerate(rows)
        }

    def loglikelihood(self, requests: Sequence[Instance], disable_tqdm: bool = True) -> list[tuple[float, bool]]:
        """The recorded log-probability of each option."""
        rows = [self._row(request) for request in requests]
        return [
            TOO_LONG if row["ended"] == "skipped" else (row["loglikelihoods"][request.idx], False)
            for request, row in zip(requests, rows, strict=True)
        ]

    def generate_until(self, requests: Sequence[Instance], disable_tqdm: bool = True) -> list[str]:
        """What follows the reasoning block of each recorded response; nothing where the row was skipped."""
        return [without_thoughts(self._row(request)["response"] or "") for request in requests]

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        """The turns one after another; no model reads them."""
        return "\n".join(turn["content"] for turn in chat_history)

    def _row(self, request: Instance) -> Sample:
        return self._samples[str(request.task_name)][int(request.doc_id or 0)]
