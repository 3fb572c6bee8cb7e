"""The local sampler: tokens of a row depend on the row alone; equal prompts share a prefill; nothing is left behind."""

from __future__ import annotations

import random

import pytest
import torch

from cl_bench.harness.errors import UsageError
from cl_bench.harness.generation.base import Completion, GenerationSettings, Prompt
from cl_bench.harness.generation.local import LocalSampler
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.harness.seeds import global_seed, preserved_rng, row_seed, row_uniforms
from tests.support import tiny_model


def prompts(count: int, longest: int = 60) -> list[Prompt]:
    draw = random.Random(3)
    lengths = [draw.randint(2, longest) for _ in range(count)]
    rows = [Prompt(tuple(draw.randrange(3, 250) for _ in range(n)), seed=i) for i, n in enumerate(lengths)]
    return rows + [Prompt(rows[0].ids, seed=1000 + i) for i in range(5)]


def tokens(completions: list[Completion]) -> list[tuple[int, ...]]:
    return [completion.ids for completion in completions]


def greedy_by_hand(chat: ChatModel, prompt: Prompt, new: int) -> tuple[int, ...]:
    ids, out = list(prompt.ids), []
    for _ in range(new):
        with torch.no_grad():
            token = int(chat.model(input_ids=torch.tensor([ids])).logits[0, -1].argmax())
        ids.append(token)
        out.append(token)
        if token == chat.end_id:
            break
    return tuple(out)


@pytest.mark.parametrize("temperature", [0.0, 1.0, 0.7])
def test_tokens_do_not_depend_on_batch_size_order_or_length_limit(temperature: float) -> None:
    sampler, rows = LocalSampler(tiny_model(0)), prompts(20)
    whole = tokens(sampler.generate(rows, GenerationSettings(24, temperature, 64)))
    for size in (1, 7):
        assert tokens(sampler.generate(rows, GenerationSettings(24, temperature, size))) == whole
    assert tokens(sampler.generate(rows[::-1], GenerationSettings(24, temperature, 8)))[::-1] == whole
    longer = tokens(sampler.generate(rows, GenerationSettings(40, temperature, 64)))
    assert [ids[:24] for ids in longer] == whole


def test_greedy_equals_a_plain_loop_and_ends_at_the_end_token() -> None:
    chat = tiny_model(0)
    rows = prompts(40)
    completions = LocalSampler(chat).generate(rows, GenerationSettings(24, 0.0, 16))
    assert [c.ids for c in completions] == [greedy_by_hand(chat, row, 24) for row in rows]
    for completion in completions:
        assert (completion.ended == "eos") == (completion.ids[-1] == chat.end_id)
        assert chat.end_id not in completion.ids[:-1]


def test_rows_with_equal_prompts_differ_by_their_seeds() -> None:
    rows = [Prompt((5, 6, 7), seed=i) for i in range(8)]
    found = LocalSampler(tiny_model(0)).generate(rows, GenerationSettings(12, 1.0, 8))
    assert len({completion.ids for completion in found}) > 1


def test_samples_follow_the_distribution() -> None:
    chat = tiny_model(0)
    rows = [Prompt((5, 6, 7), seed=row_seed(0, "s", "p", str(i), 0, 0)) for i in range(3000)]
    first = [c.ids[0] for c in LocalSampler(chat).generate(rows, GenerationSettings(1, 1.0, 3000))]
    with torch.no_grad():
        expected = chat.model(input_ids=torch.tensor([[5, 6, 7]])).logits[0, -1].softmax(-1)
    counts = torch.bincount(torch.tensor(first), minlength=len(expected)) / 3000
    assert float((counts - expected).abs().sum()) < 0.25


def test_logprobs_are_those_of_the_sampled_tokens() -> None:
    chat, prompt = tiny_model(0), Prompt((5, 9, 11, 40), seed=3)
    (completion,) = LocalSampler(chat).generate([prompt], GenerationSettings(10, 0.7, 1))
    ids = torch.tensor([[*prompt.ids, *completion.ids]])
    with torch.no_grad():
        logits = chat.model(input_ids=ids).logits[0, len(prompt.ids) - 1 : -1] / 0.7
    expected = logits.log_softmax(-1).gather(-1, torch.tensor(completion.ids)[:, None])[:, 0]
    torch.testing.assert_close(torch.tensor(completion.logprobs), expected, atol=1e-4, rtol=0)


def test_stop_strings_end_and_cut_the_text() -> None:
    chat = tiny_model(0)
    plain = LocalSampler(chat).generate(prompts(10), GenerationSettings(24, 1.0, 16))
    longest: Completion = max(plain, key=lambda c: len(c.text))
    stop = longest.text[4:6]
    stopped = LocalSampler(chat).generate(prompts(10), GenerationSettings(24, 1.0, 16, stop=(stop,)))
    assert any(c.ended == "stop" for c in stopped)
    assert not any(stop in c.text for c in stopped)


@pytest.mark.parametrize("longest", [1, 2, 5])
def test_a_row_stops_at_the_first_token_whose_text_has_a_stop_string(longest: int) -> None:
    chat = tiny_model(0)
    plain = LocalSampler(chat).generate(prompts(10), GenerationSettings(40, 1.0, 16))
    texts = [completion.text for completion in plain]
    for stop in {text[place : place + longest] for text in texts for place in (0, 3, 7, 15)} - {""} | {"\n", " "}:
        stopped = LocalSampler(chat).generate(prompts(10), GenerationSettings(40, 1.0, 16, stop=(stop,)))
        assert [completion.ids for completion in stopped] == [cut(chat, completion.ids, stop) for completion in plain]


def cut(chat: ChatModel, ids: tuple[int, ...], stop: str) -> tuple[int, ...]:
    """The rule, asked of the whole text at every token; the end token goes before it."""
    for length in range(1, len(ids) + 1):
        if ids[length - 1] != chat.end_id and stop in chat.decode(ids[:length]):
            return ids[:length]
    return ids


def test_prompt_that_does_not_fit_is_refused() -> None:
    with pytest.raises(UsageError, match="does not fit the context"):
        LocalSampler(tiny_model(0, context_length=32)).generate([Prompt((5,) * 20)], GenerationSettings(16))


def test_mode_and_random_state_are_left_alone() -> None:
    chat = tiny_model(0)
    chat.model.train()
    before = torch.get_rng_state()
    LocalSampler(chat).generate(prompts(3), GenerationSettings(4, 1.0))
    assert chat.model.training and torch.equal(before, torch.get_rng_state())


def test_uniforms_of_a_row_do_not_depend_on_their_number() -> None:
    assert torch.equal(row_uniforms([1, 2], 5), row_uniforms([1, 2, 3], 9)[:2, :5])


def test_row_seeds_differ_in_every_part() -> None:
    base = (0, "stage", "purpose", "id", 0, 0)
    changed = [(1, *base[1:]), (0, "x", *base[2:]), (*base[:2], "x", *base[3:]), (*base[:3], "x", 0, 0)]
    seeds = {row_seed(*part) for part in [base, *changed, (*base[:4], 1, 0), (*base[:5], 1)]}
    assert len(seeds) == 7


def test_global_seed_is_restored() -> None:
    torch.manual_seed(11)
    random.seed(11)
    before = torch.get_rng_state(), random.getstate()
    with global_seed(3):
        first = torch.rand(1)
    with preserved_rng(), global_seed(3):
        assert torch.equal(first, torch.rand(1))
    assert torch.equal(before[0], torch.get_rng_state()) and before[1] == random.getstate()


def test_a_second_end_token_of_the_model_ends_an_answer_too() -> None:
    """Chat models often end a turn with another token than the tokenizer's end."""
    chat = tiny_model(0)
    (row, *_) = prompts(1)
    plain = LocalSampler(chat).generate([row], GenerationSettings(12))[0]
    second = plain.ids[3]
    assert chat.end_ids == {chat.end_id}
    chat.model.generation_config.eos_token_id = [chat.end_id, second]
    assert chat.end_ids == {chat.end_id, second}
    cut = LocalSampler(chat).generate([row], GenerationSettings(12))[0]
    assert cut.ids == plain.ids[: plain.ids.index(second) + 1]
    assert cut.ended == "eos"
