"""Each field that numbers depend on, flipped: refused by name, or marked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cl_bench.harness.compare.comparability import check_comparable
from cl_bench.harness.compare.runs import find_runs
from cl_bench.harness.errors import EXIT_NOT_COMPARABLE, NotComparableError
from cl_bench.harness.run_directory import RunView
from tests.compare.small_runs import TASKS, VERSIONS, make_run

OTHER_TASKS = [{"name": "chemistry", "identity": {"version": "2"}}, {"name": "biology", "identity": {"version": "1"}}]
FLIPS: dict[str, dict[str, Any]] = {
    "results version": {"results_version": 1},
    "profile": {"profile": "laptop"},
    "recipe": {"recipe": "reference"},
    "lab version": {"lab_version": 2},
    "limit": {"limit": 8},
    "data source": {"data__source": "hub"},
    "data split": {"data__split": "paper"},
    "option order": {"data__option_order": "as-published"},
    "evaluated split": {"evaluation__split": "dev"},
    "evaluated rows": {"evaluation__rows": 50},
    "evaluated suite rows": {"evaluation__suite_rows": 50},
    "shots": {"evaluation__shots": 2},
    "system prompt": {"evaluation__system_prompt": "Answer briefly."},
    "template (thinking)": {"model__thinking": True},
    "template (model lab-m)": {"model__fingerprint": "99" * 32},
    "dtype of training": {"precision__training": "bf16"},
    "dtype of evaluation": {"precision__generation": "bf16"},
    "suite": {"suite": {"name": "lab", "tier": "full"}},
    "task chemistry": {"tasks": OTHER_TASKS},
    "backend (torch)": {"versions": VERSIONS | {"torch": "2.8.0"}},
    "backend (transformers)": {"versions": VERSIONS | {"transformers": "5.25.0"}},
    "backend (lm_eval)": {"versions": VERSIONS | {"lm_eval": "0.4.14"}},
    "backend (device)": {"device": "cuda:0"},
}


def views(*folders: Path) -> tuple[RunView, ...]:
    return find_runs([str(folder) for folder in folders]).views


@pytest.fixture(scope="module")
def alike(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of two runs that agree in everything but the seed."""
    folder = tmp_path_factory.mktemp("alike")
    for seed in (0, 1):
        make_run(folder, seed=seed)
    return folder


@pytest.mark.parametrize(("field", "change"), FLIPS.items(), ids=list(FLIPS))
def test_a_flipped_field_is_refused_by_name_and_marked(
    alike: Path, tmp_path: Path, field: str, change: dict[str, Any]
) -> None:
    flipped = make_run(tmp_path, seed=2, **change).resolve()
    found = views(alike, tmp_path)
    with pytest.raises(NotComparableError) as caught:
        check_comparable(found)
    assert caught.value.exit_code == EXIT_NOT_COMPARABLE
    assert f"differ in {field}" in caught.value.what and str(flipped) in caught.value.why
    assert check_comparable(found, mark=True) == {flipped: (field,)}


def test_a_dtype_brings_the_batch_plan_with_it(tmp_path: Path) -> None:
    for seed, size in enumerate((128, 128, 64)):
        make_run(tmp_path, seed=seed, precision__generation="bf16", evaluation_batch_size=size)
    with pytest.raises(NotComparableError, match="batch plan of evaluation"):
        check_comparable(views(tmp_path))
    make_run(tmp_path / "fp32", evaluation_batch_size=64)
    make_run(tmp_path / "fp32", seed=1)
    assert check_comparable(views(tmp_path / "fp32")) == {}


def test_method_seed_sequence_model_and_training_data_may_differ(tmp_path: Path) -> None:
    make_run(tmp_path)
    make_run(tmp_path, "sdft", seed=3, settings={"learning_rate": 1e-4})
    make_run(tmp_path, data__distance="LO")
    make_run(tmp_path, model={"name": "lab-s", "fingerprint": "cd" * 32})
    make_run(tmp_path, stages=TASKS[:1], values={"base": (0.2, 0.6, 0.8), "chemistry": (0.9, 0.5, 0.7)})
    make_run(tmp_path, "base", values={"base": (0.2, 0.3, 0.6, 0.8)})
    make_run(tmp_path, eval_every=4)
    assert len(views(tmp_path)) == 7 and check_comparable(views(tmp_path)) == {}


def test_aligners_have_to_agree_where_two_runs_of_a_model_have_one(tmp_path: Path) -> None:
    make_run(tmp_path)
    make_run(tmp_path, "synthself", aligner={"name": "lab-l", "fingerprint": "ef" * 32})
    other = {"name": "lab-s", "fingerprint": "cd" * 32}
    make_run(tmp_path, "synthself", model=other, aligner={"name": "lab-m", "fingerprint": "ab" * 32})
    assert check_comparable(views(tmp_path)) == {}
    make_run(tmp_path, "synthself", seed=1, aligner={"name": "lab-xl", "fingerprint": "01" * 32})
    with pytest.raises(NotComparableError, match="aligner"):
        check_comparable(views(tmp_path))


def test_what_most_runs_have_is_not_marked(tmp_path: Path) -> None:
    odd = make_run(tmp_path, seed=0, limit=8, recipe="reference").resolve()
    for seed in (1, 2):
        make_run(tmp_path, seed=seed)
    assert check_comparable(views(tmp_path), mark=True) == {odd: ("recipe", "limit")}
