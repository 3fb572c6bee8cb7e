"""One pass of several models over answers: planted shifts, exactness, and no trace."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from cl_bench.harness.measure.shift import divergence
from cl_bench.harness.measure.shift.comparison import Answer, compare
from cl_bench.harness.measure.shift.responses import unbiased_mmd2
from cl_bench.harness.models.chat_model import ChatModel
from tests.support import tiny_model

FORWARD, REVERSE = ("base", "current"), ("current", "base")
PROMPTS = [(1, 2, 3), (6, 2), (5, 5, 5, 5)]


class Planted(torch.nn.Module):
    """An embedding and a head with a bias: position t's logits depend on its token, and on the bias as planted."""

    def __init__(self, bias: Tensor | None = None, rows: int = 11) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(3)
        self.embed = torch.nn.Embedding(rows, 6)
        self.head = torch.nn.Linear(6, rows)
        with torch.no_grad():
            self.embed.weight.copy_(torch.randn(rows, 6, generator=generator))
            self.head.weight.copy_(torch.randn(rows, 6, generator=generator))
            self.head.bias.copy_(torch.zeros(rows) if bias is None else bias)
        self.config = SimpleNamespace(get_text_config=SimpleNamespace)

    def get_output_embeddings(self) -> torch.nn.Module:
        return self.head

    def get_decoder(self) -> Any:
        return lambda input_ids, **_: SimpleNamespace(last_hidden_state=self.embed(input_ids))


def chat(model: torch.nn.Module) -> ChatModel:
    tokenizer = SimpleNamespace(
        pad_token_id=0, eos_token_id=0, padding_side="left", truncation_side="left", pad_token="p"
    )
    return ChatModel(cast(Any, model), cast(Any, tokenizer), "planted")


def answers(pair: tuple[str, str]) -> list[Answer]:
    return [Answer(prompt, (4, 5, 7)[: place + 1], (pair,)) for place, prompt in enumerate(PROMPTS)]


@pytest.mark.parametrize("shift", [0.5, -2.0])
def test_planted_logit_shift_gives_the_divergence_of_the_closed_form(shift: float) -> None:
    token = 4
    bias = torch.zeros(11).index_fill(0, torch.tensor([token]), shift)
    base, post = Planted(), Planted(bias)
    read = compare({"base": chat(base), "current": chat(post)}, answers(FORWARD), "base")
    context = [3, 2, 4, 5, 4, 5]  # the token before each token of the answers, in the answers' order
    p = base.head(base.embed(torch.tensor(context))).double().softmax(-1)[:, token].detach()
    # Adding b to one logit of probability p: KL(base || post) = log(1 - p + p e^b) - p b.
    expected = (1 - p + p * math.exp(shift)).log() - p * shift
    assert read.kl[FORWARD].summary()["token_mean"] == pytest.approx(float(expected.mean()), rel=1e-5)
    # The reverse has q = p e^b / (1 - p + p e^b) in place of p, and the opposite sign.
    q = p * math.exp(shift) / (1 - p + p * math.exp(shift))
    read = compare({"base": chat(base), "current": chat(post)}, answers(REVERSE), "base")
    reverse = q * shift - (1 - p + p * math.exp(shift)).log()
    assert read.kl[REVERSE].summary()["token_mean"] == pytest.approx(float(reverse.mean()), rel=1e-5)


def test_a_shift_of_all_logits_alike_is_none() -> None:
    read = compare(
        {"base": chat(Planted()), "current": chat(Planted(torch.full((11,), 3.0)))}, answers(FORWARD), "base"
    )
    assert read.kl[FORWARD].summary()["token_mean"] == pytest.approx(0, abs=1e-6)
    assert read.agreement[FORWARD].summary()["token_mean"] == 1.0


def test_agreement_is_the_share_of_equal_likeliest_tokens() -> None:
    always = torch.zeros(11).index_fill(0, torch.tensor([9]), 100.0)
    base = Planted()
    read = compare({"base": chat(base), "current": chat(Planted(always))}, answers(FORWARD), "base")
    likeliest = base.head(base.embed(torch.tensor([3, 2, 4, 5, 4, 5]))).argmax(-1)
    assert read.agreement[FORWARD].summary()["token_mean"] == pytest.approx(float((likeliest == 9).float().mean()))


def real_answers() -> tuple[dict[str, ChatModel], list[Answer]]:
    models = {"base": tiny_model(0), "current": tiny_model(1), "previous": tiny_model(2)}
    drawn = torch.Generator().manual_seed(0)
    found = []
    for length in (3, 5, 9):
        prompt = tuple(torch.randint(3, 200, (length,), generator=drawn).tolist())
        for who in models:
            pairs = (REVERSE, ("current", "previous")) if who == "current" else ((who, "current"),)
            completion = tuple(torch.randint(3, 200, (length + len(who) % 4,), generator=drawn).tolist())
            found.append(Answer(prompt, completion, pairs))
    found.append(Answer((8, 9), (), (FORWARD,)))
    return models, found


@pytest.mark.parametrize("batch_size", [1, 4, 48])
def test_one_pass_gives_what_a_pass_for_every_pair_gives(batch_size: int) -> None:
    models, asked = real_answers()
    read = compare(models, asked, "base", batch_size)
    for pair, found in read.kl.items():
        rows = [(answer.prompt, answer.completion) for answer in asked if pair in answer.pairs]
        alone = divergence.measure_kl(models[pair[0]], models[pair[1]], rows)
        assert found.summary() == pytest.approx(alone, rel=1e-4)
    assert set(read.kl) == {FORWARD, REVERSE, ("previous", "current"), ("current", "previous")}
    assert [place for place, vector in enumerate(read.embeddings) if vector is None] == [len(asked) - 1]


def test_rows_keep_their_places_whatever_the_batches() -> None:
    models, asked = real_answers()
    read = compare(models, asked, "base")
    turned = compare(models, asked[::-1], "base")
    for pair in read.kl:
        assert read.kl[pair].counts == turned.kl[pair].counts[::-1]
        assert read.kl[pair].sums == pytest.approx(turned.kl[pair].sums[::-1], rel=1e-4)


def test_every_model_reads_only_what_concerns_it(monkeypatch: pytest.MonkeyPatch) -> None:
    models, asked = real_answers()
    seen: dict[str, int] = {}

    def count(model: ChatModel, rows: Any) -> Tensor:
        name = next(name for name, own in models.items() if own is model)
        seen[name] = seen.get(name, 0) + len(rows)
        return divergence.hidden_states(model, rows)

    monkeypatch.setattr("cl_bench.harness.measure.shift.comparison.hidden_states", count)
    compare(models, asked, "base")
    assert seen == {"base": 9, "current": 9, "previous": 6}, "one pass over its contexts each"


def test_long_answers_are_computed_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    models, asked = real_answers()
    whole = compare(models, asked, "base")
    monkeypatch.setattr(divergence, "_POSITIONS", 2)
    pieces = compare(models, asked, "base")
    for pair in whole.kl:
        assert pieces.kl[pair].sums == pytest.approx(whole.kl[pair].sums, rel=1e-5, abs=1e-6)


def test_reading_leaves_no_trace() -> None:
    models, asked = real_answers()
    models["current"].model.train()
    state, before = torch.get_rng_state(), [p.clone() for p in models["current"].model.parameters()]
    compare(models, asked, "base")
    assert models["current"].model.training and not models["base"].model.training
    assert torch.equal(state, torch.get_rng_state())
    assert all(torch.equal(a, b) for a, b in zip(before, models["current"].model.parameters(), strict=True))
    assert all(p.grad is None for p in models["current"].model.parameters())


def test_mmd_of_equal_samples_is_zero_and_of_far_ones_large() -> None:
    rows = torch.randn(40, 5, generator=torch.Generator().manual_seed(0))
    assert unbiased_mmd2(rows, rows) == pytest.approx(0, abs=1e-12)
    moved = unbiased_mmd2(rows, rows + 5)
    assert moved is not None and moved > 0.5
    assert unbiased_mmd2(rows[:1], rows[:1]) is None
    assert unbiased_mmd2(torch.zeros(4, 2), torch.zeros(4, 2)) is None


def test_mmd_is_unbiased_and_is_the_formula() -> None:
    generator = torch.Generator().manual_seed(1)
    values = []
    for _ in range(200):
        found = unbiased_mmd2(torch.randn(12, 3, generator=generator), torch.randn(12, 3, generator=generator))
        assert found is not None
        values.append(found)
    spread = torch.tensor(values).std() / math.sqrt(len(values))
    assert abs(sum(values) / len(values)) < 4 * float(spread)
    first, second = torch.tensor([[0.0], [2.0]]).double(), torch.tensor([[1.0], [5.0]]).double()
    # Distances 2, 1, 5, 1, 3, 4: their median (of both orders, the lower middle) is 2, so k(d) = exp(-d^2 / 8).
    k = [math.exp(-(d**2) / 8) for d in (2, 4, 5, 1)]
    # pairs (x1, y1), (x2, y2): k(x1, x2) + k(y1, y2) - k(x1, y2) - k(x2, y1)
    assert unbiased_mmd2(first, second) == pytest.approx(k[0] + k[1] - k[2] - k[3])
