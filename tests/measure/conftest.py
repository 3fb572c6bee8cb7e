"""A tiny random Qwen2 with its own tokenizer, made here: nothing is downloaded."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from cl_bench.harness.models.chat_model import ChatModel

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}"
    "{% if not (loop.last and continue_final_message) %}<|im_end|>\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
CORPUS = ["question answer reasoning the a of in is 0 1 2 3 4 5 6 7 8 9 yes no user assistant"] * 4


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> ChatModel:
    """One random model of 2 layers and a context of 128 tokens, shared by the tests that do not change it."""
    return make_tiny(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def fresh_model(tmp_path: Path) -> ChatModel:
    """The same, for a test that changes it."""
    return make_tiny(tmp_path)


def make_tiny(folder: Path, context: int = 128) -> ChatModel:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

    torch.set_num_threads(1)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>", padding_side="left"
    )
    fast.chat_template = TEMPLATE
    state = torch.get_rng_state()
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=len(fast),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=context,
        tie_word_embeddings=True,
        eos_token_id=fast.eos_token_id,
        pad_token_id=fast.pad_token_id,
    )
    model = Qwen2ForCausalLM(config).eval()
    # Larger than the usual initialisation, so that predictions differ clearly from token to token.
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0.0, 0.3)
    torch.set_rng_state(state)
    return ChatModel(model, fast, "tiny")
