"""Continuation scores against a plain forward pass, one request at a time."""

from __future__ import annotations

import pytest
import torch

from cl_bench.harness.errors import UsageError
from cl_bench.harness.measure.loglikelihood import ContinuationScore, loglikelihoods
from cl_bench.harness.models.chat_model import ChatModel

CONTEXTS = [(5, 6, 7), (9, 10, 11, 12, 13, 14, 15), (40,)]
REQUESTS = [
    (CONTEXTS[0], (20, 21, 22)),
    (CONTEXTS[1], (30,)),
    (CONTEXTS[0], (20, 21, 23, 24, 25)),
    (CONTEXTS[2], (50, 51)),
    (CONTEXTS[0], (28,)),
    (CONTEXTS[0], (20, 21, 22)),
    (CONTEXTS[1], (30, 31, 32, 33)),
]


def plain(model: ChatModel, context: tuple[int, ...], continuation: tuple[int, ...]) -> ContinuationScore:
    with torch.no_grad():
        logits = model.model(torch.tensor([[*context, *continuation]])).logits[0].double()
    predictions = logits[len(context) - 1 : -1].log_softmax(-1)
    target = torch.tensor(continuation)
    values = predictions.gather(-1, target[:, None])[:, 0]
    return ContinuationScore(
        float(values.sum()), bool((predictions.argmax(-1) == target).all()), tuple(values.tolist())
    )


@pytest.mark.parametrize("batch_size", [1, 2, 64])
def test_equals_a_plain_forward_pass_whatever_the_batch(tiny_model: ChatModel, batch_size: int) -> None:
    scores = loglikelihoods(tiny_model, REQUESTS, batch_size)
    for (context, continuation), score in zip(REQUESTS, scores, strict=True):
        expected = plain(tiny_model, context, continuation)
        assert score.logprob == pytest.approx(expected.logprob, abs=2e-5)
        assert score.per_token == pytest.approx(expected.per_token, abs=2e-5)
        assert score.is_greedy == expected.is_greedy


def test_greedy_continuation_is_recognised(tiny_model: ChatModel) -> None:
    ids = list(CONTEXTS[0])
    with torch.no_grad():
        for _ in range(4):
            ids.append(int(tiny_model.model(torch.tensor([ids])).logits[0, -1].argmax()))
    greedy = tuple(ids[3:])
    other = (*greedy[:-1], (greedy[-1] + 1) % 300)
    scores = loglikelihoods(tiny_model, [(CONTEXTS[0], greedy), (CONTEXTS[0], other)])
    assert [score.is_greedy for score in scores] == [True, False]


def test_fp32_under_a_surrounding_autocast(tiny_model: ChatModel) -> None:
    expected = loglikelihoods(tiny_model, REQUESTS)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert loglikelihoods(tiny_model, REQUESTS) == expected


def test_empty_continuation_is_certain(tiny_model: ChatModel) -> None:
    assert loglikelihoods(tiny_model, [((5,), ())]) == [ContinuationScore(0.0, True, ())]


def test_too_long_or_without_context_is_refused(tiny_model: ChatModel) -> None:
    with pytest.raises(UsageError, match="does not fit"):
        loglikelihoods(tiny_model, [((5,) * 160, (6,))])
    with pytest.raises(UsageError, match="context"):
        loglikelihoods(tiny_model, [((), (6,))])


def test_scaling_of_logits_that_an_architecture_declares_is_applied(
    tiny_model: ChatModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    with torch.no_grad():
        logits = tiny_model.model(torch.tensor([[5, 6, 7]])).logits[0, -2].double()
    monkeypatch.setattr(tiny_model.model.config, "logits_scaling", 4.0, raising=False)
    score = loglikelihoods(tiny_model, [((5, 6), (7,))])[0]
    assert score.logprob == pytest.approx(float((logits / 4).log_softmax(-1)[7]), abs=2e-5)
