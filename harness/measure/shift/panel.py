"""The shift panel of a run: after every stage, how far the model is from the untouched one and from the row before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cl_bench.harness.cache import Cache
from cl_bench.harness.generation.batches import BatchLedger
from cl_bench.harness.measure.shift.answers import Answers, Completions, Fingerprint
from cl_bench.harness.measure.shift.artefacts import artefact_records
from cl_bench.harness.measure.shift.contexts import LONGEST_ANSWER, PromptSet, PromptSets, as_plain
from cl_bench.harness.measure.shift.distributions import CURRENT, Stance, distribution_records
from cl_bench.harness.measure.shift.records import BASE, PREVIOUS, Against, Record
from cl_bench.harness.measure.shift.responses import Responses, drift_records
from cl_bench.harness.measure.shift.trained import Reader, own_answers, training_records
from cl_bench.harness.measure.shift.weights import weight_records
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.harness.spec import RunSpec
from cl_bench.methods.training.trained import TrainedRow

SHIFT_VERSION = 2
_SHORTEST_SPECIAL = 3
"""Characters of a special token from which its text in an answer is no accident."""


class ShiftMeter:
    """Measures one run's stages.

    Of each model: one sampling pass (none where the cache has the answers of the same weights), and one forward pass
    over the answers that concern it. The answers to the next stage's prompts are drawn with a stage's own, so that the
    next stage has them from the model it started from; a resumed run draws the same anew.
    """

    def __init__(
        self,
        spec: RunSpec,
        learned: Sequence[Sequence[str]],
        sets: PromptSets,
        responses: Callable[[int], Responses],
        cache: Cache | None = None,
        fingerprint: Fingerprint | None = None,
    ) -> None:
        """Start without answers.

        Args:
            spec: The run.
            learned: Columns that each stage trains on, in order.
            sets: The prompts.
            responses: The stored answers of a row by column, by its place in the run (0: the untouched model).
            cache: Where answers are kept, or None.
            fingerprint: Gives the hashes of weights and tokenizer of the model after a stage; None keeps nothing.
        """
        self._learned, self._sets, self._responses = [tuple(names) for names in learned], sets, responses
        self._answers = Answers(spec, cache, fingerprint)
        self._latest: tuple[int, dict[str, Completions]] = 0, {}

    def measure(
        self,
        index: int,
        base: ChatModel,
        previous: ChatModel,
        current: ChatModel,
        trained: Sequence[TrainedRow] = (),
        batches: BatchLedger | None = None,
    ) -> dict[str, Any]:
        """Content of ``shift.json``; leaves no trace in the models.

        Args:
            index: Place of the stage in the run, from 1.
            base: The untouched model.
            previous: The model before the stage; the base in the first.
            current: The model after the stage.
            trained: A sample of what the stage trained on; empty where the method kept none.
            batches: Where finished batches are kept for a process that takes over, or None.
        """
        new, general = self._sets.new_task(base, self._learned[index - 1]), self._sets.general(base)
        training = self._sets.training(base, index)
        sets = [new, general, training]
        drawn = self._current(index, current, [new, general], batches)
        models = {"base": base, CURRENT: current}
        answers = {"base": self._answers.of_base(base, sets, batches), CURRENT: drawn}
        if index > 1:
            models["previous"], answers["previous"] = previous, self._previous(index, previous, sets, batches)
        self._latest = index, drawn
        earlier: dict[Against, str] = {BASE: "base", PREVIOUS: "base" if index == 1 else "previous"}
        readers = [
            Reader(against, models[name], own_answers(training, answers[name][training.key]))
            for against, name in earlier.items()
        ]
        records = [
            *distribution_records(Stance(models, answers), [new, general]),
            *training_records(trained, readers, self._sets.trained_rows),
            *_weights(models, earlier, current),
            *self._text_records(index, current),
        ]
        return document(records, [new, general, training])

    def _current(
        self, index: int, model: ChatModel, sets: list[PromptSet], batches: BatchLedger | None
    ) -> dict[str, Completions]:
        """The model's answers to this stage's prompts, drawn together with those that the next stage needs."""
        asked = list(sets)
        if index < len(self._learned):
            asked += [self._sets.new_task(model, self._learned[index]), self._sets.training(model, index + 1)]
        return self._answers.after_stage(index, model, list({one.key: one for one in asked}.values()), batches)

    def _previous(
        self, index: int, model: ChatModel, sets: Sequence[PromptSet], batches: BatchLedger | None
    ) -> dict[str, Completions]:
        """The previous model's answers: those drawn after its own stage, where this process drew them."""
        known = self._latest[1] if self._latest[0] == index - 1 else {}
        missing = [one for one in sets if one.key not in known]
        return {**known, **self._answers.after_stage(index - 1, model, missing, batches)}

    def _text_records(self, index: int, model: ChatModel) -> list[Record]:
        after = self._responses(index)
        earlier: dict[Against, Responses] = {BASE: self._responses(0)}
        earlier[PREVIOUS] = earlier[BASE] if index == 1 else self._responses(index - 1)
        special = [token for token in model.tokenizer.all_special_tokens if len(token) >= _SHORTEST_SPECIAL]
        drifts = [record for against, before in earlier.items() for record in drift_records(before, after, against)]
        return [*drifts, *artefact_records(after, earlier, special)]


def _weights(models: Mapping[str, ChatModel], earlier: Mapping[Against, str], current: ChatModel) -> list[Record]:
    records: dict[str, list[Record]] = {}
    for against, name in earlier.items():
        if name not in records:  # in the first stage both are the untouched model
            records[name] = weight_records(models[name].model, current.model, against)
    return [replace(record, against=against) for against, name in earlier.items() for record in records[name]]


def document(records: Sequence[Record], sets: Sequence[PromptSet]) -> dict[str, Any]:
    """``shift.json`` from its records, the first of which is the primary one: forward KL on the new task."""
    measures = [record.to_json() for record in records]
    return {
        "schema_version": SHIFT_VERSION,
        "forward_kl_trained": measures[0]["value"],
        "primary": measures[0],
        "longest_answer": LONGEST_ANSWER,
        "prompt_sets": {one.name: as_plain(one) for one in sets},
        "measures": measures,
    }
