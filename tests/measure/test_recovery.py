"""Recovery probes: each finds what was planted for it, and the counts say no more than the probes do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from cl_bench.harness.documents import validate_document
from cl_bench.harness.errors import StoreError, UnknownNameError, UsageError
from cl_bench.harness.measure.items.causes import Cause
from cl_bench.harness.measure.items.forced_opening import forced_opening
from cl_bench.harness.measure.items.openings import Frame
from cl_bench.harness.measure.items.option_likelihood import likeliest, option_likelihood
from cl_bench.harness.measure.items.probed import Attempt, ProbedColumn, ProbeInput
from cl_bench.harness.measure.items.recovery import MOST_CONTROLS, Rate, recover_column
from cl_bench.harness.measure.items.recovery_file import RECOVERY, evidence, read_recovery, with_row
from cl_bench.harness.measure.items.relearning import Relearning, relearning, trained_copy
from cl_bench.harness.measure.items.run_recovery import chosen_row, relearning_settings
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.harness.run_directory import load_run
from cl_bench.methods.training.rows import TrainingRow
from cl_bench.reports.items import plain_text, recovery_grid
from tests.measure.items_run import column, run_spec, sample, samples, write_run
from tests.support import same_weights, weights

WRONG: Cause = "wrong answer"
FORMAT: Cause = "format failure"


class PlantedColumn(ProbedColumn):
    """Items that come back under one probe each, by name: ``opening-*``, ``known-*``, ``seen-*``; others never do."""

    name = "planted"

    def __init__(self, lessons: int = 8) -> None:
        self.count, self.taught = lessons, False

    def check(self, model: ChatModel, samples: Sequence[object]) -> None:
        """Nothing to compare."""

    def answers(self, model: ChatModel, ids: Sequence[str], opening: str = "") -> dict[str, bool]:
        wanted = "opening" if opening else "seen"
        return {name: name.startswith(wanted) for name in ids}

    def ranks_gold_first(self, model: ChatModel, ids: Sequence[str], frame: Frame) -> dict[str, bool]:
        return {name: name.startswith("known") for name in ids}

    def right_by(self, text: str) -> set[str]:
        return set()

    def lessons(self, base: ChatModel, most: int) -> list[TrainingRow]:
        return [TrainingRow(str(number), (5, 6, 7), (8, 9, base.end_id)) for number in range(min(most, self.count))]


BASE = [sample(number, True, response=f"We note that it is {number}.", parsed=str(number)) for number in range(4)]


def asked(model: ChatModel, ids: Sequence[str] = ("a",), lessons: int = 8) -> ProbeInput:
    return ProbeInput(PlantedColumn(lessons), model, lambda: model, BASE, ids)


@pytest.fixture()
def tried() -> dict[str, object]:
    settings = Relearning(steps=1, rows=8)
    return {
        "option_likelihood": option_likelihood,
        "forced_opening": forced_opening,
        "relearning": lambda given: relearning(given, settings),
    }


def test_each_probe_recovers_what_was_planted_for_it(tiny_model: ChatModel, tried: dict[str, object]) -> None:
    forgotten = {"opening-1": FORMAT, "opening-2": WRONG, "known-1": WRONG, "seen-1": WRONG, "gone-1": WRONG}
    never = {"never-1": WRONG, "opening-9": WRONG, "never-2": FORMAT}
    found = recover_column(lambda ids: asked(tiny_model, ids), "planted", forgotten, never, tried)  # type: ignore[arg-type]
    rates = {name: found.rate("forgotten", name) for name in tried}
    assert rates == {
        "option_likelihood": Rate(5, 1),
        "forced_opening": Rate(5, 2),
        "relearning": Rate(5, 1),
    }
    assert found.rate("forgotten") == Rate(5, 4)
    assert found.rate("forgotten", cause=FORMAT) == Rate(1, 1)
    assert found.rate("never_right") == Rate(3, 1), "the control shows what probes recover that was never there"
    assert found.probes["forced_opening"]["details"] == {"opening": "We note that it is"}
    document = found.to_json()
    assert document["forgotten"]["not_recovered"] == 1
    assert document["forgotten"]["causes"][WRONG] == {"tried": 4, "recovered": 3}


def test_an_item_that_no_probe_was_tried_on_is_not_called_lost() -> None:
    def not_here(_: ProbeInput) -> Attempt:
        return Attempt(reason="not here")

    def of_one(_: ProbeInput) -> Attempt:
        return Attempt({"a": False})

    found = recover_column(lambda ids: None, "c", {"a": WRONG, "b": WRONG}, {}, {"x": not_here, "y": of_one})  # type: ignore[arg-type,return-value]
    assert [item.by_any for item in found.items] == [False, None]
    assert found.rate("forgotten") == Rate(1, 0)
    assert found.to_json()["forgotten"]["not_recovered"] == 1
    assert found.probes["x"]["reason"] == "not here"


def test_controls_are_a_fixed_choice(tiny_model: ChatModel) -> None:
    never = {f"never-{number}": WRONG for number in range(2 * MOST_CONTROLS)}
    seen: list[Sequence[str]] = []

    def look(given: ProbeInput) -> Attempt:
        seen.append(given.ids)
        return Attempt({name: False for name in given.ids})

    for order in (never, dict(reversed(never.items()))):
        found = recover_column(lambda ids: asked(tiny_model, ids), "c", {"a": WRONG}, order, {"x": look})
        assert found.never_right == 2 * MOST_CONTROLS and found.rate("never_right").tried == MOST_CONTROLS
    assert set(seen[0]) == set(seen[1]) and seen[0][0] == "a"


def test_probes_say_why_they_cannot_be_applied(tiny_model: ChatModel) -> None:
    scored = [sample(0, True, response=None, loglikelihoods=[-1.0, -2.0], parsed="0", ended="scored")]
    by_options = ProbeInput(PlantedColumn(), tiny_model, lambda: tiny_model, scored, ("a",))
    for probe in (option_likelihood, forced_opening):
        assert "log-likelihoods" in (probe(by_options).reason or "")
    silent = ProbeInput(PlantedColumn(), tiny_model, lambda: tiny_model, BASE[:1], ("a",))
    assert "in common" in (forced_opening(silent).reason or "")
    few = relearning(asked(tiny_model, lessons=3), Relearning())
    assert "right on 3 dev rows" in (few.reason or "") and few.details == {"rows": 3}


def test_relearning_trains_a_copy_and_the_same_one_every_time(tiny_model: ChatModel) -> None:
    rows = [TrainingRow(str(n), (5, 6, 7 + n), (20 + n, 30, tiny_model.end_id)) for n in range(10)]
    settings = Relearning(steps=40, learning_rate=1e-2, micro_batch_size=4)
    before, state = weights(tiny_model), torch.get_rng_state()
    trained = trained_copy(tiny_model, rows, settings)
    assert same_weights(before, weights(tiny_model)) and torch.equal(state, torch.get_rng_state())
    assert same_weights(weights(trained), weights(trained_copy(tiny_model, rows[::-1], settings)))

    def loss(model: ChatModel) -> float:
        from cl_bench.harness.measure.loglikelihood import loglikelihoods

        scores = loglikelihoods(model, [(row.prompt_ids, row.completion_ids) for row in rows])
        return -sum(score.logprob for score in scores)

    assert loss(trained) < 0.5 * loss(tiny_model)
    whole = trained_copy(tiny_model, rows, Relearning(steps=3, learning_rate=1e-2, micro_batch_size=10))
    parts = trained_copy(tiny_model, rows, Relearning(steps=3, learning_rate=1e-2, micro_batch_size=3))
    for one, other in zip(whole.model.parameters(), parts.model.parameters(), strict=True):
        assert torch.allclose(one, other, atol=1e-4)


def test_twenty_steps_on_at_most_thirty_two_lessons(tiny_model: ChatModel, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[int] = []
    step = torch.optim.AdamW.step

    def counted(self: torch.optim.AdamW, closure: None = None) -> object:
        steps.append(1)
        return step(self, closure)

    monkeypatch.setattr(torch.optim.AdamW, "step", counted)
    found = relearning(asked(tiny_model, ids=("seen-1", "gone-1"), lessons=100), Relearning(learning_rate=1e-3))
    assert (len(steps), found.details) == (20, {"rows": 32})
    assert found.right == {"seen-1": True, "gone-1": False}


def test_the_likeliest_option_by_what_tells_options_apart(tiny_model: ChatModel) -> None:
    prompt = tiny_model.prompt_ids(({"role": "user", "content": "which?"},))

    def mean(candidate: str, shared: int) -> float:
        ids = tiny_model.tokenizer(candidate, add_special_tokens=False)["input_ids"]
        with torch.no_grad():
            logits = tiny_model.model(torch.tensor([[*prompt, *ids]])).logits[0].log_softmax(-1)
        steps = range(shared, len(ids))
        return sum(float(logits[len(prompt) + step - 1, ids[step]]) for step in steps) / len(steps)

    candidates = ["the sum is 7.", "the sum is 19.", "the sum is 250."]
    shared = len(tiny_model.tokenizer("the sum is ", add_special_tokens=False)["input_ids"])
    expected = max(range(3), key=lambda index: mean(candidates[index], shared))
    assert likeliest(tiny_model, prompt, candidates) == expected
    assert [likeliest(tiny_model, prompt, candidates[::-1])] == [2 - expected]
    assert likeliest(tiny_model, prompt, ["4", "44"]) in (0, 1)
    assert likeliest(tiny_model, prompt, ["4", "4"]) is None
    assert likeliest(tiny_model, prompt, ["4"]) is None
    assert likeliest(tiny_model, prompt, ["4" * 200, "5"]) is None, "it does not fit the context"


def test_the_row_to_probe(tmp_path: Path) -> None:
    rows = {name: {"one": samples("10")} for name in ("base", "one")}
    view = load_run(write_run(tmp_path, [column("one")], rows))
    with pytest.raises(UsageError, match="after a stage"):
        chosen_row(view, "base")
    with pytest.raises(UnknownNameError):
        chosen_row(view, "on")
    with pytest.raises(StoreError, match="weights after stage one are gone") as error:
        chosen_row(view, None)
    assert "--keep-checkpoints" in error.value.hint


def test_copies_are_trained_alike_for_every_method() -> None:
    spec = run_spec([("one", "one")])
    fast = spec.model_copy(
        update={"method": spec.method and spec.method.model_copy(update={"settings": {"learning_rate": 9.0}})}
    )
    assert relearning_settings(spec) == relearning_settings(fast)
    assert relearning_settings(spec).learning_rate == 5e-4
    assert relearning_settings(spec.model_copy(update={"recipe": "gone.yaml"})).learning_rate == 5e-5


PART = {
    "before": "base",
    "evidence": "e",
    "settings": {"steps": 20, "rows": 32, "learning_rate": 5e-4},
    "columns": {},
}


def column_part(name: str, recovered: int) -> dict[str, object]:
    rate = {"tried": 4, "recovered": recovered}
    group = {"n": 4, "any": rate, "not_recovered": 4 - recovered, "probes": {"forced_opening": rate}}
    whole = group | {"causes": {FORMAT: {"tried": 1, "recovered": 1}, WRONG: {"tried": 3, "recovered": recovered - 1}}}
    none = {"reason": "no options", "details": {}}
    probes = {"option_likelihood": none, "forced_opening": {"reason": None, "details": {}}, "relearning": none}
    for side in (whole["probes"],):
        side.update({"option_likelihood": {"tried": 0, "recovered": 0}, "relearning": {"tried": 0, "recovered": 0}})  # type: ignore[attr-defined]
    return {"column": name, "reason": None, "forgotten": whole, "never_right": whole, "probes": probes, "items": []}


def test_columns_measured_alike_are_kept_together() -> None:
    first = with_row({}, "one", PART | {"columns": {"a": column_part("a", 1)}})
    both = with_row(first["rows"], "one", PART | {"columns": {"b": column_part("b", 2)}})
    validate_document(both, "recovery")
    assert list(both["rows"]["one"]["columns"]) == ["a", "b"]
    other = with_row(both["rows"], "one", PART | {"settings": PART["settings"] | {"steps": 5}, "columns": {}})  # type: ignore[operator]
    assert other["rows"]["one"]["columns"] == {}
    text = plain_text(recovery_grid("one", both["rows"]["one"]))
    row = next(line for line in text.splitlines() if line.startswith("all")).split()
    assert row == ["all", "8", "2", "-", "3/8", "-", "3/8", "5", "3/8"]
    assert "a, b: no recovery by options: no options" in text


def test_what_was_measured_on_other_samples_is_not_shown(tmp_path: Path) -> None:
    from cl_bench.harness.files import write_json

    rows = {"base": {"one": samples("10")}, "one": {"one": samples("01")}}
    view = load_run(write_run(tmp_path, [column("one")], rows))
    assert read_recovery(view) == {}
    part = PART | {"evidence": evidence(view, "one"), "columns": {"one": column_part("one", 1)}}
    write_json(view.directory / RECOVERY, with_row({}, "one", part))
    assert list(read_recovery(view)) == ["one"]
    write_json(view.directory / RECOVERY, with_row({}, "one", part | {"evidence": "other"}))
    assert read_recovery(view) == {}
    write_json(view.directory / RECOVERY, {"rows": {}})
    with pytest.raises(StoreError, match="schema"):
        read_recovery(view)
