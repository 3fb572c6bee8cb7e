"""Our models as lm-eval sees them: a ``TemplateLM`` on the project's sampler and continuation scorer."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cl_bench.harness.generation.base import Completion, GenerationSettings, Prompt, Sampler
from cl_bench.harness.measure.loglikelihood import ContinuationScore, loglikelihoods
from cl_bench.tasks.scoring.reading import without_thoughts

if TYPE_CHECKING:
    from lm_eval.api.instance import Instance
    from lm_eval.api.model import TemplateLM

    from cl_bench.harness.models.chat_model import ChatModel

DEFAULT_MAX_NEW_TOKENS = 256
"""lm-eval's own limit where a task names none."""
TOO_LONG = (-1e30, False)
"""Answer to a request that does not fit the context; its row is marked as skipped."""
_RowKey = tuple[str | None, int | None]


@dataclass(slots=True)
class RowRecord:
    """What happened to one document, which lm-eval's own samples do not say.

    Attributes:
        tokens: Tokens generated.
        computed: Tokens that went through the model: contexts with continuations, prompts with answers.
        ended: How the completion ended; "skipped" where a request does not fit the model's context.
        response: The whole answer, of which lm-eval is given what follows a reasoning block; None for a request whose
            answer is not generated.
    """

    tokens: int = 0
    computed: int = 0
    ended: str | None = None
    response: str | None = None


@dataclass(frozen=True, slots=True)
class Drawing:
    """How answers are sampled.

    Attributes:
        temperature: Logits are divided by it.
        seeds: Seed of each row's generator, by benchmark and place among the chosen rows.
    """

    temperature: float
    seeds: Mapping[str, Sequence[int]]


class SamplerLM:
    """The methods that lm-eval calls; mixed with its ``TemplateLM`` by ``lm_eval_model``.

    A request that does not fit the context is never truncated: it is answered with a placeholder and its document is
    marked "skipped" in ``records``, so that the caller leaves it out of every mean. The class is free of lm-eval, which
    is imported only when a suite runs.
    """

    backend = "causal"

    def __init__(self, model: ChatModel, sampler: Sampler, batch_size: int) -> None:
        """Wrap a model.

        Args:
            model: The model.
            sampler: A sampler built around it.
            batch_size: Rows decoded, or continuations scored, together.
        """
        super().__init__()
        self.chat, self.sampler, self.batch_size = model, sampler, batch_size
        self.tokenizer = model.tokenizer
        self.records: dict[_RowKey, RowRecord] = {}
        self.drawing: Drawing | None = None
        self._encoded: dict[tuple[str, bool | None], list[int]] = {}

    def use(self, model: ChatModel, sampler: Sampler) -> None:
        """Go on with another model of the same tokenizer; what was tokenised stays known, records are dropped."""
        self.chat, self.sampler = model, sampler
        self.records = {}
        self.drawing = None

    def draw(self, drawing: Drawing) -> None:
        """Answer from now on with samples in place of greedy decoding; records are dropped."""
        self.records, self.drawing = {}, drawing

    @property
    def eot_token_id(self) -> int:
        """Id of the end token; also the context of a text that has none."""
        return self.chat.end_id

    @property
    def max_length(self) -> int:
        """Longest sequence, in tokens."""
        return self.sampler.context_length

    @property
    def tokenizer_name(self) -> str:
        """Names tokenizer and chat template for lm-eval's request keys."""
        template = f"{self.tokenizer.chat_template}{self.chat.thinking}"
        return f"{self.chat.name.replace('/', '__')}-{hashlib.sha256(template.encode()).hexdigest()[:16]}"

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        """Render a chat as text; without a generation prompt the last message is left open."""
        return self.chat.render(chat_history, open_answer=not add_generation_prompt)

    def tok_encode(self, string: str, add_special_tokens: bool | None = None, **_: Any) -> list[int]:
        """Token ids; a text that begins with the start token gets no second one."""
        key = (string, add_special_tokens)
        if key not in self._encoded:
            if add_special_tokens is None:
                self._encoded[key] = list(self.chat.text_ids(string))
            else:
                self._encoded[key] = list(self.tokenizer(string, add_special_tokens=add_special_tokens)["input_ids"])
        return self._encoded[key]

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = True) -> list[tuple[float, bool]]:
        """Log-probability of each continuation and whether greedy decoding gives it."""
        pairs = [self._pair(*request.args[:2]) for request in requests]
        fits = [len(context) + len(continuation) <= self.max_length for context, continuation in pairs]
        scores = iter(self._scores([pair for pair, fit in zip(pairs, fits, strict=True) if fit]))
        results: list[tuple[float, bool]] = []
        for request, (context, continuation), fit in zip(requests, pairs, fits, strict=True):
            if fit:
                score = next(scores)
                results.append((score.logprob, score.is_greedy))
                self._record(request).computed += len(context) + len(continuation)
            else:
                self._record(request).ended = "skipped"
                results.append(TOO_LONG)
        return results

    def _loglikelihood_tokens(
        self, requests: Sequence[tuple[Any, list[int], list[int]]], **_: Any
    ) -> list[tuple[float, bool]]:
        scores = self._scores([(context, rest) for _, context, rest in requests])
        return [(score.logprob, score.is_greedy) for score in scores]

    def _scores(self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> list[ContinuationScore]:
        return loglikelihoods(self.chat, pairs, self.batch_size, self.sampler.kept)

    def _pair(self, context: str, continuation: str) -> tuple[list[int], list[int]]:
        if context:
            pair: tuple[list[int], list[int]] = self._encode_pair(context, continuation)  # type: ignore[attr-defined]
            return pair
        ids = self.tok_encode(continuation, add_special_tokens=False)
        return ([self.eot_token_id], ids) if ids[:1] != [self.eot_token_id] else (ids[:1], ids[1:])

    def loglikelihood_rolling(self, requests: list[Instance], disable_tqdm: bool = True) -> list[float]:
        """Log-probability of whole texts, in windows of the context length where a text is longer."""
        from lm_eval.utils import get_rolling_token_windows, make_disjoint_window

        totals: list[float] = []
        for request in requests:
            windows = get_rolling_token_windows(
                token_list=self.tok_encode(request.args[0], add_special_tokens=False),
                prefix_token=self.eot_token_id,
                # One less: an input of the full length and the token it predicts are one longer than the context.
                max_seq_len=self.max_length - 1,
                context_len=1,
            )
            pairs = [make_disjoint_window(window) for window in windows]
            totals.append(sum(score.logprob for score in self._scores(pairs)))
        return totals

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = True) -> list[str]:
        """Complete each context until one of its stop strings, the end token or the limit."""
        texts = [""] * len(requests)
        groups: dict[GenerationSettings, list[int]] = {}
        for index, request in enumerate(requests):
            groups.setdefault(self._settings(request.args[1]), []).append(index)
        for settings, members in groups.items():
            prompts = {index: tuple(self.tok_encode(requests[index].args[0])) for index in members}
            fitting = [index for index in members if self.sampler.fits(len(prompts[index]), settings)]
            for index in set(members) - set(fitting):
                self._record(requests[index]).ended = "skipped"
            asked = [Prompt(prompts[index], seed=self._seed(requests[index], index)) for index in fitting]
            completions = self._complete(asked, settings)
            for index, completion in zip(fitting, completions, strict=True):
                record = self._record(requests[index])
                record.tokens += len(completion.ids)
                record.computed += len(prompts[index]) + len(completion.ids)
                record.ended, record.response = completion.ended, completion.text
                texts[index] = without_thoughts(completion.text)
        return texts

    def _complete(self, prompts: list[Prompt], settings: GenerationSettings) -> list[Completion]:
        return self.sampler.generate(prompts, settings) if prompts else []

    def _settings(self, kwargs: dict[str, Any]) -> GenerationSettings:
        until = kwargs.get("until") or ()
        asked_for = float(kwargs.get("temperature", 1.0)) if kwargs.get("do_sample", False) else 0.0
        return GenerationSettings(
            max_new_tokens=int(kwargs.get("max_gen_toks", kwargs.get("max_tokens", DEFAULT_MAX_NEW_TOKENS))),
            temperature=self.drawing.temperature if self.drawing is not None else asked_for,
            batch_size=self.batch_size,
            stop=(until,) if isinstance(until, str) else tuple(until),
        )

    def _seed(self, request: Instance, index: int) -> int:
        return index if self.drawing is None else self.drawing.seeds[str(request.task_name)][int(request.doc_id or 0)]

    def _record(self, request: Instance) -> RowRecord:
        return self.records.setdefault((request.task_name, request.doc_id), RowRecord())


def lm_eval_model(model: ChatModel, sampler: Sampler, batch_size: int) -> TemplateLM:
    """A model for ``lm_eval.evaluate``: ``SamplerLM`` joined with lm-eval's ``TemplateLM``.

    Args:
        model: The model.
        sampler: A sampler built around it.
        batch_size: Rows decoded, or continuations scored, together.
    """
    from lm_eval.api.model import TemplateLM

    joined = type("SamplerLM", (SamplerLM, TemplateLM), {"__doc__": SamplerLM.__doc__})
    lm: TemplateLM = joined(model, sampler, batch_size)
    return lm
