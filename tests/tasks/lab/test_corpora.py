"""Named corpora and the frozen version."""

from __future__ import annotations

import pytest

from cl_bench.harness.errors import DataError
from cl_bench.harness.models.lab import LAB_MODELS, lab_path
from cl_bench.tasks.lab.corpora import CORPORA, corpus
from cl_bench.tasks.lab.styles import DISTANCES
from cl_bench.tasks.lab.version import LAB_VERSION, frozen, item_hashes, weight_hashes


def test_there_are_twelve_corpora_in_three_distances() -> None:
    assert len(CORPORA) >= 12
    for name in CORPORA:
        texts = [[row.demonstration for row in corpus(name, distance, 200)] for distance in DISTANCES]
        assert all(len(rows) == 200 for rows in texts)
        assert texts[0] != texts[1] != texts[2]


def test_facts_and_rules_are_apart() -> None:
    kinds = [{row.meta["kind"] for row in corpus(f"chemistry-{part}", "HI", 300)} for part in ("facts", "rules")]
    assert not kinds[0] & kinds[1]


def test_items_are_those_of_the_frozen_version() -> None:
    assert frozen()["lab_version"] == LAB_VERSION
    assert item_hashes() == frozen()["items"]


def test_weights_are_those_of_the_frozen_version() -> None:
    folder = lab_path(LAB_MODELS[0]).parent
    assert weight_hashes(folder) == frozen()["weights"]
    assert {name.split("/")[0] for name in frozen()["weights"]} == set(LAB_MODELS)


def test_a_corpus_says_how_many_rows_it_has() -> None:
    with pytest.raises(DataError, match="rows in train, 100000 were asked for"):
        corpus("chemistry", "HI", 100_000)
