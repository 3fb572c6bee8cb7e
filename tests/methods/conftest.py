"""A tiny random student, toy examples and a context in a temporary folder."""

from __future__ import annotations

import gc
import importlib
from pathlib import Path

import pytest

from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.methods.base import Stage
from tests.support import TinyContext, tiny_model, toy_examples, toy_stage


@pytest.fixture()
def student() -> ChatModel:
    return tiny_model(seed=0)


@pytest.fixture()
def stage() -> Stage:
    return toy_stage(toy_examples(12))


@pytest.fixture()
def context(tmp_path: Path) -> TinyContext:
    return TinyContext(tmp_path)


@pytest.fixture(scope="session", autouse=True)
def _imported_modules_are_not_searched_for_garbage() -> None:
    """Trainers collect garbage as they end; without this each collection walks through all of the libraries."""
    for name in ("peft", "datasets", "trl.trainer.sft_trainer"):
        importlib.import_module(name)
    gc.freeze()
