"""Going on with a run: what was not said again is as it was."""

from __future__ import annotations

import json
from pathlib import Path

from cl_bench.harness.commands.resume import as_before
from cl_bench.harness.run_directory import MANIFEST
from cl_bench.harness.spec import Execution


def test_places_and_device_are_those_of_the_last_session_unless_given(tmp_path: Path) -> None:
    earlier = {"data_root": "/data", "gold_ids": None, "include_paths": ["/mine"], "device": "cuda:1"}
    sessions = [{"execution": {"device": "cpu"}}, {"execution": earlier}]
    (tmp_path / MANIFEST).write_text(json.dumps({"sessions": sessions}))
    found = as_before(tmp_path, Execution(), None)
    assert (found.device, found.data_root, found.include_paths) == ("cuda:1", Path("/data"), (Path("/mine"),))
    given = as_before(tmp_path, Execution(data_root=Path("/other")), "cpu")
    assert (given.device, given.data_root) == ("cpu", Path("/other"))


def test_a_run_without_manifest_takes_the_options_alone(tmp_path: Path) -> None:
    assert as_before(tmp_path, Execution(), None) == Execution()
