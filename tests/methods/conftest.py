"""A tiny random student, toy examples and a context in a temporary folder."""

from __future__ import annotations

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
