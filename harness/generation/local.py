"""The local sampler: decodes with the model in this process, one generator a row, one prefill a distinct prompt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from cl_bench.harness.errors import UsageError
from cl_bench.harness.generation.base import Completion, GenerationSettings, Prompt, Sampler
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.harness.seeds import row_uniforms

if TYPE_CHECKING:
    from transformers import DynamicCache

    from cl_bench.harness.generation.batches import KeptBatches

_KIND = "completions"
_SLACK = 16
"""Tokens decoded beyond the bytes of the longest stop string: special tokens are no text."""
_COMPACT_BELOW = 0.75
"""Share of unfinished rows under which finished ones are dropped from the batch."""


@dataclass(slots=True)
class _Row:
    """One row in flight. ``index`` is its place in the caller's list."""

    index: int
    prompt: Prompt
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    ended: str = "length"
    stop_seen: bool = False


class LocalSampler(Sampler):
    """Samples with a model in this process.

    In fp32 the tokens of a row depend on the row alone: each row draws from its own generator by inverse CDF, whatever
    its neighbours, the batch size or the order. Rows are decoded in buckets of similar prompt length; finished rows are
    dropped; rows with equal prompts share one prefill.
    """

    def __init__(self, model: ChatModel, autocast: torch.dtype | None = None, kept: KeptBatches | None = None) -> None:
        """Wrap a model.

        Args:
            model: The model; its train/eval mode is restored after each call.
            autocast: Compute format of the forward passes; None is the weights' own (fp32).
            kept: Where finished batches come from, and go to; None for a model whose weights change.
        """
        self.kept = kept
        self._chat = model
        self._ends = model.end_ids
        self._autocast = autocast
        self.context_length = model.context_length

    def generate(self, prompts: Sequence[Prompt], settings: GenerationSettings) -> list[Completion]:
        """One completion per prompt, in order. Raises ``UsageError`` for a prompt that does not fit the context."""
        for prompt in prompts:
            if not self.fits(len(prompt.ids), settings):
                raise UsageError(
                    f"a prompt of {len(prompt.ids)} tokens plus {settings.max_new_tokens} new ones does not fit the"
                    f" context of {self.context_length} tokens of {self._chat.name}",
                    hint="shorten the prompt, lower max_new_tokens, or use a model with a longer context",
                )
        rows = [_Row(i, prompt) for i, prompt in enumerate(prompts)]
        # Equal prompts become neighbours, so that they share a prefill.
        order = sorted(rows, key=lambda r: (len(r.prompt.ids), r.prompt.ids, r.index))
        with _inference(self._chat.model, self._autocast):
            for start in range(0, len(order), settings.batch_size):
                self._batch(order[start : start + settings.batch_size], settings)
        return [self._finish(row, settings) for row in rows]

    def _batch(self, rows: list[_Row], settings: GenerationSettings) -> None:
        """Decode a batch, or take it over from an earlier process."""
        if self.kept is None:
            return self._decode(rows, settings)
        asked = [asdict(settings), [[row.prompt.ids, row.prompt.seed] for row in rows]]
        stored = self.kept.get(_KIND, asked)
        if stored is None:
            self._decode(rows, settings)
            self.kept.put(_KIND, asked, [[row.ids, row.logprobs, row.ended] for row in rows])
            return None
        for row, (ids, logprobs, ended) in zip(rows, stored, strict=True):
            row.ids, row.logprobs, row.ended = ids, logprobs, ended
        return None

    def _decode(self, rows: list[_Row], settings: GenerationSettings) -> None:
        device = self._chat.model.device
        uniforms = None
        if settings.temperature > 0:
            uniforms = row_uniforms([row.prompt.seed for row in rows], settings.max_new_tokens).to(device)
        cache, logits, mask = self._prefill(rows)
        live = list(range(len(rows)))
        for step in range(settings.max_new_tokens):
            draws = None if uniforms is None else uniforms[live, step]
            tokens, logprobs = _choose(logits, settings.temperature, draws)
            self._record([rows[i] for i in live], tokens.tolist(), logprobs.tolist(), settings)
            going = [k for k, i in enumerate(live) if rows[i].ended == "length"]
            if not going or step + 1 == settings.max_new_tokens:
                return
            if len(going) < _COMPACT_BELOW * len(live):
                keep = torch.tensor(going, device=device)
                cache.batch_select_indices(keep)
                tokens, mask = tokens[keep], mask[keep]
                live = [live[k] for k in going]
            mask = torch.cat([mask, mask.new_ones(len(mask), 1)], dim=1)
            logits = self._forward(tokens[:, None], mask, cache)

    def _prefill(self, rows: list[_Row]) -> tuple[DynamicCache, Tensor, Tensor]:
        """Cache, last logits [B, V] and attention mask [B, L] of left-padded prompts; equal prompts computed once."""
        device = self._chat.model.device
        distinct: list[tuple[int, ...]] = []
        repeats: list[int] = []
        for row in rows:
            if distinct and distinct[-1] == row.prompt.ids:
                repeats[-1] += 1
            else:
                distinct.append(row.prompt.ids)
                repeats.append(1)
        longest = max(len(ids) for ids in distinct)
        ids = torch.full((len(distinct), longest), self._chat.pad_id, device=device)
        mask = torch.zeros_like(ids)
        for i, prompt in enumerate(distinct):
            ids[i, longest - len(prompt) :] = torch.tensor(prompt, device=device)
            mask[i, longest - len(prompt) :] = 1
        from transformers import DynamicCache

        cache = DynamicCache()
        logits = self._forward(ids, mask, cache)
        if len(distinct) < len(rows):
            spread = torch.repeat_interleave(
                torch.arange(len(distinct), device=device), torch.tensor(repeats, device=device)
            )
            cache.batch_select_indices(spread)
            logits, mask = logits[spread], mask[spread]
        return cache, logits, mask

    def _forward(self, ids: Tensor, mask: Tensor, cache: DynamicCache) -> Tensor:
        positions = (mask.cumsum(1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        output = self._chat.model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            cache=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        logits: Tensor = output.logits[:, -1].float()
        return logits

    def _record(self, rows: list[_Row], tokens: list[int], logprobs: list[float], settings: GenerationSettings) -> None:
        for row, token, logprob in zip(rows, tokens, logprobs, strict=True):
            if row.ended != "length":
                continue
            row.ids.append(token)
            row.logprobs.append(logprob)
            if token in self._ends:
                row.ended = "eos"
            elif settings.stop and self._stopped(row, settings.stop):
                row.ended = "stop"

    def _stopped(self, row: _Row, stops: tuple[str, ...]) -> bool:
        # Decoding the whole row at every token would take time quadratic in its length. A stop string has been in the
        # tail when its last token came; it counts when the stripped text has it, which can be some tokens later.
        if not row.stop_seen:
            tail = row.ids[-(max(len(stop.encode()) for stop in stops) + _SLACK) :]
            text = str(self._chat.tokenizer.decode(tail, skip_special_tokens=True))
            row.stop_seen = any(stop in text for stop in stops)
        return row.stop_seen and any(stop in self._chat.decode(row.ids) for stop in stops)

    def _finish(self, row: _Row, settings: GenerationSettings) -> Completion:
        text = self._chat.decode(row.ids)
        if row.ended == "stop":
            text = text[: min(text.index(stop) for stop in settings.stop if stop in text)].strip()
        return Completion(tuple(row.ids), text, row.ended, tuple(row.logprobs))  # type: ignore[arg-type]


def _choose(logits: Tensor, temperature: float, draws: Tensor | None) -> tuple[Tensor, Tensor]:
    """Next tokens [B] and their log-probabilities [B]; greedy where ``draws`` is None, else by inverse CDF."""
    if draws is None:
        tokens = logits.argmax(-1)
        logprobs = logits.log_softmax(-1)
    else:
        logprobs = (logits / temperature).log_softmax(-1)
        cdf = logprobs.double().exp().cumsum(-1)
        # The last entry is one up to rounding; scaling keeps a draw near one inside the vocabulary.
        tokens = torch.searchsorted(cdf, (draws * cdf[:, -1])[:, None], right=True)[:, 0]
        tokens = tokens.clamp(max=logits.shape[-1] - 1)
    return tokens, logprobs.gather(-1, tokens[:, None])[:, 0]


@contextmanager
def _inference(model: torch.nn.Module, autocast: torch.dtype | None) -> Iterator[None]:
    was_training = model.training
    model.eval()
    device_type = next(model.parameters()).device.type
    cast = torch.autocast(device_type, dtype=autocast) if autocast is not None else nullcontext()
    try:
        with torch.inference_mode(), cast:
            yield
    finally:
        model.train(was_training)
