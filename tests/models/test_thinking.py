from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import pytest

from cl_bench.harness.errors import UsageError
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.harness.models.thinking import with_thinking
from cl_bench.harness.spec import ModelSpec
from tests.support import tiny_model

TEMPLATE = (
    "{% for m in messages %}{{ m.content }} {% endfor %}"
    "{% if add_generation_prompt and enable_thinking is defined and not enable_thinking %}no thought {% endif %}"
)
QUESTION = [{"role": "user", "content": "add 1 2"}]


def switchable() -> ChatModel:
    chat = tiny_model()
    # Tiny models share their tokenizer.
    chat = replace(chat, tokenizer=copy.deepcopy(chat.tokenizer))
    chat.tokenizer.chat_template = TEMPLATE
    return chat


def saved(folder: Path, chat: ChatModel) -> ModelSpec:
    chat.tokenizer.save_pretrained(folder)
    return ModelSpec(name="m", fingerprint="f", source=str(folder))


def test_the_switch_is_part_of_the_model(tmp_path: Path) -> None:
    model = saved(tmp_path, switchable())
    assert with_thinking(model, None) == model
    assert with_thinking(model, False).thinking is False
    assert with_thinking(model, True) != with_thinking(model, False)


def test_a_model_without_the_switch_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="reasoning"):
        with_thinking(saved(tmp_path, tiny_model()), False)


def test_prompts_follow_the_switch() -> None:
    chat = switchable()
    default = chat.render(QUESTION)
    chat.thinking = False
    assert chat.render(QUESTION) == default + "no thought "
    chat.thinking = True
    assert chat.render(QUESTION) == default
