"""Mistakes that published trainers make and that change results: each is shown to be absent, and to be caught.

Those with a test elsewhere:

* The teacher is reloaded from the path that the student came from: ``test_gradients.test_sdft_check_catches``; for
  references and frozen teachers, here; between the stages of a run, ``end_to_end.test_anchors``.
* An average of weights kept in bf16 hardly moves: ``test_losses.test_ema_of_a_bf16_student_is_fp32_and_moves``,
  ``test_invariants.test_the_teacher_is_the_closed_form_average_of_the_students``; bf16 master weights lose updates:
  ``test_precision``.
* An average of an adapter's two factors: ``test_adapters.test_averages_of_a_and_b_are_caught``.
* A loss on generated tokens divided by the number of tokens that the rows came with:
  ``test_trl_distillation.test_planted_mistakes_in_distillation_are_caught``.
* SDFT's and on-policy distillation's KL reversed: ``test_gradients.test_sdft_check_catches``,
  ``test_distillation.test_planted_mistakes_are_caught``, ``test_trl_distillation``; ASFT's default, here.
* DFT is dynamic fine-tuning, no training on a conditioned teacher's answers: ``test_trl_supervised``.
* Gradient accumulation multiplies or divides the loss: ``test_trl_supervised``, ``test_trl_grpo``,
  ``test_gradients.test_step_does_not_depend_on_how_it_is_split``.
* SDPO's mean counts samples without a teacher as zeros: ``test_sdpo.test_planted_mistakes_are_caught``.
* iSDFT's smallest budget taken for no teacher:
  ``test_distillation.test_a_larger_budget_goes_further_towards_the_teacher``.
* SDPO's only success of a group has no teacher, a group without any teaches nothing:
  ``test_sdpo.test_the_only_success_of_a_group_has_no_teacher_unless_it_may_be_its_own``,
  ``test_sdpo.test_steps_without_a_usable_sample_change_nothing_and_are_counted``.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import cl_bench.methods.training.divergences as divergences_module
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.harness.models.load import load_folder
from cl_bench.methods.base import Stage
from cl_bench.methods.training.conditioning import conditioned_messages
from cl_bench.methods.training.losses import at_least_fp32
from cl_bench.tasks.base import Example, Score
from tests.methods.probes import (
    ON_OWN_SAMPLES,
    SHORT,
    Gradients,
    assert_close,
    by_hand,
    first_step,
    full_logits,
    make_method,
)
from tests.methods.trl_peers import moved
from tests.support import TinyContext, same_weights, tiny_model, toy_examples, toy_stage, weights

FOUR = toy_examples(4)
BY_ID = {example.id: example for example in FOUR}


def by_length(example: Example, text: str) -> Score:
    """A verdict that random text passes about every third time."""
    return Score(len(text) % 3 == 0, text, True)


def stage_of(examples: Sequence[Example] = FOUR) -> Stage:
    return Stage(2, "toy", examples, (), {"toy": by_length})


@pytest.fixture()
def trained(tmp_path: Path) -> ChatModel:
    """A student that an earlier stage has moved away from the files it names as its own."""
    fresh: Any = tiny_model(0)
    fresh.model.save_pretrained(tmp_path / "files")
    fresh.tokenizer.save_pretrained(tmp_path / "files")
    return moved(load_folder(tmp_path / "files", "tiny"), 0.1)


ANCHORED: dict[str, dict[str, Any]] = {
    "grpo": {"beta": 0.5, "updates": 1, "batch_size": 4},
    "asft": {"anchor_weight": 0.5},
    "isdft": {"anchor": "task_start", "anchor_weight": 0.5},
}
FREE: dict[str, dict[str, Any]] = {
    "grpo": {"beta": 0.0, "updates": 1, "batch_size": 4},
    "asft": {"anchor_weight": 0.0},
    "isdft": {"anchor_weight": 0.0},
}


def pull_of_the_anchor(name: str, student: ChatModel, folder: Path, start: ChatModel) -> float:
    """Norm of what the anchor adds to the gradient of a stage's first step, relative to the rest."""
    found = []
    for number, settings in enumerate((ANCHORED[name], FREE[name])):
        own = copy.deepcopy(student)
        gradients, _ = first_step(
            make_method(name, **settings), own, stage_of(), folder / f"{number}", original=start, task_start=start
        )
        found.append(torch.cat([gradient.flatten() for gradient in gradients.values()]))
    return float((found[0] - found[1]).norm() / found[1].norm())


@pytest.mark.parametrize("name", ANCHORED)
def test_a_reference_is_the_model_of_the_stages_start_in_memory(name: str, trained: ChatModel, tmp_path: Path) -> None:
    """The pull of an anchor is zero where the student stands, and only there."""
    assert pull_of_the_anchor(name, trained, tmp_path / "own", trained) < 1e-5
    from_files = load_folder(Path(trained.model.config._name_or_path), "files")
    assert pull_of_the_anchor(name, trained, tmp_path / "reloaded", from_files) > 1e-2


def frozen_teacher_gradients(name: str, student: ChatModel, folder: Path, start: ChatModel) -> Gradients:
    gradients, _ = first_step(
        make_method(name, teacher="task_start"), copy.deepcopy(student), stage_of(), folder, task_start=start
    )
    return gradients


@pytest.mark.parametrize("name", ["sdft", "opsd", "isdft"])
def test_a_frozen_teacher_is_the_model_of_the_stages_start_in_memory(
    name: str, trained: ChatModel, tmp_path: Path
) -> None:
    """At its first step a frozen teacher and the average are both the student itself."""
    averaged, _ = first_step(
        make_method(name, teacher="ema"), copy.deepcopy(trained), stage_of(), tmp_path / "ema", task_start=tiny_model(9)
    )
    assert_close(frozen_teacher_gradients(name, trained, tmp_path / "own", trained), averaged)
    from_files = load_folder(Path(trained.model.config._name_or_path), "files")
    with pytest.raises(AssertionError):
        assert_close(frozen_teacher_gradients(name, trained, tmp_path / "reloaded", from_files), averaged)


def kl_on_shared_rows(student: ChatModel, teacher: ChatModel, ledger: list[dict[str, Any]]) -> Gradients:
    """Token mean of KL(teacher || student) over the tokens that both models have, by hand."""
    size = min(student.model.config.vocab_size, teacher.model.config.vocab_size)

    def loss(model: Any) -> Tensor:
        parts = []
        for row in ledger:
            prompt = student.prompt_ids(BY_ID[row["id"]].messages)
            own = full_logits(model, prompt, row["tokens"])[:, :size].log_softmax(-1)
            with torch.no_grad():
                other = full_logits(teacher.model, prompt, row["tokens"])[:, :size].log_softmax(-1)
            parts.append((other.exp() * (other - own)).sum(-1))
        return torch.cat(parts).mean()

    return by_hand(student, loss)


def check_padded_vocabulary(folder: Path) -> None:
    student, aligner = tiny_model(0), tiny_model(1, vocabulary=len(tiny_model(0).tokenizer) + 128)
    assert aligner.model.config.vocab_size > student.model.config.vocab_size
    # The forward KL: in the reverse one a constant factor on the teacher's probabilities has no gradient.
    method = make_method("on-policy-distillation", alpha=0.0)
    gradients, context = first_step(method, copy.deepcopy(student), toy_stage(FOUR), folder, aligner=aligner)
    assert_close(gradients, kl_on_shared_rows(student, aligner, list(context.ledger)))


def test_padding_rows_of_the_aligners_vocabulary_are_cut_before_the_softmax(tmp_path: Path) -> None:
    """Models of one family pad their tables differently (Qwen2.5: 151,936 and 152,064 rows)."""
    check_padded_vocabulary(tmp_path)


def test_cutting_after_the_softmax_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def mistaken(student: Tensor, teacher: Tensor) -> tuple[Tensor, Tensor]:
        size = min(student.shape[-1], teacher.shape[-1])
        own, other = at_least_fp32(student).log_softmax(-1), at_least_fp32(teacher).detach().log_softmax(-1)
        return own[..., :size], other[..., :size]

    monkeypatch.setattr(divergences_module, "log_probs", mistaken)
    with pytest.raises(AssertionError):
        check_padded_vocabulary(tmp_path)


def test_asft_holds_by_the_forward_kl_of_its_code_by_default(tmp_path: Path) -> None:
    """The paper writes the reverse KL; the authors' code, and every published number, uses the forward one."""
    found = {}
    for direction in ("default", "forward", "reverse"):
        chosen = {} if direction == "default" else {"anchor_direction": direction}
        method = make_method("asft", anchor_weight=0.5, **chosen)
        found[direction], _ = first_step(
            method, tiny_model(0), toy_stage(FOUR), tmp_path / direction, task_start=tiny_model(3)
        )
    assert_close(found["default"], found["forward"])
    with pytest.raises(AssertionError):
        assert_close(found["default"], found["reverse"])


CONDITIONED = [name for name in ON_OWN_SAMPLES if name != "on-policy-distillation"]


def long_demonstrations(count: int) -> list[Example]:
    """The four rows and as many more whose demonstration leaves the teacher no room to score an answer."""
    long = [replace(row, id=f"long-{row.id}", demonstration="very " * 40) for row in FOUR[:count]]
    return [*FOUR, *long]


@pytest.mark.parametrize("name", CONDITIONED)
def test_a_teachers_prompt_is_never_truncated_its_row_is_dropped_and_counted(name: str, tmp_path: Path) -> None:
    """A prompt cut on the left loses the question and keeps the end of the demonstration."""
    with_long, without = tiny_model(0), tiny_model(0)
    models: dict[str, Any] = {"original": tiny_model(2), "task_start": tiny_model(3)}
    rows = long_demonstrations(3)
    adaptation = make_method(name, epochs=1).adapt(with_long, toy_stage(rows), TinyContext(tmp_path / "with", **models))
    assert adaptation.rejected == {"teacher_prompt_too_long": 3}
    make_method(name, epochs=1).adapt(without, toy_stage(FOUR), TinyContext(tmp_path / "without", **models))
    assert same_weights(weights(with_long), weights(without))


def test_the_longest_teacher_prompt_that_fits_is_shown_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    student, shown = tiny_model(0, context_length=160), list[list[int]]()
    wanted = student.prompt_ids(({"role": "user", "content": _conditioned(FOUR[0])},))
    room = student.context_length - 12 - len(wanted)
    row = replace(FOUR[0], demonstration=(FOUR[0].demonstration or "") + "x" * room)
    whole = student.prompt_ids(({"role": "user", "content": _conditioned(row)},))
    assert len(whole) + 12 == student.context_length

    forward = type(student.model.model).forward

    def watched(self: Any, input_ids: Any = None, **rest: Any) -> Any:
        shown.extend(input_ids.tolist())
        return forward(self, input_ids=input_ids, **rest)

    monkeypatch.setattr(type(student.model.model), "forward", watched)
    adaptation = make_method("sdft", epochs=1).adapt(student, toy_stage([row]), TinyContext(tmp_path))
    assert adaptation.rejected == {}
    assert any(tuple(ids[: len(whole)]) == whole for ids in shown)


def _conditioned(example: Example) -> str:
    return SHORT.replace("{question}", example.question).replace("{demonstration}", example.demonstration or "")


def test_a_siblings_answer_that_leaves_no_room_is_left_out_and_counted(tmp_path: Path) -> None:
    """SDPO's teacher sees an answer of the student's own, whose length nobody knows beforehand."""
    student, context = tiny_model(0, context_length=86), TinyContext(tmp_path)
    method = make_method("sdpo", max_completion_length=24, max_length=86, updates=1, batch_size=4, epochs=1)
    right = Stage(1, "toy", FOUR, (), {"toy": lambda example, text: Score(True, text, True)})
    adaptation = method.adapt(student, right, context)
    groups = [list(context.ledger)[start : start + 3] for start in range(0, 12, 3)]
    too_long = 0
    for group in groups:
        for index, sample in enumerate(group):
            sibling = group[1 if index == 0 else 0]["text"]
            messages = conditioned_messages(BY_ID[sample["id"]], SHORT, sibling)
            too_long += len(student.prompt_ids(messages)) + len(sample["tokens"]) > student.context_length
    assert 0 < too_long < 12
    assert adaptation.rejected == {"teacher_prompt_too_long": too_long}
    assert adaptation.data_generation["usable_samples_share"] == 1 - too_long / 12
