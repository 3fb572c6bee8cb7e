from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import cast

import pytest
import torch

from cl_bench.harness.errors import UsageError
from cl_bench.harness.generation.base import Completion, GenerationSettings, Prompt, Sampler
from cl_bench.harness.generation.local import LocalSampler
from cl_bench.harness.measure.loglikelihood import ContinuationScore
from cl_bench.harness.measure.suite import SuiteRunner, run_suite
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.tasks.lab.skills import SKILLS, skill_task
from cl_bench.tasks.lab.styles import STYLES, render
from cl_bench.tasks.retention.suites import SuiteEntry, load_suite
from cl_bench.tasks.sources.base import DataOptions
from tests.support import same_weights, weights
from tests.support import tiny_model as make_model
from tests.tasks.retention.rows import file_rows, write_flat
from tests.tasks.sources.rows import math_row, write_hub_folder, write_jsonl

SUITES = Path(str(files("cl_bench.tasks.retention")))
SAMPLE_KEYS = {"task", "id", "prompt_hash", "correct", "parsed", "format_ok", "tokens", "ended"}


class Oracle(Sampler):
    """Answers each lab question with its gold answer in one style."""

    def __init__(self, model: ChatModel, style: str, split: str = "test") -> None:
        self.context_length = 1000
        self._texts: dict[tuple[int, ...], str] = {}
        for skill in SKILLS:
            task = skill_task(skill.name)
            for example in task.test() if split == "test" else task.dev():
                text = render(style, example.meta["reasoning"], str(example.answer))
                self._texts[model.prompt_ids(example.messages)] = text

    def generate(self, prompts: Sequence[Prompt], settings: GenerationSettings) -> list[Completion]:
        return [Completion((1, 2, 3), self._texts[prompt.ids], "eos", ()) for prompt in prompts]


def lab_entries(kind: str) -> list[SuiteEntry]:
    kinds = {skill.name: skill.kind for skill in SKILLS}
    return [entry for entry in load_suite(SUITES / "lab.yaml") if kinds[entry.task] == kind]


@pytest.fixture(scope="module")
def generating_skills() -> SuiteRunner:
    return SuiteRunner(lab_entries("generate"), DataOptions(), rows=20)


@pytest.mark.parametrize("style", sorted(STYLES))
def test_gold_in_every_declared_style_scores_one(
    tiny_model: ChatModel, generating_skills: SuiteRunner, style: str
) -> None:
    results = generating_skills.run(tiny_model, Oracle(tiny_model, style))
    assert {name: result.value for name, result in results.items()} == dict.fromkeys(results, 1.0)
    for result in results.values():
        # A bare answer is right, but it is no answer in the form of any style.
        assert result.counts["strict"] == (0 if style == "BARE" else 20)
        assert result.counts["n"] == 20 and result.tokens == 60
        assert set(result.samples[0]) == SAMPLE_KEYS | {"response"}


def test_dev_rows_are_other_rows(tiny_model: ChatModel) -> None:
    entries = lab_entries("generate")[:2]
    dev = SuiteRunner(entries, DataOptions(), split="dev").run(tiny_model, Oracle(tiny_model, "HOUSE", "dev"))
    test = SuiteRunner(entries, DataOptions()).run(tiny_model, Oracle(tiny_model, "HOUSE"))
    for name in dev:
        assert dev[name].value == 1.0
        assert not {row["id"] for row in dev[name].samples} & {row["id"] for row in test[name].samples}


def test_multiple_choice_prefers_the_likeliest_choice(tiny_model: ChatModel) -> None:
    results = run_suite(tiny_model, lab_entries("multiple_choice"), LocalSampler(tiny_model), DataOptions(), rows=10)
    for name, result in results.items():
        gold = {e.id: e.meta["gold_index"] for e in skill_task(name.removeprefix("lab-")).test()}
        assert len(result.samples) == 10
        for row in result.samples:
            assert set(row) == SAMPLE_KEYS | {"loglikelihoods"}
            assert row["parsed"] == str(max(range(len(row["loglikelihoods"])), key=row["loglikelihoods"].__getitem__))
            assert row["correct"] == (row["parsed"] == str(gold[row["id"]]))
        assert result.value == result.counts["correct"] / 10
        json.dumps(result.results_json())


def test_one_runner_serves_every_model_as_a_fresh_one_would(tiny_model: ChatModel) -> None:
    entries = load_suite(SUITES / "lab.yaml")[:5]
    other = make_model(seed=1)
    runner = SuiteRunner(entries, DataOptions(), rows=6)
    first = runner.run(tiny_model, LocalSampler(tiny_model))
    second = runner.run(other, LocalSampler(other))
    fresh = SuiteRunner(entries, DataOptions(), rows=6).run(other, LocalSampler(other))
    again = runner.run(tiny_model, LocalSampler(tiny_model))
    for name in first:
        assert second[name].samples == fresh[name].samples and second[name].value == fresh[name].value
        assert again[name].samples == first[name].samples
    assert any(first[name].samples != second[name].samples for name in first)


def test_a_suite_leaves_no_trace(capfd: pytest.CaptureFixture[str]) -> None:
    model = make_model(seed=2)
    model.model.train()
    before, state = weights(model), torch.get_rng_state()
    SuiteRunner(load_suite(SUITES / "lab.yaml")[:4], DataOptions(), rows=4).run(model, LocalSampler(model))
    assert model.model.training and torch.equal(state, torch.get_rng_state())
    assert same_weights(before, weights(model))
    assert capfd.readouterr() == ("", "")


def public_rows(root: Path) -> None:
    write_jsonl(root / "hellaswag.jsonl", file_rows("hellaswag", 12))
    write_jsonl(root / "piqa.jsonl", file_rows("piqa", 12))
    write_jsonl(root / "gsm8k_train.jsonl", [math_row(n) for n in range(1, 21)])
    write_jsonl(root / "gsm8k_test.jsonl", [math_row(n) for n in range(30, 42)])


def test_lm_evals_own_definitions_run_on_flat_files_and_on_hub_shaped_folders(tmp_path: Path) -> None:
    public_rows(tmp_path / "flat")
    hellaswag, piqa, train, test = (
        [json.loads(line) for line in (tmp_path / "flat" / f"{name}.jsonl").read_text().splitlines()]
        for name in ("hellaswag", "piqa", "gsm8k_train", "gsm8k_test")
    )
    for name, rows in (("Rowan/hellaswag", hellaswag), ("baber/piqa", piqa)):
        write_hub_folder(tmp_path / "hub", name, {"default": {"train": rows, "validation": rows}})
    write_hub_folder(tmp_path / "hub", "openai/gsm8k", {"main": {"train": train, "test": test}})
    model = make_model(context_length=2048)
    entries = load_suite(SUITES / "retention-local.yaml", "smoke")
    by_layout = {
        layout: SuiteRunner(entries, DataOptions("hub", tmp_path / layout), rows=5).run(model, LocalSampler(model))
        for layout in ("flat", "hub")
    }
    for name, result in by_layout["flat"].items():
        assert result.value is not None and result.counts["n"] == 5
        assert result.samples == by_layout["hub"][name].samples and result.value == by_layout["hub"][name].value
    assert set(by_layout["flat"]["gsm8k"].harness) == {"exact_match,strict-match", "exact_match,flexible-extract"}
    assert by_layout["flat"]["gsm8k"].settings["shots"] == 5
    for result in by_layout["flat"].values():
        assert list(result.values) == [result.metric, "above_chance", "parsed_rate", "truncated_rate"]
        assert result.value is not None
        assert result.values["above_chance"] == (result.value - result.chance) / (1 - result.chance)
        assert result.values["parsed_rate"] == result.counts["parsed"] / 5


def test_absent_data_is_a_reason_and_too_long_rows_are_skipped(tmp_path: Path, tiny_model: ChatModel) -> None:
    public_rows(tmp_path)
    (tmp_path / "piqa.jsonl").unlink()
    entries = load_suite(SUITES / "retention-local.yaml", "smoke")
    results = SuiteRunner(entries, DataOptions("hub", tmp_path), rows=5).run(tiny_model, LocalSampler(tiny_model))
    assert list(results) == ["hellaswag", "piqa", "gsm8k"]
    assert results["piqa"].value is None and "piqa.jsonl" in str(results["piqa"].reason)
    assert results["piqa"].chance == 0.5 and results["piqa"].samples == []
    # Five worked examples do not fit 160 tokens.
    assert results["gsm8k"].value is None and "too long" in str(results["gsm8k"].reason)
    assert results["gsm8k"].counts["skipped"] == 5 and results["gsm8k"].counts["n"] == 0
    assert results["hellaswag"].value is not None


def test_means_leave_out_skipped_rows(tmp_path: Path, tiny_model: ChatModel) -> None:
    rows = [
        {"id": f"p-{n}", "goal": "tie" if n else "tie " * 60, "sol1": "use rope", "sol2": "use rope", "label": 0}
        for n in range(6)
    ]
    write_jsonl(tmp_path / "piqa.jsonl", rows)
    entry = next(e for e in load_suite(SUITES / "retention-local.yaml", "full") if e.name == "piqa")
    result = run_suite(tiny_model, [entry], LocalSampler(tiny_model), DataOptions("hub", tmp_path))["piqa"]
    # Equal options: the first is preferred, and it is right in every row that fits.
    assert result.counts | {"n": 5, "correct": 5, "skipped": 1} == result.counts
    assert result.value == result.harness["acc_norm,none"] == 1.0
    assert [row["ended"] for row in result.samples].count("skipped") == 1


def test_a_task_that_lm_eval_does_not_have_is_a_usage_error(tmp_path: Path, tiny_model: ChatModel) -> None:
    public_rows(tmp_path)
    entry = SuiteEntry(
        "x", "lm-eval", "no-such-task", "acc", 0.0, data={"path": "a/b", "files": {"test": "piqa.jsonl"}}
    )
    with pytest.raises(UsageError, match="no-such-task"):
        run_suite(tiny_model, [entry], LocalSampler(tiny_model), DataOptions("hub", tmp_path))


def test_the_hash_of_prompts_changes_with_any_prompt_and_with_nothing_else(tmp_path: Path) -> None:
    public_rows(tmp_path)
    entry = next(e for e in load_suite(SUITES / "retention-local.yaml", "full") if e.name == "piqa")

    def prompts(entry: SuiteEntry, seed: int = 0) -> str:
        model = make_model(seed)
        result = run_suite(model, [entry], LocalSampler(model), DataOptions("hub", tmp_path))["piqa"]
        return str(result.settings["prompts_sha256"])

    first = prompts(entry)
    assert prompts(entry, seed=1) == first
    assert prompts(replace(entry, chance=0.4)) == first
    assert prompts(replace(entry, chat_template=True)) != first
    assert prompts(replace(entry, rows=11)) != first
    rows = [json.loads(line) for line in (tmp_path / "piqa.jsonl").read_text().splitlines()]
    write_jsonl(tmp_path / "piqa.jsonl", [rows[0] | {"goal": "tie another knot"}, *rows[1:]])
    assert prompts(entry) != first


class BeginningSampler(Sampler):
    """Keeps the prompts that it is asked to complete."""

    def __init__(self) -> None:
        self.context_length = 20_000
        self.asked: list[tuple[int, ...]] = []

    def generate(self, prompts: Sequence[Prompt], settings: GenerationSettings) -> list[Completion]:
        self.asked += [prompt.ids for prompt in prompts]
        return [Completion((1,), "", "eos", ()) for _ in prompts]


@pytest.mark.parametrize("chat_template", [False, True])
def test_every_prompt_of_the_fourteen_begins_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chat_template: bool
) -> None:
    """A tokenizer that begins every text, and a template that writes the same token: one of them must give way."""
    from tokenizers.processors import TemplateProcessing

    model = make_model(context_length=20_000)
    tokenizer = copy.deepcopy(model.tokenizer)
    tokenizer.bos_token = "<|endoftext|>"
    begin = cast(int, tokenizer.convert_tokens_to_ids("<|endoftext|>"))
    tokenizer.chat_template = "<|endoftext|>" + str(tokenizer.chat_template)
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="<|endoftext|> $A", pair="<|endoftext|> $A $B", special_tokens=[("<|endoftext|>", begin)]
    )
    assert list(tokenizer("a")["input_ids"]).count(begin) == 1
    write_flat(tmp_path)
    sampler = BeginningSampler()
    contexts: list[list[int]] = []

    def scored(
        _: ChatModel, requests: Sequence[tuple[Sequence[int], Sequence[int]]], *__: object
    ) -> list[ContinuationScore]:
        contexts.extend([*context, *rest] for context, rest in requests)
        return [ContinuationScore(-1.0, False, ())] * len(requests)

    monkeypatch.setattr("cl_bench.harness.measure.lm_eval_model.loglikelihoods", scored)
    entries = [replace(e, chat_template=chat_template) for e in load_suite(SUITES / "retention-14.yaml", "smoke")]
    options = DataOptions("hub", tmp_path, allow_code=True)
    results = SuiteRunner(entries, options, rows=2).run(replace(model, tokenizer=tokenizer), sampler)
    assert {result.counts["n"] for result in results.values()} == {2}
    assert len(sampler.asked) == 12 and len(contexts) > 30
    for ids in [*sampler.asked, *contexts]:
        assert list(ids).count(begin) == 1 and ids[0] == begin
