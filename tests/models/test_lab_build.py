"""The lab's build: tokenizer, rows as token ids, first steps, and the shipped weights."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, Qwen2ForCausalLM

from cl_bench.harness.models import lab_build
from cl_bench.harness.models.lab import LAB_MODELS, lab_path, next_size_up
from cl_bench.harness.models.lab_build import build, build_tokenizer, load_recipe, teaching_of, token_batches
from cl_bench.tasks.lab.pretraining import Corpus
from cl_bench.tasks.lab.world import DOMAINS, kinds_of

STRINGS = (
    "We note 12 plus 345. So the answer is 357.",
    "it's we've I'm\n\n\nblank lines\t tabs  and  spaces ",
    '## fact: tool send ==> output <- {"tool":"send","n":42} ;; end',
    "Fe2 O3, \u4e2d\u6587, caf\u00e9",
    "<|im_start|>user\nhello<|im_end|>\n",
)


@pytest.fixture(scope="module", autouse=True)
def _one_thread():  # type: ignore[no-untyped-def]
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def tokenizer():  # type: ignore[no-untyped-def]
    return build_tokenizer()


def test_tokenizer_survives_auto_tokenizer(tokenizer) -> None:  # type: ignore[no-untyped-def]
    loaded = AutoTokenizer.from_pretrained(lab_path("lab-m"))
    for text in STRINGS:
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        assert loaded(text, add_special_tokens=False)["input_ids"] == ids
        assert loaded.decode(ids) == text
    assert loaded.eos_token == "<|im_end|>"
    assert loaded.pad_token == "<|endoftext|>"


def test_every_model_has_the_one_tokenizer() -> None:
    assert len({(lab_path(name) / "tokenizer.json").read_bytes() for name in LAB_MODELS}) == 1
    assert len({(lab_path(name) / "chat_template.jinja").read_bytes() for name in LAB_MODELS}) == 1


def test_chat_template_marks_the_reply_with_its_end(tokenizer) -> None:  # type: ignore[no-untyped-def]
    chat = [{"role": "user", "content": "Sort 3,1."}, {"role": "assistant", "content": "1,3"}]
    out = tokenizer.apply_chat_template(chat, return_dict=True, return_assistant_tokens_mask=True)
    marked = [i for i, on in zip(out["input_ids"], out["assistant_masks"], strict=True) if on]
    assert tokenizer.decode(marked) == "1,3<|im_end|>"
    prompt = tokenizer.apply_chat_template(chat[:1], add_generation_prompt=True, tokenize=False)
    assert prompt == "<|im_start|>user\nSort 3,1.<|im_end|>\n<|im_start|>assistant\n"


def test_rows_are_encoded_as_the_template_writes_them(tokenizer) -> None:  # type: ignore[no-untyped-def]
    rows = list(itertools.islice(iter(Corpus(teaching_of("lab-m"), 4)), 300))
    for row, (ids, labels) in zip(rows, lab_build._encoded(rows, tokenizer), strict=True):
        chat = [
            {"role": role, "content": text}
            for turn in row.turns
            for role, text in zip(("user", "assistant"), turn, strict=True)
        ]
        out = tokenizer.apply_chat_template(chat, return_dict=True, return_assistant_tokens_mask=True)
        assert ids == out["input_ids"][: len(ids)]
        assert tokenizer.decode(out["input_ids"][len(ids) :]) == "\n"
        assert [label != -100 for label in labels] == [bool(m) for m in out["assistant_masks"][: len(ids)]]
        assert len(ids) <= load_recipe()["context"]


def test_batches_keep_rows_apart_and_bounded(tokenizer) -> None:  # type: ignore[no-untyped-def]
    batches = token_batches(iter(Corpus(teaching_of("lab-s"), 1)), tokenizer, 4096, 0)
    for ids, labels in itertools.islice(batches, 20):
        assert ids.shape == labels.shape
        assert ids.numel() <= 4096
        starts = (ids == tokenizer.convert_tokens_to_ids("<|im_start|>")).sum(1)
        assert (ids[:, 0] == tokenizer.convert_tokens_to_ids("<|im_start|>")).all()
        assert (starts % 2 == 0).all()
        assert ((labels == ids) | (labels == -100)).all()


def test_first_steps_lower_the_loss_and_repeat(tmp_path: Path) -> None:
    losses: list[float] = []
    report = build("lab-s", tmp_path / "a", steps=40, progress=lambda step, steps, loss: losses.append(loss))
    again = build("lab-s", tmp_path / "b", steps=40)
    assert report.steps == 40
    assert sum(losses[-5:]) < 0.9 * sum(losses[:5])
    assert report.loss == again.loss
    assert (tmp_path / "a/model.safetensors").read_bytes() == (tmp_path / "b/model.safetensors").read_bytes()
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "a")
    assert model.dtype == torch.bfloat16


def test_a_phase_can_start_from_the_saved_one_before(tokenizer, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    recipe = load_recipe()
    recipe["models"]["lab-s"]["phases"] = [{"steps": 4, "lr": 4e-3}, {"steps": 4, "lr": 2e-3}]
    torch.manual_seed(0)
    whole = lab_build.new_model(recipe, "lab-s", tokenizer)
    torch.manual_seed(0)
    half = lab_build.new_model(recipe, "lab-s", tokenizer)
    lab_build.pretrain(whole, tokenizer, recipe, "lab-s", 0, None, None)
    losses, _, _ = lab_build.pretrain(half, tokenizer, recipe, "lab-s", 0, 4, None)
    assert len(losses) == 4
    lab_build._save(half, tokenizer, tmp_path)
    again = Qwen2ForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    again.set_attn_implementation("eager")
    lab_build.pretrain(again, tokenizer, recipe, "lab-s", 0, None, None, first_phase=1)
    for one, other in zip(whole.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, other)


def test_recipe_names_only_known_kinds() -> None:
    recipe = load_recipe()
    assert tuple(recipe["models"]) == LAB_MODELS
    for rules in recipe["rules"].values():
        for domain, names in rules.items():
            assert set(names) <= {kind.name for kind in kinds_of(domain) if kind.nature == "rule"}
    assert set(teaching_of("lab-xl").rules) == set(DOMAINS)
    assert abs(sum(recipe["shares"].values()) - 1) < 1e-9


@pytest.mark.parametrize("name", LAB_MODELS)
def test_shipped_folder_loads(name: str) -> None:
    model = AutoModelForCausalLM.from_pretrained(lab_path(name), dtype=torch.float32)
    config = json.loads((lab_path(name) / "config.json").read_text())
    assert config["tie_word_embeddings"] is True
    assert config["max_position_embeddings"] >= 256
    assert config["hidden_size"] == load_recipe()["models"][name]["width"]
    ids = AutoTokenizer.from_pretrained(lab_path(name))("Sort 3,1,2.", return_tensors="pt")["input_ids"]
    assert torch.isfinite(model(input_ids=ids).logits).all()


def test_shipped_weights_fit_in_sixteen_megabytes() -> None:
    assert sum(f.stat().st_size for name in LAB_MODELS for f in lab_path(name).iterdir()) <= 16e6


def test_names() -> None:
    assert next_size_up("lab-m") == "lab-l"
    assert next_size_up("lab-xl") == "lab-xl"
    with pytest.raises(ValueError, match="known"):
        lab_path("lab-xxl")
    with pytest.raises(ValueError, match="known"):
        next_size_up("lab-xxl")
