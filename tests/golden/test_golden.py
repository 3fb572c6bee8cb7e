"""Losses, divergences, targets, penalties and metrics against numbers made with the reference implementations.

``CL_BENCH_GOLDEN`` names another folder of vectors of the same kinds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.golden.comparisons import COMPARISONS, EXEMPT
from tests.golden.vectors import Place

FOLDER = Path(os.environ.get("CL_BENCH_GOLDEN") or Path(__file__).parent)
FILES = sorted(FOLDER.glob("*.json"))
TOLERANCE = 1e-9


def prefix_of(name: str) -> str:
    """The longest known beginning of a file's name."""
    known = [prefix for prefix in COMPARISONS if name.startswith(prefix)]
    assert known, f"no comparison for a vector called {name}; known: {', '.join(COMPARISONS)}"
    return max(known, key=len)


def leaves(content: Any, place: Place = ()) -> Iterator[Place]:
    """Places of everything in nested mappings that is no mapping."""
    if not isinstance(content, Mapping):
        yield place
        return
    for name, value in content.items():
        yield from leaves(value, (*place, name))


def at(content: Any, place: Place) -> Any:
    for name in place:
        content = content[name]
    return content


def numbers(value: Any) -> torch.Tensor:
    if isinstance(value, torch.Tensor):
        return value.detach().double()
    return torch.tensor(value, dtype=torch.float64)


def test_there_are_vectors() -> None:
    assert FILES, f"no vectors in {FOLDER}"


def test_every_kind_of_vector_is_here() -> None:
    own = {prefix_of(path.stem) for path in Path(__file__).parent.glob("*.json")}
    assert own == set(COMPARISONS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_golden(path: Path) -> None:
    vector = json.loads(path.read_text())
    prefix = prefix_of(path.stem)
    compared: set[Place] = set()
    for place, value, *tolerance in COMPARISONS[prefix](vector):
        wanted = numbers(at(vector["expected"], place))
        allowed = (tolerance or [TOLERANCE])[0]
        where = f"{path.stem}: {' / '.join(place)}"
        assert numbers(value).shape == wanted.shape, where
        gap = (numbers(value) - wanted).abs() / wanted.abs().clamp(min=1)
        assert float(gap.max()) <= allowed, f"{where} differs by {float(gap.max()):.3g}"
        compared.add(place)
    left = [place for place in leaves(vector["expected"]) if place not in compared]
    unexplained = ["/".join(place) for place in left if not is_exempt(prefix, place)]
    assert not unexplained, f"{path.stem}: nothing was compared with {unexplained}"


def is_exempt(prefix: str, place: Place) -> bool:
    name = "/".join((prefix, *place))
    return any(fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern}/*") for pattern in EXEMPT)
