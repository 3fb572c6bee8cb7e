from __future__ import annotations

import pytest

from cl_bench.harness.errors import DataError
from cl_bench.tasks.sources.base import DataOptions
from cl_bench.tasks.sources.locate import DatasetSpec, data_identity
from tests.tasks.sources.fake_hub import FakeHub, repository
from tests.tasks.sources.rows import math_row

SPEC = DatasetSpec("owner/unpinned", {"test": "x.jsonl"}, config="main")
PINNED = DatasetSpec("owner/unpinned", {"test": "x.jsonl"}, config="main", revision="a-tag")
ONLINE = DataOptions("hub")


@pytest.fixture()
def hub(monkeypatch: pytest.MonkeyPatch) -> FakeHub:
    """A hub in memory in the place of the real one, which may be asked."""
    found = FakeHub()
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setattr("cl_bench.tasks.sources.fetch.real_hub", lambda: found)
    return found


def test_what_the_hub_publishes_later_is_another_data_set(hub: FakeHub) -> None:
    first = hub.publish(SPEC.path, repository({"main": {"test": [math_row(1)]}}))
    assert data_identity(SPEC, ONLINE) == {"path": "owner/unpinned", "config": "main", "revision": first}
    second = hub.publish(SPEC.path, repository({"main": {"test": [math_row(2)]}}))
    assert data_identity(SPEC, ONLINE)["revision"] == second != first
    asked = len(hub.calls)
    assert data_identity(PINNED, ONLINE)["revision"] == "a-tag" and len(hub.calls) == asked


def test_what_cannot_be_had_from_the_hub_is_absent_or_said(hub: FakeHub) -> None:
    assert data_identity(SPEC, ONLINE) == {"absent": "owner/unpinned"}
    hub.publish(SPEC.path, repository({"main": {"test": [math_row(1)]}}))
    hub.network = False
    with pytest.raises(DataError, match=r"which revision of owner/unpinned(.|\n)*cannot be reached"):
        data_identity(SPEC, ONLINE)
    assert data_identity(SPEC, DataOptions("hub", offline=True)) == {"absent": "owner/unpinned"}
