"""Probe: the right option is the likeliest one, although the model's own answer is wrong."""

from __future__ import annotations

from collections.abc import Sequence

from cl_bench.harness.measure.items.openings import common_frame
from cl_bench.harness.measure.items.probed import Attempt, ProbeInput
from cl_bench.harness.measure.loglikelihood import loglikelihoods
from cl_bench.harness.models.chat_model import ChatModel

NAME = "option_likelihood"


def option_likelihood(given: ProbeInput) -> Attempt:
    """Rank the options in the words that the untouched model usually puts around its answer."""
    if given.scored_by_options:
        return Attempt(reason="the column is scored by the log-likelihoods of its options already")
    frame = common_frame(given.base_samples)
    right = given.column.ranks_gold_first(given.model, given.ids, frame)
    if not right:
        return Attempt(reason="its items have no options")
    return Attempt(right, details={"lead": frame.lead, "tail": frame.tail})


def likeliest(model: ChatModel, prompt: Sequence[int], candidates: Sequence[str]) -> int | None:
    """Index of the candidate that is likeliest after a prompt, by the mean over the tokens that tell them apart.

    What all candidates begin with is no evidence for any of them. A candidate's tokens end with the end token where it
    is the beginning of another one.

    Args:
        model: The model, in evaluation mode.
        prompt: Token ids of the prompt.
        candidates: Texts; two of them equal cannot be told apart.

    Returns:
        The index; None where there are not two different candidates, or where one does not fit the context.
    """
    rows = [tuple(model.tokenizer(text, add_special_tokens=False)["input_ids"]) for text in candidates]
    if len(rows) < 2 or len(set(rows)) < len(rows):
        return None
    if any(one != other and other[: len(one)] == one for one in rows for other in rows):
        rows = [(*row, model.end_id) for row in rows]
    if any(len(prompt) + len(row) > model.context_length for row in rows):
        return None
    shared = _common(rows)
    scores = loglikelihoods(model, [(tuple(prompt), row) for row in rows])
    means = [sum(score.per_token[shared:]) / len(score.per_token[shared:]) for score in scores]
    return max(range(len(means)), key=means.__getitem__)


def _common(rows: Sequence[tuple[int, ...]]) -> int:
    first, last = min(rows), max(rows)
    length = 0
    while length < min(len(first), len(last)) and first[length] == last[length]:
        length += 1
    return length
