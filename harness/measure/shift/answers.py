"""Answers at temperature 1 to the fixed prompts: drawn once for the same weights, and kept in the cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cl_bench.harness.cache import Cache, CacheKey, require_identities
from cl_bench.harness.context import BACKEND, backend_version, sampler_for
from cl_bench.harness.files import content_hash
from cl_bench.harness.generation.base import GenerationSettings, Prompt
from cl_bench.harness.generation.batches import BatchLedger
from cl_bench.harness.measure.evaluation import no_trace
from cl_bench.harness.measure.shift.contexts import PromptSet, ShiftPrompt
from cl_bench.harness.seeds import row_seed
from cl_bench.harness.spec import RunSpec

if TYPE_CHECKING:
    from cl_bench.harness.models.chat_model import ChatModel

Completions = tuple[tuple[int, ...], ...]
"""Completion ids by prompt, in a set's order; empty where a prompt leaves no room for an answer."""
Fingerprint = Callable[[int], tuple[str, str]]
"""Gives the hashes of weights and tokenizer of the model after a stage (0: the untouched model)."""
_KIND = "answers"


@dataclass(frozen=True, slots=True)
class AnswersKey(CacheKey):
    """Key of a model's answers to one set of prompts.

    Attributes:
        weights: Hash of the bytes of all weights.
        tokenizer: Hash of the tokenizer's files.
        prompts: Hash of the prompts' token ids, limits and seeds, in order.
        generation: Everything else that decides an answer.
        dtype: Numeric format of the forward passes.
        backend: Implementation that decodes.
        backend_version: Versions of the libraries that compute.
        batch_plan: What decides which rows are computed together.
    """

    weights: str
    tokenizer: str
    prompts: str
    generation: Mapping[str, Any]
    dtype: str
    backend: str
    backend_version: str
    batch_plan: Mapping[str, Any]

    def __post_init__(self) -> None:
        """Refuse empty identities."""
        require_identities(self, ("weights", "tokenizer", "prompts"))


class Answers:
    """Draws answers for one run: temperature 1, no top-p, no top-k, seeds that do not depend on the run's."""

    def __init__(self, spec: RunSpec, cache: Cache | None, fingerprint: Fingerprint | None) -> None:
        """Answers go to the cache, and come from it, where both are given."""
        self._spec, self._cache, self._fingerprint = spec, cache, fingerprint
        self._base: dict[str, Completions] = {}

    def draw(
        self,
        model: ChatModel,
        sets: Sequence[PromptSet],
        batches: BatchLedger | None = None,
        weights: str | None = None,
    ) -> dict[str, Completions]:
        """The model's answers by the sets' keys, in one pass.

        Finished batches are kept where a ledger and the hash of the model's weights are given.

        In fp32 a row's tokens do not depend on its neighbours, so all sets share batches; in other formats they do, and
        each set is decoded alone, so that its answers are the same whatever else is asked.
        """
        sampler = sampler_for(model, self._spec.precision, batches, weights)
        found: dict[str, dict[ShiftPrompt, tuple[int, ...]]] = {one.key: {} for one in sets}
        for longest, keys, prompts in self._together(sets):
            settings = self._settings(longest)
            asked = [prompt for prompt in prompts if sampler.fits(len(prompt.ids), settings)]
            with no_trace(model):
                drawn = sampler.generate([Prompt(prompt.ids, _seed(prompt)) for prompt in asked], settings)
            for key in keys:
                found[key] |= {prompt: completion.ids for prompt, completion in zip(asked, drawn, strict=True)}
        return {one.key: tuple(found[one.key].get(prompt, ()) for prompt in one.prompts) for one in sets}

    def of_base(
        self, model: ChatModel, sets: Sequence[PromptSet], batches: BatchLedger | None = None
    ) -> dict[str, Completions]:
        """The untouched model's answers, drawn or read once."""
        self._base |= self.after_stage(0, model, [one for one in sets if one.key not in self._base], batches)
        return {one.key: self._base[one.key] for one in sets}

    def after_stage(
        self, index: int, model: ChatModel, sets: Sequence[PromptSet], batches: BatchLedger | None = None
    ) -> dict[str, Completions]:
        """The answers of the model after a stage by the sets' keys, from the cache where the same weights gave them."""
        keys = {one.key: self._key(one, index, model) for one in sets}
        found = {one.key: stored for one in sets if (stored := self._read(one, keys[one.key])) is not None}
        missing = [one for one in sets if one.key not in found]
        weights = content_hash(self._fingerprint(index)) if self._fingerprint is not None else None
        drawn = self.draw(model, missing, batches, weights) if missing else {}
        for name, completions in drawn.items():
            if self._cache is not None and (key := keys[name]) is not None:
                self._cache.put_json(_KIND, key, completions)
        return found | drawn

    def _read(self, one: PromptSet, key: AnswersKey | None) -> Completions | None:
        stored = self._cache.get_json(_KIND, key) if self._cache is not None and key is not None else None
        if not isinstance(stored, list) or len(stored) != len(one.prompts):
            return None
        return tuple(tuple(ids) for ids in stored)

    def _key(self, one: PromptSet, index: int, model: ChatModel) -> AnswersKey | None:
        if self._fingerprint is None or self._cache is None:
            return None
        weights, tokenizer = self._fingerprint(index)
        return AnswersKey(
            weights=weights,
            tokenizer=tokenizer,
            prompts=content_hash([[prompt.ids, prompt.longest, _seed(prompt)] for prompt in one.prompts]),
            generation={"temperature": 1.0, "ends": sorted(model.end_ids)},
            dtype=self._spec.precision.generation,
            backend=BACKEND,
            backend_version=backend_version(str(model.model.device)),
            batch_plan={"batch_size": self._spec.evaluation_batch_size},
        )

    def _settings(self, longest: int) -> GenerationSettings:
        return GenerationSettings(longest, temperature=1.0, batch_size=self._spec.evaluation_batch_size)

    def _together(self, sets: Sequence[PromptSet]) -> list[tuple[int, list[str], list[ShiftPrompt]]]:
        """(length limit, keys of sets, distinct prompts) of what is decoded together."""
        apart = self._spec.precision.generation != "fp32"
        groups: dict[tuple[int, str], tuple[dict[str, None], dict[ShiftPrompt, None]]] = {}
        for one in sets:
            for prompt in one.prompts:
                keys, prompts = groups.setdefault((prompt.longest, one.key if apart else ""), ({}, {}))
                keys[one.key], prompts[prompt] = None, None
        return [(longest, list(keys), list(prompts)) for (longest, _), (keys, prompts) in groups.items()]


def _seed(prompt: ShiftPrompt) -> int:
    return row_seed(0, prompt.column, "shift", prompt.id, 0, 0)
