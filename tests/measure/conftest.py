"""Models for the tests of measurements."""

from __future__ import annotations

import pytest

from cl_bench.harness.models.chat_model import ChatModel
from tests import support


@pytest.fixture(scope="session")
def tiny_model() -> ChatModel:
    """One random model, shared by the tests that do not change it."""
    return support.tiny_model()
