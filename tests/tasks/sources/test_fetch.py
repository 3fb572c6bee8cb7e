"""What ``huggingface_hub`` itself does, against a server of its protocol on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cl_bench.tasks.sources.fetch import FetchError, download, look_up
from cl_bench.tasks.sources.locate import DatasetSpec
from cl_bench.tasks.sources.prepare import prepare
from cl_bench.tasks.sources.wanted import Need, Outcome, wanted_sets
from tests.tasks.sources.fake_hub import FakeHub, commit_of, repository
from tests.tasks.sources.hub_server import serving
from tests.tasks.sources.rows import math_row

PATH = "owner/name"
ROWS = {"train": [math_row(number) for number in range(400)], "test": [math_row(3)]}
SPEC = DatasetSpec(PATH, {"train": "x_train.jsonl", "test": "x_test.jsonl"}, "main", fields={"question": "str"})


@pytest.fixture()
def hub() -> FakeHub:
    hub = FakeHub()
    hub.publish(PATH, repository({"second": ROWS, "main": ROWS}))
    return hub


@pytest.fixture()
def api(hub: FakeHub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """The library's own client, of a server on this machine."""
    from huggingface_hub import HfApi, constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub-cache"))
    with serving(hub) as endpoint:
        yield HfApi(endpoint=endpoint)


def have(root: Path, api: Any, spec: DatasetSpec = SPEC) -> Outcome:
    (outcome,) = prepare(wanted_sets([Need("task", spec)]), root, hub=api)
    return outcome


@pytest.mark.parametrize("large", [True, False], ids=["sha256", "git"])
def test_the_library_delivers_what_the_hub_says(tmp_path: Path, hub: FakeHub, api: Any, large: bool) -> None:
    hub.large = large
    outcome = have(tmp_path / "data", api)
    assert (outcome.state, outcome.rows) == ("downloaded", {"train": 400, "test": 1})
    assert outcome.found is not None and outcome.found.licence == "mit"
    assert hub.downloads()[0] == "README.md" and set(hub.downloads()[1:]) == {"main/train.jsonl", "main/test.jsonl"}
    assert sorted(path.name for path in (tmp_path / "data" / PATH).iterdir()) == ["README.md", "main"]
    hub.calls.clear()
    assert have(tmp_path / "data", api).state == "present"
    assert hub.calls == []


def test_a_connection_that_breaks_off_leaves_nothing_that_counts(tmp_path: Path, hub: FakeHub, api: Any) -> None:
    hub.cut = {"main/train.jsonl"}
    outcome = have(tmp_path, api)  # the library tries again by itself
    assert outcome.state == "downloaded"
    assert (tmp_path / PATH / "main" / "train.jsonl").read_bytes() == hub.repositories[PATH][commit_of(10)][
        "main/train.jsonl"
    ]


def test_other_bytes_than_the_hub_says_are_removed(tmp_path: Path, hub: FakeHub, api: Any) -> None:
    hub.wrong = {"main/test.jsonl"}
    outcome = have(tmp_path, api)
    assert outcome.state == "failed" and "main/test.jsonl: its bytes" in outcome.detail
    assert not list(tmp_path.rglob("test.jsonl"))
    hub.wrong.clear()
    assert have(tmp_path, api).state == "downloaded"


def test_refusals_are_told_apart(tmp_path: Path, hub: FakeHub, api: Any) -> None:
    with pytest.raises(FetchError, match="there is no") as caught:
        look_up(api, "owner/nowhere", None)
    assert (caught.value.state, caught.value.final) == ("absent", False)
    with pytest.raises(FetchError, match="no revision deadbeef"):
        look_up(api, PATH, "deadbeef")
    remote = look_up(api, PATH, None)
    assert remote.commit == commit_of(10)
    hub.gated = {PATH}
    with pytest.raises(FetchError, match="accept the terms") as caught:
        download(api, remote, ["README.md"], tmp_path)
    assert caught.value.state == "gated"


def test_nobody_there_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import HfApi, constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    with pytest.raises(FetchError, match="cannot be reached") as caught:
        look_up(HfApi(endpoint="http://127.0.0.1:9"), PATH, None)
    assert caught.value.final
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(FetchError, match="told to stay offline") as caught:
        look_up(HfApi(), PATH, None)
    assert caught.value.final
