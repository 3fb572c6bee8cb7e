"""Distribution shift and parameter drift against the golden vectors and against models."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from cl_bench.harness.measure.shift import divergence as shift
from cl_bench.harness.measure.shift.weights import matrix_change, weight_drift
from cl_bench.harness.models.chat_model import ChatModel
from tests.support import tiny_model

GOLDEN = [json.loads(path.read_text()) for path in sorted((Path(__file__).parents[1] / "golden").glob("shift_drift_*"))]


def tensor(golden: dict[str, Any], name: str) -> Tensor:
    return torch.tensor(golden["inputs"][name], dtype=torch.float64)


@pytest.mark.parametrize("golden", GOLDEN)
def test_golden_shift(golden: dict[str, Any]) -> None:
    base, post = tensor(golden, "base_logits"), tensor(golden, "post_logits")
    ids, mask = torch.tensor(golden["inputs"]["token_ids"]), torch.tensor(golden["inputs"]["mask"])
    base_nll, post_nll = shift.token_nll(base, ids), shift.token_nll(post, ids)
    found = {
        "forward_kl_base_post_tokenmean": shift.token_mean(shift.token_kl(base, post), mask),
        "forward_kl_base_post_seqmean": shift.sequence_mean(shift.token_kl(base, post), mask),
        "reverse_kl_post_base_tokenmean": shift.token_mean(shift.token_kl(post, base), mask),
        "nll_under_base_tokenmean": shift.token_mean(base_nll, mask),
        "nll_under_base_seqmean": shift.sequence_mean(base_nll, mask),
        "ppl_under_base": math.exp(shift.token_mean(base_nll, mask)),
        "sampled_forward_kl_k1": shift.token_mean(shift.sampled_kl_k1(base_nll, post_nll), mask),
        "sampled_forward_kl_k3": shift.token_mean(shift.sampled_kl_k3(base_nll, post_nll), mask),
    }
    assert found == pytest.approx({name: golden["expected"][name] for name in found}, rel=1e-12)


@pytest.mark.parametrize("golden", GOLDEN)
def test_golden_drift(golden: dict[str, Any]) -> None:
    anchor, current = tensor(golden, "W0"), tensor(golden, "W1")
    expected = golden["expected"]
    assert weight_drift([(anchor, current)]) == pytest.approx(
        {name: expected[name] for name in ("l2", "relative_l2", "cosine")}, rel=1e-12
    )
    change = matrix_change(anchor, current)
    assert change == pytest.approx(
        {
            "spectral_norm": expected["spectral_norm"],
            "stable_rank": expected["stable_rank"],
            "effective_rank": expected["effective_rank_sv_entropy"],
            "effective_rank_energy": expected["effective_rank_energy_entropy"],
            "changed_share": expected["fraction_changed_gt_1e_3_rel"],
        },
        rel=1e-9,
    )


def test_no_change_has_no_drift_and_no_rank() -> None:
    weights = torch.randn(3, 4)
    assert weight_drift([(weights, weights)])["l2"] == 0
    assert set(matrix_change(weights, weights).values()) == {0.0}


def test_logits_of_half_precision_are_compared_in_fp32() -> None:
    base, post = torch.randn(5, 9).bfloat16(), torch.randn(5, 9).bfloat16()
    assert shift.token_kl(base, post).dtype == torch.float32
    torch.testing.assert_close(shift.token_kl(base, post), shift.token_kl(base.float(), post.float()))


class TinyModel(torch.nn.Module):
    """An embedding and a head: position t's logits depend on its token alone."""

    def __init__(self, seed: int, rows: int = 11) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.embed = torch.nn.Embedding(rows, 6)
        self.head = torch.nn.Linear(6, rows, bias=False)
        with torch.no_grad():
            for weight in self.parameters():
                weight.copy_(torch.randn(weight.shape, generator=generator))
        self.config = SimpleNamespace(get_text_config=SimpleNamespace)

    def get_output_embeddings(self) -> torch.nn.Module:
        return self.head

    def get_decoder(self) -> Any:
        return lambda input_ids, **_: SimpleNamespace(last_hidden_state=self.embed(input_ids))

    def logits(self, ids: list[int]) -> Tensor:
        return cast(Tensor, self.head(self.embed(torch.tensor(ids)))).detach()


def chat(model: TinyModel) -> ChatModel:
    return ChatModel(cast(Any, model), cast(Any, SimpleNamespace(pad_token_id=0, eos_token_id=0)), "tiny")


ROWS = [((1, 2, 3), (4, 5)), ((6,), (7, 8, 9, 0)), ((2, 2), (3,)), ((5, 5), ())]


@pytest.mark.parametrize("batch_size", [1, 2, 32])
def test_models_are_compared_on_completions_alone(batch_size: int) -> None:
    first, second = TinyModel(0), TinyModel(1)
    result = shift.measure_kl(chat(first), chat(second), ROWS, batch_size)
    per_row = [
        shift.token_kl(first.logits(ids), second.logits(ids))
        for ids in ([3, 4], [6, 7, 8, 9], [2])  # each token that is followed by a completion token
    ]
    assert (result["tokens"], result["sequences"]) == (7, 3)
    assert result["token_mean"] == pytest.approx(float(torch.cat(per_row).mean()), rel=1e-5)
    assert result["sequence_mean"] == pytest.approx(sum(float(row.mean()) for row in per_row) / 3, rel=1e-5)


def test_direction_matters_and_a_model_does_not_differ_from_itself() -> None:
    first, second = chat(TinyModel(0)), chat(TinyModel(1))
    forward, reverse = shift.measure_kl(first, second, ROWS), shift.measure_kl(second, first, ROWS)
    assert forward["token_mean"] != pytest.approx(reverse["token_mean"], rel=1e-3)
    assert shift.measure_kl(first, first, ROWS)["token_mean"] == pytest.approx(0, abs=1e-6)


def test_padded_table_does_not_count() -> None:
    small, large = TinyModel(0), TinyModel(0, rows=16)
    with torch.no_grad():
        large.embed.weight[:11] = small.embed.weight
        large.head.weight[:11] = small.head.weight
    assert shift.measure_kl(chat(small), chat(large), ROWS)["token_mean"] == pytest.approx(0, abs=1e-6)


def test_likelihood_of_completions() -> None:
    model = TinyModel(0)
    result = shift.measure_nll(chat(model), ROWS[:1])
    expected = shift.token_nll(model.logits([3, 4]), torch.tensor([4, 5])).mean()
    assert result["token_mean"] == pytest.approx(float(expected), rel=1e-5)


def test_long_rows_are_computed_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    models = chat(TinyModel(0)), chat(TinyModel(1))
    whole = shift.measure_kl(*models, ROWS), shift.measure_nll(models[0], ROWS)
    monkeypatch.setattr(shift, "_POSITIONS", 2)
    pieces = shift.measure_kl(*models, ROWS), shift.measure_nll(models[0], ROWS)
    for one, other in zip(whole, pieces, strict=True):
        assert one["token_mean"] == pytest.approx(other["token_mean"], rel=1e-6)


def test_nothing_to_measure_is_null() -> None:
    assert shift.measure_nll(chat(TinyModel(0)), [((1, 2), ())])["token_mean"] is None


def test_measuring_leaves_the_mode_of_every_part() -> None:
    model = tiny_model(0)
    model.model.train()
    model.model.get_input_embeddings().eval()
    modes = [module.training for module in model.model.modules()]
    shift.measure_nll(model, ROWS)
    assert [module.training for module in model.model.modules()] == modes


def test_measuring_leaves_the_mode() -> None:
    first, second = TinyModel(0).train(), TinyModel(1).eval()
    shift.measure_kl(chat(first), chat(second), ROWS)
    assert first.training and not second.training
