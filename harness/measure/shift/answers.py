"""Answers at temperature 1 to the fixed prompts: drawn once, the untouched model's kept in the cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cl_bench.harness.cache import Cache, CacheKey, require_identities
from cl_bench.harness.context import BACKEND, backend_version, sampler_for
from cl_bench.harness.files import content_hash
from cl_bench.harness.generation.base import GenerationSettings, Prompt
from cl_bench.harness.measure.evaluation import no_trace
from cl_bench.harness.measure.shift.contexts import PromptSet, ShiftPrompt
from cl_bench.harness.seeds import row_seed
from cl_bench.harness.spec import RunSpec

if TYPE_CHECKING:
    from cl_bench.harness.models.chat_model import ChatModel

Completions = tuple[tuple[int, ...], ...]
"""Completion ids by prompt, in a set's order; empty where a prompt leaves no room for an answer."""
Fingerprint = Callable[[], tuple[str, str]]
"""Gives the hashes of the untouched model's weights and of its tokenizer."""
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
        """Answers of the untouched model go to the cache, and come from it, where both are given."""
        self._spec, self._cache, self._fingerprint = spec, cache, fingerprint
        self._base: dict[str, Completions] = {}
        self._hashes: tuple[str, str] | None = None

    def draw(self, model: ChatModel, sets: Sequence[PromptSet]) -> dict[str, Completions]:
        """The model's answers by the sets' keys, in one pass.

        In fp32 a row's tokens do not depend on its neighbours, so all sets share batches; in other formats they do, and
        each set is decoded alone, so that its answers are the same whatever else is asked.
        """
        sampler = sampler_for(model, self._spec.precision)
        found: dict[str, dict[ShiftPrompt, tuple[int, ...]]] = {one.key: {} for one in sets}
        for longest, keys, prompts in self._together(sets):
            settings = self._settings(longest)
            asked = [prompt for prompt in prompts if sampler.fits(len(prompt.ids), settings)]
            with no_trace(model):
                drawn = sampler.generate([Prompt(prompt.ids, _seed(prompt)) for prompt in asked], settings)
            for key in keys:
                found[key] |= {prompt: completion.ids for prompt, completion in zip(asked, drawn, strict=True)}
        return {one.key: tuple(found[one.key].get(prompt, ()) for prompt in one.prompts) for one in sets}

    def of_base(self, model: ChatModel, sets: Sequence[PromptSet]) -> dict[str, Completions]:
        """The untouched model's answers, drawn or read once."""
        missing = [one for one in sets if one.key not in self._base and not self._read(one, model)]
        if missing:
            drawn = self.draw(model, missing)
            self._base |= drawn
            for one in missing:
                self._keep(one, model, drawn[one.key])
        return {one.key: self._base[one.key] for one in sets}

    def _read(self, found: PromptSet, model: ChatModel) -> bool:
        key = self._key(found, model)
        stored = self._cache.get_json(_KIND, key) if self._cache is not None and key is not None else None
        if not isinstance(stored, list) or len(stored) != len(found.prompts):
            return False
        self._base[found.key] = tuple(tuple(ids) for ids in stored)
        return True

    def _keep(self, found: PromptSet, model: ChatModel, drawn: Completions) -> None:
        key = self._key(found, model)
        if self._cache is not None and key is not None:
            self._cache.put_json(_KIND, key, drawn)

    def _key(self, found: PromptSet, model: ChatModel) -> AnswersKey | None:
        if self._fingerprint is None or self._cache is None:
            return None
        self._hashes = self._hashes or self._fingerprint()
        return AnswersKey(
            weights=self._hashes[0],
            tokenizer=self._hashes[1],
            prompts=content_hash([[prompt.ids, prompt.longest, _seed(prompt)] for prompt in found.prompts]),
            generation={"temperature": 1.0, "end": model.end_id},
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
