"""Finished batches survive the process that computed them, whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cl_bench.harness.context import sampler_for
from cl_bench.harness.generation.base import GenerationSettings, Prompt
from cl_bench.harness.generation.batches import BatchLedger, KeptBatches
from cl_bench.harness.generation.local import LocalSampler
from cl_bench.harness.measure import loglikelihood
from cl_bench.harness.models.fingerprint import memory_fingerprint
from cl_bench.methods.base import Precision
from tests.support import tiny_model

SETTINGS = GenerationSettings(8, temperature=1.0, batch_size=4)
PROMPTS = [Prompt(tuple(range(5, 9 + number)), seed=number) for number in range(10)]


@pytest.fixture()
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Rows of every batch that is decoded."""
    found: list[int] = []
    real = LocalSampler._decode

    def counted(self: LocalSampler, rows: Sequence[Any], settings: GenerationSettings) -> None:
        found.append(len(rows))
        real(self, rows, settings)  # type: ignore[arg-type]

    monkeypatch.setattr(LocalSampler, "_decode", counted)
    return found


def kept(path: Path, seed: int = 0) -> KeptBatches:
    return BatchLedger(path).of(weights=memory_fingerprint(tiny_model(seed).model))


def test_a_new_process_decodes_only_what_an_earlier_one_had_not(tmp_path: Path, decoded: list[int]) -> None:
    plain = LocalSampler(tiny_model(0)).generate(PROMPTS, SETTINGS)
    assert decoded == [4, 4, 2]
    path = tmp_path / "batches.jsonl"
    assert LocalSampler(tiny_model(0), kept=kept(path)).generate(PROMPTS, SETTINGS) == plain
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
    decoded.clear()
    assert LocalSampler(tiny_model(0), kept=kept(path)).generate(PROMPTS, SETTINGS) == plain
    assert decoded == [2]
    assert LocalSampler(tiny_model(0), kept=kept(path)).generate(PROMPTS, SETTINGS) == plain
    assert decoded == [2]


def test_a_line_of_endless_depth_is_a_miss(tmp_path: Path) -> None:
    path = tmp_path / "batches.jsonl"
    kept(path).put("text", [1], ["one"])
    with path.open("a") as stream:
        stream.write("[" * 200_000 + "\n")
    again = kept(path)
    assert again.get("text", [1]) == ["one"] and again.get("text", [2]) is None


@pytest.mark.parametrize("cut", [1, 20, 200])
def test_a_line_that_was_cut_off_is_computed_again_and_harms_no_later_one(
    cut: int, tmp_path: Path, decoded: list[int]
) -> None:
    path = tmp_path / "batches.jsonl"
    plain = LocalSampler(tiny_model(0), kept=kept(path)).generate(PROMPTS, SETTINGS)
    path.write_bytes(path.read_bytes()[:-cut])
    decoded.clear()
    for _ in range(2):
        assert LocalSampler(tiny_model(0), kept=kept(path)).generate(PROMPTS, SETTINGS) == plain
        assert decoded == [2]
    assert len(path.read_bytes().splitlines()) == 3


def test_a_changed_line_is_a_miss(tmp_path: Path, decoded: list[int]) -> None:
    path = tmp_path / "batches.jsonl"
    plain = LocalSampler(tiny_model(0), kept=kept(path)).generate(PROMPTS, SETTINGS)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text(lines[0].replace('"rows": [[[', '"rows": [[[1') + "".join(lines[1:]))
    decoded.clear()
    assert LocalSampler(tiny_model(0), kept=kept(path)).generate(PROMPTS, SETTINGS) == plain
    assert decoded == [4]


@pytest.mark.parametrize(
    ("prompts", "settings", "seed"),
    [
        (PROMPTS, SETTINGS, 1),
        ([replace(prompt, seed=prompt.seed + 1) for prompt in PROMPTS], SETTINGS, 0),
        (PROMPTS, replace(SETTINGS, max_new_tokens=7), 0),
        (PROMPTS, replace(SETTINGS, stop=("a",)), 0),
        (PROMPTS, replace(SETTINGS, temperature=0.5), 0),
        (PROMPTS[1:], SETTINGS, 0),
    ],
    ids=["weights", "seeds", "length", "stop strings", "temperature", "rows"],
)
def test_other_batches_are_not_taken(
    prompts: list[Prompt], settings: GenerationSettings, seed: int, tmp_path: Path, decoded: list[int]
) -> None:
    path = tmp_path / "batches.jsonl"
    LocalSampler(tiny_model(0), kept=kept(path)).generate(PROMPTS, SETTINGS)
    decoded.clear()
    found = LocalSampler(tiny_model(seed), kept=kept(path, seed)).generate(prompts, settings)
    assert sum(decoded) == len(prompts)
    assert found == LocalSampler(tiny_model(seed)).generate(prompts, settings)


def test_scores_of_continuations_are_kept_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, path = tiny_model(0), tmp_path / "batches.jsonl"
    requests = [(tuple(range(5, 9 + n)), (7, 8, 9 + option)) for n in range(5) for option in range(3)]
    plain = loglikelihood.loglikelihoods(model, requests, 4)
    assert loglikelihood.loglikelihoods(model, requests, 4, kept(path)) == plain
    monkeypatch.setattr(loglikelihood, "_score_batch", lambda *_: pytest.fail("computed again"))
    assert loglikelihood.loglikelihoods(model, requests, 4, kept(path)) == plain


def test_the_fingerprint_of_weights_in_memory_sees_every_number() -> None:
    model = tiny_model(0)
    before = memory_fingerprint(model.model)
    assert before == memory_fingerprint(tiny_model(0).model)
    last = list(model.model.parameters())[-1].data.view(-1)
    last[-1] += 1e-6
    assert memory_fingerprint(model.model) != before


def test_a_sampler_of_changing_weights_keeps_nothing(tmp_path: Path) -> None:
    ledger = BatchLedger(tmp_path / "batches.jsonl")
    assert sampler_for(tiny_model(0), Precision(), ledger).kept is None
    assert sampler_for(tiny_model(0), Precision(), ledger, "weights").kept is not None
