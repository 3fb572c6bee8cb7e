"""What an extension may not leave behind, and how it is told when it fails."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch

import cl_bench.methods.sft as sft_module
from cl_bench.harness.components import Components
from cl_bench.harness.errors import ClBenchError, DivergedError
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.methods.base import Adaptation, Fidelity, Method, MethodSettings, Modifier
from cl_bench.methods.sft import SFT
from tests.support import TinyContext, tiny_model, toy_examples, toy_stage


class Acts(Method):
    """Does what it is told to the student."""

    name: ClassVar[str] = "acts"
    fidelity: ClassVar[Fidelity] = Fidelity.RECONSTRUCTED
    Settings: ClassVar[type[MethodSettings]] = MethodSettings

    def __init__(self, act: Any) -> None:
        super().__init__()
        self._act = act

    def adapt(self, student: Any, stage: Any, context: Any) -> Any:
        return self._act(student)


class ActsAfterwards(Modifier):
    """Does what it is told after a stage."""

    name: ClassVar[str] = "acts-afterwards"
    fidelity: ClassVar[Fidelity] = Fidelity.RECONSTRUCTED
    Settings: ClassVar[type[MethodSettings]] = MethodSettings

    def __init__(self, act: Any) -> None:
        super().__init__()
        self._act = act

    def after_stage(self, student: Any, stage: Any, context: Any) -> None:
        self._act(student)


def nothing(student: ChatModel) -> Adaptation:
    return Adaptation(steps=1)


def done(act: Any) -> Any:
    def acting(student: ChatModel) -> Adaptation:
        act(student.model)
        return Adaptation(steps=1)

    return acting


def adapt(folder: Path, act: Any, afterwards: Any = None) -> Adaptation:
    modifiers: list[Modifier] = [] if afterwards is None else [ActsAfterwards(afterwards)]
    components = Components(0, Acts(act), modifiers)
    return components.adapt(tiny_model(0), toy_stage(toy_examples(6)), TinyContext(folder))[0]


def first_weight(model: Any) -> Any:
    return next(model.parameters()).data


def wrap(model: Any) -> None:
    attention = model.model.layers[0].self_attn
    attention.q_proj = torch.nn.Sequential(attention.q_proj)


def test_a_stage_that_changes_weights_alone_is_taken(tmp_path: Path) -> None:
    assert adapt(tmp_path, done(lambda model: first_weight(model).add_(1.0))).steps == 1


@pytest.mark.parametrize(
    "act",
    [
        lambda model: first_weight(model).fill_(float("nan")),
        lambda model: list(model.parameters())[-1].data.view(-1)[:1].fill_(float("inf")),
        lambda model: [parameter.data.mul_(1e11) for parameter in model.parameters()],
    ],
    ids=["nan", "one infinity", "finite weights, endless logits"],
)
def test_numbers_that_are_none_are_divergence_whoever_wrote_them(act: Any, tmp_path: Path) -> None:
    with pytest.raises(DivergedError, match="not finite after the stage"):
        adapt(tmp_path, done(act))
    with pytest.raises(DivergedError, match="not finite after the stage"):
        adapt(tmp_path, nothing, lambda student: act(student.model))


@pytest.mark.parametrize(
    ("act", "named"),
    [
        (wrap, "q_proj"),
        (lambda model: model.add_module("extra", torch.nn.Linear(3, 3)), "extra"),
        (lambda model: model.bfloat16(), "weight"),
        (lambda model: model.resize_token_embeddings(400), "embed_tokens"),
    ],
    ids=["wrapped", "added", "half precision", "resized"],
)
def test_another_model_is_refused(act: Any, named: str, tmp_path: Path) -> None:
    with pytest.raises(ClBenchError, match="acts left the model with other parameters") as caught:
        adapt(tmp_path, done(act))
    assert named in caught.value.why
    with pytest.raises(ClBenchError, match="acts with acts-afterwards left"):
        adapt(tmp_path, nothing, lambda student: act(student.model))


@pytest.mark.parametrize("returned", [None, {"steps": 3}])
def test_what_is_no_adaptation_is_refused(returned: Any, tmp_path: Path) -> None:
    with pytest.raises(ClBenchError, match="method acts returned"):
        adapt(tmp_path, lambda student: returned)


def test_the_end_of_the_process_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ClBenchError, match="acts ended the process in stage toy"):
        adapt(tmp_path, lambda student: sys.exit(0))


def test_an_exception_says_whose_code_it_came_from(tmp_path: Path) -> None:
    def fail(student: ChatModel) -> Adaptation:
        raise ValueError("oh")

    with pytest.raises(ValueError, match="oh") as caught:
        adapt(tmp_path, fail)
    assert caught.value.__notes__ == ["in the extension acts; cl-bench validate checks extensions"]
    with pytest.raises(ValueError, match="oh") as caught:
        adapt(tmp_path, nothing, fail)
    assert len(caught.value.__notes__) == 1 and "in the extension acts-afterwards" in caught.value.__notes__[0]


def test_no_extension_is_blamed_for_what_is_built_in(tmp_path: Path) -> None:
    def fail(*given: Any) -> Adaptation:
        raise KeyError("oh")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sft_module, "train_on_demonstrations", fail)
        with pytest.raises(KeyError) as caught:
            Components(0, SFT(), []).adapt(tiny_model(0), toy_stage(toy_examples(6)), TinyContext(tmp_path))
    assert not getattr(caught.value, "__notes__", [])
