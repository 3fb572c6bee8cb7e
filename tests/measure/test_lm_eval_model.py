from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest
from lm_eval.api.instance import Instance

from cl_bench.harness.generation.base import Completion, GenerationSettings, Prompt, Sampler
from cl_bench.harness.generation.local import LocalSampler
from cl_bench.harness.measure.lm_eval_model import DEFAULT_MAX_NEW_TOKENS, SamplerLM, lm_eval_model
from cl_bench.harness.measure.loglikelihood import loglikelihoods
from cl_bench.harness.measure.recorded_lm import RecordedLM
from cl_bench.harness.models.chat_model import ChatModel


def make(model: ChatModel) -> SamplerLM:
    return cast(SamplerLM, lm_eval_model(model, LocalSampler(model), batch_size=4))


def request(kind: Any, *arguments: Any, doc_id: int = 0) -> Instance:
    return Instance(request_type=kind, doc={}, arguments=arguments, idx=0, metadata=("task", doc_id, 1))


def test_is_an_lm_eval_model(tiny_model: ChatModel) -> None:
    from lm_eval.api.model import TemplateLM

    lm = make(tiny_model)
    assert isinstance(lm, TemplateLM) and isinstance(lm, SamplerLM)
    assert (cast(Any, lm).rank, cast(Any, lm).world_size) == (0, 1)
    assert tiny_model.name in lm.tokenizer_name


def test_loglikelihood_is_that_of_our_scorer_with_spaces_kept_in_the_continuation(tiny_model: ChatModel) -> None:
    lm = make(tiny_model)
    pairs = [("the sum ", "is"), ("the sum", " is"), ("the answer", " sum is"), ("", "the")]
    got = lm.loglikelihood([request("loglikelihood", *pair, doc_id=i) for i, pair in enumerate(pairs)])
    encode = lm.tok_encode
    ids = [
        (encode("the sum"), encode(" is")),
        (encode("the sum"), encode(" is")),
        (encode("the answer"), encode(" sum is")),
        ([tiny_model.end_id], encode("the")),
    ]
    expected = loglikelihoods(tiny_model, ids)
    assert [logprob for logprob, _ in got] == pytest.approx([e.logprob for e in expected], abs=1e-5)
    assert [is_greedy for _, is_greedy in got] == [e.is_greedy for e in expected]
    assert got[0] == got[1]
    assert all(record.ended is None for record in lm.records.values())


def test_generation_stops_as_asked_and_equals_the_sampler(tiny_model: ChatModel) -> None:
    lm = make(tiny_model)
    sampler = LocalSampler(tiny_model)
    plain = sampler.generate([Prompt(tuple(lm.tok_encode("the sum")))], GenerationSettings(max_new_tokens=12))[0]
    options = {"until": [], "max_gen_toks": 12, "do_sample": False}
    assert lm.generate_until([request("generate_until", "the sum", options)]) == [plain.text]
    assert lm.records["task", 0].tokens == len(plain.ids)
    stop = plain.text[3]
    cut = lm.generate_until([request("generate_until", "the sum", {**options, "until": [stop]}, doc_id=1)])
    assert cut == [plain.text[: plain.text.index(stop)].strip()]
    assert lm.records["task", 1].ended == "stop"


def test_defaults_of_generation_are_lm_evals(tiny_model: ChatModel) -> None:
    settings = make(tiny_model)._settings({"until": "x", "temperature": 0.7})
    assert (settings.max_new_tokens, settings.temperature, settings.stop) == (DEFAULT_MAX_NEW_TOKENS, 0.0, ("x",))
    assert make(tiny_model)._settings({"do_sample": True, "temperature": 0.7}).temperature == 0.7


def test_what_does_not_fit_is_marked_never_truncated(tiny_model: ChatModel) -> None:
    lm = make(tiny_model)
    long = "x" * 500
    scores = lm.loglikelihood([request("loglikelihood", long, " a", doc_id=i) for i in (0,)])
    texts = lm.generate_until([request("generate_until", long, {"max_gen_toks": 4}, doc_id=1)])
    assert texts == [""] and scores[0][0] < -1e20
    assert {key: record.ended for key, record in lm.records.items()} == {("task", 0): "skipped", ("task", 1): "skipped"}


def test_rolling_windows_cover_every_token_once(tiny_model: ChatModel) -> None:
    lm = make(tiny_model)
    short = lm.tok_encode("the sum is")
    expected = loglikelihoods(tiny_model, [([tiny_model.end_id], short)])[0].logprob
    assert lm.loglikelihood_rolling([request("loglikelihood_rolling", "the sum is")])[0] == pytest.approx(expected)
    long = "the sum is " * 120
    tokens = len(lm.tok_encode(long))
    assert tokens > 2 * tiny_model.context_length
    scored: list[int] = []
    original = loglikelihoods

    def counting(model: ChatModel, pairs: Any, *rest: Any) -> Any:
        scored.extend(len(continuation) for _, continuation in pairs)
        return original(model, pairs, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cl_bench.harness.measure.lm_eval_model.loglikelihoods", counting)
        assert lm.loglikelihood_rolling([request("loglikelihood_rolling", long)])[0] < 0
    assert sum(scored) == tokens


def test_chat_template_is_the_tokenizers(tiny_model: ChatModel) -> None:
    lm = make(tiny_model)
    chat = [{"role": "user", "content": "2+2?"}]
    assert tuple(lm.tok_encode(lm.apply_chat_template(chat))) == tiny_model.prompt_ids(chat)
    opened = lm.apply_chat_template([*chat, {"role": "assistant", "content": "sum"}], add_generation_prompt=False)
    assert opened.endswith("sum")


def test_another_model_of_the_same_tokenizer(tiny_model: ChatModel) -> None:
    from tests.support import tiny_model as make_tiny

    lm, other = make(tiny_model), make_tiny(seed=1)
    asked = [request("loglikelihood", "the sum", " is")]
    first = lm.loglikelihood(asked)
    lm.use(other, LocalSampler(other))
    second = lm.loglikelihood(asked)
    assert first != second and second == make(other).loglikelihood(asked)


class Scripted(Sampler):
    context_length = 1000

    def __init__(self, text: str) -> None:
        self.text = text

    def generate(self, prompts: Sequence[Prompt], settings: GenerationSettings) -> list[Completion]:
        return [Completion((1, 2), self.text, "eos", ()) for _ in prompts]


def test_only_what_follows_a_reasoning_block_is_scored(tiny_model: ChatModel) -> None:
    thought = "<think>maybe (A), no, wait</think> the answer is (C)"
    lm = cast(SamplerLM, lm_eval_model(tiny_model, Scripted(thought), 4))
    assert lm.generate_until([request("generate_until", "q", {"until": []})]) == [" the answer is (C)"]
    assert lm.records["task", 0].response == thought
    recorded = {"tokens": 2, "ended": "eos", "response": thought}
    again = RecordedLM({"task": [recorded]})
    assert again.generate_until([request("generate_until", "q", {"until": []})]) == [" the answer is (C)"]
    assert again.records["task", 0].response == thought


def test_what_went_through_the_model_is_counted(tiny_model: ChatModel) -> None:
    lm = make(tiny_model)
    lm.loglikelihood([request("loglikelihood", "the", " sum")])
    assert lm.records["task", 0].computed > 0
    lm.generate_until([request("generate_until", "the sum", {"until": [], "max_gen_toks": 3}, doc_id=1)])
    pair, prompt = lm.tok_encode("the sum"), lm.tok_encode("the sum")
    assert lm.records["task", 0].computed == len(pair)
    assert lm.records["task", 1].computed == len(prompt) + lm.records["task", 1].tokens
