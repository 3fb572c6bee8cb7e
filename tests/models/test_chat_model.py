"""One way from chats to token ids: a start token exactly once, and every token that ends an answer."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import cast

import pytest

from cl_bench.harness.models.chat_model import ChatModel
from tests.support import tiny_model

ASKED = [{"role": "user", "content": "add 1 2"}]


def beginning(writes_it: bool) -> tuple[ChatModel, int]:
    """A model whose tokenizer begins every text, with a template that writes the start token too, or does not."""
    from tokenizers.processors import TemplateProcessing

    model = tiny_model(0)
    tokenizer = copy.deepcopy(model.tokenizer)
    begin = "<|endoftext|>"
    tokenizer.bos_token = begin
    number = cast(int, tokenizer.convert_tokens_to_ids(begin))
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single=f"{begin} $A", pair=f"{begin} $A $B", special_tokens=[(begin, number)]
    )
    if writes_it:
        tokenizer.chat_template = begin + str(tokenizer.chat_template)
    return replace(model, tokenizer=tokenizer), number


@pytest.mark.parametrize("writes_it", [True, False])
def test_a_prompt_has_one_start_token_whoever_writes_it(writes_it: bool) -> None:
    model, begin = beginning(writes_it)
    ids = model.prompt_ids(ASKED)
    assert ids[0] == begin
    assert begin not in ids[1:]
    assert model.text_ids(model.render(ASKED)) == ids
    assert model.begins_prompts


def test_a_tokenizer_without_start_token_adds_none() -> None:
    model = tiny_model(0)
    assert not model.begins_prompts
    assert model.decode(model.text_ids("the sum")) == "the sum"


@pytest.mark.parametrize(("named", "further"), [(None, set()), (7, {7}), ([7, 8], {7, 8})])
def test_end_tokens_are_the_tokenizers_and_the_generation_configurations(named: object, further: set[int]) -> None:
    model = tiny_model(0)
    model.model.generation_config.eos_token_id = named
    assert model.end_ids == {model.end_id, *further}
