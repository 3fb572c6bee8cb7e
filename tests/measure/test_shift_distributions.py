"""Which model's answers, which direction and which reduction stand behind each record's name; swaps are seen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch

from cl_bench.harness.measure.shift import comparison, distributions
from cl_bench.harness.measure.shift.comparison import compare
from cl_bench.harness.measure.shift.contexts import PromptSet, ShiftPrompt
from cl_bench.harness.measure.shift.distributions import Stance, distribution_records
from cl_bench.harness.measure.shift.divergence import hidden_states, measure_kl, token_kl
from cl_bench.harness.measure.shift.records import Record
from cl_bench.harness.measure.shift.responses import unbiased_mmd2
from cl_bench.harness.models.chat_model import ChatModel
from tests.support import tiny_model

NEW = PromptSet("new task", "n", tuple(ShiftPrompt("chemistry", str(i), (3, 10 + i, 7), 6) for i in range(4)))
NONE = PromptSet("general", "g", (), "the run has no retention suite")
MODELS: Mapping[str, ChatModel] = {name: tiny_model(seed) for seed, name in enumerate(("base", "current", "previous"))}
LENGTHS = {"base": (2, 5, 1, 4), "current": (3, 1, 6, 2), "previous": (1, 2, 2, 6)}


def stance(names: tuple[str, ...] = ("base", "current", "previous")) -> Stance:
    drawn = torch.Generator().manual_seed(4)
    answers = {
        who: {"n": tuple(tuple(torch.randint(3, 90, (n,), generator=drawn).tolist()) for n in LENGTHS[who]), "g": ()}
        for who in MODELS
    }
    return Stance({name: MODELS[name] for name in names}, {name: answers[name] for name in names})


def by_hand(found: Stance, against: str) -> dict[tuple[str, str], tuple[float, int]]:
    """Value and n of each divergence by measure and reduction, from the definition."""
    other, current = found.models[against], found.models["current"]
    rows = {who: [(p.ids, ids) for p, ids in zip(NEW.prompts, found.answers[who]["n"], strict=True)] for who in MODELS}
    forward, reverse = measure_kl(other, current, rows[against]), measure_kl(current, other, rows["current"])
    return {
        (measure, f"{reduction} mean"): (float(read[f"{reduction}_mean"] or 0), int(read[n] or 0))
        for measure, read in (("forward_kl", forward), ("reverse_kl", reverse))
        for reduction, n in (("token", "tokens"), ("sequence", "sequences"))
    }


def divergences(records: list[Record], against: str) -> dict[tuple[str, str], tuple[float, int]]:
    return {
        (one.measure, one.reduction): (float(one.value or 0), one.n)
        for one in records
        if one.measure.endswith("_kl") and one.against == against and one.prompts == "new task"
    }


def agree(records: list[Record], found: Stance) -> bool:
    pairs = [(divergences(records, against), by_hand(found, against)) for against in ("base", "previous")]
    return all(
        one.keys() == other.keys()
        and all(one[key][1] == other[key][1] and one[key][0] == pytest.approx(other[key][0], rel=1e-4) for key in one)
        for one, other in pairs
    )


def test_forward_is_the_earlier_models_answers_and_reverse_the_current_ones() -> None:
    found = stance()
    records = distribution_records(found, [NEW, NONE])
    assert agree(records, found)
    assert (records[0].measure, records[0].against, records[0].reduction) == ("forward_kl", "base", "token mean")
    for record in records:
        if record.measure in ("forward_kl", "top1_agreement"):
            assert record.contexts.startswith({"base": "the untouched", "previous": "the previous"}[record.against])
        if record.measure == "reverse_kl":
            assert record.contexts.startswith("this stage's")
    empty = [record for record in records if record.prompts == "general"]
    assert empty and all(record.value is None and record.reason == NONE.reason and record.n == 0 for record in empty)


@pytest.mark.parametrize("mistake", ["direction", "pairs"])
def test_a_swap_is_seen(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def swapped(models: Any, answers: Any, embedder: str) -> Any:
        read = compare(models, answers, embedder)
        read.kl = {(two, one): found for (one, two), found in read.kl.items()}
        return read

    found = stance()
    if mistake == "direction":
        monkeypatch.setattr(comparison, "token_kl", lambda one, two: token_kl(two, one))
    else:
        monkeypatch.setattr(distributions, "compare", swapped)
    assert not agree(distribution_records(found, [NEW]), found)


def test_in_the_first_stage_the_previous_row_is_the_untouched_model() -> None:
    records = distribution_records(stance(("base", "current")), [NEW])
    assert divergences(records, "previous") == divergences(records, "base")


def test_agreement_is_read_on_the_earlier_models_answers() -> None:
    found = stance()
    records = {(r.measure, r.against): r for r in distribution_records(found, [NEW])}
    for against in ("base", "previous"):
        same = []
        for prompt, ids in zip(NEW.prompts, found.answers[against]["n"], strict=True):
            best = [hidden_logits(found.models[name], prompt.ids, ids).argmax(-1) for name in (against, "current")]
            same += (best[0] == best[1]).tolist()
        assert records["top1_agreement", against].value == pytest.approx(sum(same) / len(same))
        assert records["top1_agreement", against].n == len(same)


def hidden_logits(model: ChatModel, prompt: tuple[int, ...], ids: tuple[int, ...]) -> torch.Tensor:
    with torch.no_grad():
        logits: torch.Tensor = model.model(torch.tensor([[*prompt, *ids]])).logits[0, len(prompt) - 1 : -1]
    return logits


def test_answers_are_embedded_by_the_untouched_model_whatever_they_are_against() -> None:
    found = stance()
    records = {(r.measure, r.against): r for r in distribution_records(found, [NEW])}

    def embedded(who: str, reader: str) -> torch.Tensor:
        rows = [(p.ids, ids) for p, ids in zip(NEW.prompts, found.answers[who]["n"], strict=True)]
        with torch.no_grad():
            return torch.stack([hidden_states(found.models[reader], [row]).mean(0) for row in rows])

    for against in ("base", "previous"):
        record = records["response_mmd2", against]
        expected = unbiased_mmd2(embedded(against, "base"), embedded("current", "base"))
        assert record.n == 4 and record.value == pytest.approx(expected, abs=1e-6)
        mistaken = unbiased_mmd2(embedded(against, "current"), embedded("current", "current"))
        assert record.value != pytest.approx(mistaken, abs=1e-4)
        assert "embedded by the untouched model" in record.contexts
