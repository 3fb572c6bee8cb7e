"""A user's own suite on the command line: checked by ``validate suite``, and taken with one of its own tiers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cl_bench.harness.errors import UnknownNameError
from cl_bench.harness.profile_files import load_profile
from cl_bench.harness.registry import Registry
from cl_bench.harness.request import Request
from cl_bench.harness.spec import DataSpec, Execution
from cl_bench.harness.suite_choice import resolved_suite, suite_tier
from tests.cli.conftest import Cli
from tests.tasks.sources.rows import write_jsonl

SUITE = """
name: mine
tiers: {tiny: 2, mini: 5}
tasks:
  - {source: lab-skill, metric: acc, task: copy}
  - {name: piqa, source: lm-eval, task: piqa, metric: acc, chance: 0.5, data: {path: o/n, files: {validation: p.jsonl}}}
"""


def test_validate_suite_builds_what_has_rows(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "suites").mkdir()
    file = tmp_path / "suites" / "mine.yaml"
    file.write_text(SUITE)
    for name in ("mine", "suites/mine.yaml"):
        done = cli("validate", "suite", name, "--include-path", ".", "--data-root", ".")
        lines = done.out.splitlines()
        assert done.code == 0 and lines[:2] == ["suite mine", "  tiers: tiny 2, mini 5"]
        assert lines[2].startswith("  ok    lab-copy: acc, chance 0, 0 shots, 100 rows")
        assert lines[3].startswith("  skip  piqa: acc") and "p.jsonl" in lines[3]
    row = {"goal": "To dry a cup", "sol1": "wipe it", "sol2": "fill it", "label": 0}
    write_jsonl(tmp_path / "p.jsonl", [row, row | {"goal": "To fill a cup", "label": 7}])
    done = cli("validate", "suite", "mine", "--include-path", ".", "--data-root", ".", "--json")
    assert done.code == 1 and "cannot be scored" in json.loads(done.out)["checks"][1]["problem"]
    file.write_text(SUITE.replace("metric: acc, chance", "metric: ac, chance"))
    write_jsonl(tmp_path / "p.jsonl", [row])
    done = cli("validate", "suite", "mine", "--include-path", ".", "--data-root", ".")
    assert done.code == 1 and "did you mean acc" in done.out
    file.write_text("tasks: []")
    assert cli("validate", "suite", "mine", "--include-path", ".").code == 2
    assert cli("validate", "suite", "absent").code == 2 and cli("validate", "suite", "absent.yaml").code == 2


def test_a_suite_without_the_profiles_tier_is_taken_with_its_first(cli: Cli, tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "mine.yaml").write_text(SUITE)
    registry, data = Registry([tmp_path]), DataSpec(source="lab")
    execution = Execution(output=tmp_path, data_root=tmp_path, include_paths=(tmp_path,))
    notes: list[str] = []
    profile = load_profile("lab")
    tier = suite_tier(Request(suite="mine"), profile)
    suite = resolved_suite("mine", tier, registry, data, execution, notes.append)
    assert suite is not None and (suite.tier, suite.tasks[0]["rows"]) == ("tiny", 2)
    assert len(notes) == 1 and "no tier fast" in notes[0] and "tiny" in notes[0]
    with pytest.raises(UnknownNameError, match="fast"):
        resolved_suite("mine", suite_tier(Request(suite="mine", tier="fast"), profile), registry, data, execution)
    lab = resolved_suite("lab", tier, registry, data, execution, notes.append)
    assert lab is not None and lab.tier == "fast" and len(notes) == 1
    text = f"method: sft\nsequence: science\nprofile: lab\nsuite: mine\nmodel: {tiny}\n"
    (tmp_path / "request.yaml").write_text(text)
    assert cli("validate", "spec", "request.yaml", "--include-path", ".", "--data-root", ".").code == 0
    (tmp_path / "request.yaml").write_text(text + "tier: fast\n")
    assert cli("validate", "spec", "request.yaml", "--include-path", ".", "--data-root", ".").code == 2
