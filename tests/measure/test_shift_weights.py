"""Parameter drift by layer: planted changes, and what is left out of large models."""

from __future__ import annotations

import copy

import pytest
import torch

from cl_bench.harness.measure.shift import weights
from cl_bench.harness.measure.shift.records import Record
from cl_bench.harness.measure.shift.weights import layer_of, matrix_change, weight_records
from tests.support import tiny_model


def by_name(records: list[Record]) -> dict[str, Record]:
    return {record.measure.removeprefix("parameter_"): record for record in records}


def test_no_change_is_none_in_every_measure() -> None:
    model = tiny_model(0).model
    found = by_name(weight_records(model, model, "base"))
    assert (found["relative_l2"].value, found["changed_share"].value, found["spectral_norm"].value) == (0, 0, 0)
    assert found["cosine"].value == pytest.approx(1)
    assert found["effective_rank"].value == 0


def test_a_change_of_one_matrix_is_seen_in_its_layer_alone() -> None:
    anchor = tiny_model(0).model
    current = copy.deepcopy(anchor)
    matrix = current.get_parameter("model.layers.1.mlp.up_proj.weight")
    direction = torch.outer(torch.ones(matrix.shape[0]), torch.ones(matrix.shape[1]))
    with torch.no_grad():
        matrix.add_(0.5 * direction)
    found = by_name(weight_records(anchor, current, "previous"))
    relative = found["relative_l2"].by
    assert relative["layer 1"] and relative["layer 1"] > 0 and relative["layer 0"] == relative["embeddings"] == 0
    # A change of rank one: its spectral norm is its Frobenius norm, and the other matrices' ranks are 0.
    assert found["spectral_norm"].value == pytest.approx(0.5 * matrix.numel() ** 0.5, rel=1e-5)
    assert found["effective_rank"].value == pytest.approx(1 / found["effective_rank"].n, rel=1e-4)
    assert found["stable_rank"].value == pytest.approx(1 / found["stable_rank"].n, rel=1e-4)
    total = sum(p.numel() for p in anchor.parameters())
    assert found["changed_share"].value == pytest.approx(matrix.numel() / total)
    assert found["changed_share"].n == total, "tied weights count once"


def test_scaling_keeps_the_angle() -> None:
    anchor = tiny_model(0).model
    current = copy.deepcopy(anchor)
    with torch.no_grad():
        for parameter in current.parameters():
            parameter.mul_(1.25)
    found = by_name(weight_records(anchor, current, "base"))
    assert found["relative_l2"].value == pytest.approx(0.25, rel=1e-6)
    assert found["cosine"].value == pytest.approx(1)
    weights_ = torch.cat([parameter.flatten() for parameter in anchor.parameters()])
    assert found["changed_share"].value == pytest.approx(float((weights_ != 0).float().mean()))


def test_ranks_of_large_models_are_null_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "RANKS_UP_TO", 100)
    first, second = tiny_model(0).model, tiny_model(1).model
    found = by_name(weight_records(first, second, "base"))
    for name in ("spectral_norm", "effective_rank", "stable_rank"):
        assert found[name].value is None and "100 weights" in found[name].reason and not found[name].by
    assert found["relative_l2"].value is not None and found["relative_l2"].value > 0


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("model.layers.11.mlp.up_proj.weight", "layer 11"),
        ("transformer.h.0.attn.c_attn.weight", "layer 0"),
        ("model.embed_tokens.weight", "embeddings"),
        ("transformer.wte.weight", "embeddings"),
        ("lm_head.weight", "head"),
        ("model.norm.weight", "other"),
    ],
)
def test_layers_by_name(name: str, layer: str) -> None:
    assert layer_of(name) == layer


def test_weights_that_are_not_finite_are_no_number_and_no_error() -> None:
    anchor = tiny_model(0).model
    current = copy.deepcopy(anchor)
    with torch.no_grad():
        current.get_parameter("model.layers.1.mlp.up_proj.weight")[0, 0] = torch.nan
    for record in weight_records(anchor, current, "base"):
        found = record.to_json()
        assert found["value"] is None or record.measure == "parameter_changed_share"
        assert found["value"] is not None or found["reason"] == "undefined: not a finite number"


def test_a_remark_does_not_pass_for_the_reason_of_a_missing_number() -> None:
    found = Record("m", "base", "p", "c", "r", "u", 1, float("nan"), reason="not comparable").to_json()
    assert found["value"] is None and found["reason"] == "undefined: not a finite number; not comparable"
    for value, reason in ((1.0, "a remark"), (None, "nothing there")):
        assert Record("m", "base", "p", "c", "r", "u", 1, value, reason).to_json()["reason"] == reason
    assert "reason" not in Record("m", "base", "p", "c", "r", "u", 1, 1.0).to_json()


def test_weights_that_only_one_model_has_are_not_left_out_in_silence() -> None:
    anchor, wide = tiny_model(0).model, tiny_model(0, vocabulary=300).model
    found = by_name(weight_records(anchor, wide, "base"))
    assert found["relative_l2"].value is not None
    assert found["relative_l2"].reason == "1 weights left out that are not in both models in one shape"
    nothing = by_name(weight_records(anchor, torch.nn.Linear(2, 2), "base"))["relative_l2"].to_json()
    assert nothing["value"] is None and "left out" in nothing["reason"]


@pytest.mark.parametrize("rank", [1, 3, 8])
def test_effective_rank_of_equal_singular_values_is_their_number(rank: int) -> None:
    generator = torch.Generator().manual_seed(0)
    left, right = (torch.linalg.qr(torch.randn(12, 12, generator=generator).double())[0] for _ in range(2))
    found = matrix_change(torch.zeros(12, 12), 0.3 * left[:, :rank] @ right[:rank])
    assert (found["effective_rank"], found["stable_rank"]) == pytest.approx((rank, rank), rel=1e-6)
    assert found["spectral_norm"] == pytest.approx(0.3)
