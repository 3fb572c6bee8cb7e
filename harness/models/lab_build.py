"""Pre-training of the lab models from their recipe: ``python -m cl_bench.harness.models.lab_build lab-m OUT``."""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cl_bench.harness.models.lab_tokenizer import END, PAD, prompt_text, save_tokenizer, train_tokenizer
from cl_bench.tasks.lab.pretraining import Corpus, Row, Teaching

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerFast, Qwen2ForCausalLM

RECIPE = Path(__file__).with_name("lab_recipe.yaml")
AUTOCAST_FROM = 500_000
"""Parameters from which bf16 autocast pays on a CPU; below, its casts cost more than they save."""
_POOL_ROWS = 2048

Progress = Callable[[int, int, float], None]
"""Called with step, steps and loss."""


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What a build did.

    Attributes:
        name: Model name.
        parameters: Number of parameters, embeddings included.
        steps: Optimizer steps.
        tokens: Tokens seen, padding excluded.
        seconds: Wall time.
        loss: Mean loss of the last 50 steps, in nats a response token.
        rows: Rows by source.
    """

    name: str
    parameters: int
    steps: int
    tokens: int
    seconds: float
    loss: float
    rows: dict[str, int]


def load_recipe() -> dict[str, Any]:
    """The recipe file as a mapping."""
    import yaml

    recipe: dict[str, Any] = yaml.safe_load(RECIPE.read_text(encoding="utf-8"))
    return recipe


def teaching_of(name: str, phase: int = 0, recipe: dict[str, Any] | None = None) -> Teaching:
    """What the model of that name is taught in a phase; noise, shares and facts may differ from phase to phase.

    Raises KeyError for an unknown name.
    """
    recipe = recipe or load_recipe()
    model = recipe["models"][name]
    rules: dict[str, tuple[str, ...]] = {}
    for level in range(1, model["level"] + 1):
        for domain, kinds in recipe["rules"][f"level-{level}"].items():
            rules[domain] = (*rules.get(domain, ()), *kinds)
    own = model["phases"][phase]
    return Teaching(
        house=model["house"],
        fact_share=own.get("fact_share", model["fact_share"]),
        rules=rules,
        noise=own.get("noise", recipe["noise"]),
        skill_fact_share=recipe["skill_fact_share"],
        shares=own.get("shares", recipe["shares"]),
    )


def build_tokenizer() -> PreTrainedTokenizerFast:
    """The family's one tokenizer, learnt from rows of every house style."""
    recipe = load_recipe()
    half = recipe["tokenizer_rows"] // 2
    texts: list[str] = []
    for name in ("lab-xl", "lab-alt"):
        rows = itertools.islice(iter(Corpus(teaching_of(name), seed=7)), half)
        texts += [text for row in rows for turn in row.turns for text in turn]
    return train_tokenizer(texts, recipe["vocabulary"])


def build(
    name: str, out_dir: str | Path, *, steps: int | None = None, seed: int = 0, progress: Progress | None = None
) -> BuildReport:
    """Pre-train one lab model and write it as a plain Hugging Face folder.

    Args:
        name: ``lab-s``, ``lab-m``, ``lab-l``, ``lab-xl`` or ``lab-alt``.
        out_dir: Folder for weights (bf16), config and tokenizer.
        steps: Stop after so many steps of the recipe's phases; None for all of them.
        seed: Seed of the initial weights and of the rows.
        progress: Called after every step.

    Raises:
        KeyError: Unknown model name.
    """
    import torch

    recipe = load_recipe()
    torch.manual_seed(seed)
    tokenizer = build_tokenizer()
    model = new_model(recipe, name, tokenizer)
    started = time.monotonic()
    losses, tokens, counts = pretrain(model, tokenizer, recipe, name, seed, steps, progress)
    _save(model, tokenizer, Path(out_dir))
    tail = losses[-50:]
    return BuildReport(
        name, sum(p.numel() for p in model.parameters()), len(losses), tokens, time.monotonic() - started,
        sum(tail) / max(len(tail), 1), counts,
    )  # fmt: skip


def pretrain(
    model: Qwen2ForCausalLM, tokenizer: PreTrainedTokenizerFast, recipe: dict[str, Any], name: str, seed: int,
    steps: int | None, progress: Progress | None, first_phase: int = 0,
) -> tuple[list[float], int, dict[str, int]]:  # fmt: skip
    """Run the phases of a model's recipe from ``first_phase`` on; returns losses, tokens and rows by source.

    Each phase has its own rows, schedule and optimizer, and begins from weights rounded to bf16, so that a phase can be
    run from the saved result of the one before.
    """
    losses: list[float] = []
    tokens = 0
    counts: Counter[str] = Counter()
    left = steps
    for index, phase in list(enumerate(recipe["models"][name]["phases"]))[first_phase:]:
        count = phase["steps"] if left is None else min(left, phase["steps"])
        rows = _Counted(Corpus(teaching_of(name, index, recipe), seed=seed + 1 + 100 * index))
        batches = token_batches(iter(rows), tokenizer, recipe["tokens_per_step"], seed + 100 * index)
        found, seen = _fit(model, batches, recipe["optimizer"], phase, count, progress)
        losses += found
        tokens += seen
        counts.update(rows.counts)
        _round_weights(model)
        left = None if left is None else left - count
    return losses, tokens, dict(counts)


def _round_weights(model: Qwen2ForCausalLM) -> None:
    import torch

    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.to(torch.bfloat16))


def new_model(recipe: dict[str, Any], name: str, tokenizer: PreTrainedTokenizerFast) -> Qwen2ForCausalLM:
    """The untrained model of that name, fp32."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    shape = recipe["models"][name]
    heads = shape["width"] // recipe["head_width"]
    vocabulary = tokenizer.get_vocab()
    config = Qwen2Config(
        vocab_size=recipe["vocabulary"], hidden_size=shape["width"], intermediate_size=shape["ffn"],
        num_hidden_layers=shape["layers"], num_attention_heads=heads, num_key_value_heads=heads,
        max_position_embeddings=recipe["context"], tie_word_embeddings=True,
        bos_token_id=None, eos_token_id=vocabulary[END], pad_token_id=vocabulary[PAD],
    )  # fmt: skip
    model = Qwen2ForCausalLM(config)
    # On a CPU the backward pass of fused attention in bf16 takes twice the time of the plain one.
    model.set_attn_implementation("eager")
    return model


class _Counted:
    """A corpus that counts its rows by source."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self.counts: dict[str, int] = {}

    def __iter__(self) -> Iterator[Row]:
        for row in self.corpus:
            self.counts[row.source] = self.counts.get(row.source, 0) + 1
            yield row


def token_batches(
    rows: Iterator[Row], tokenizer: PreTrainedTokenizerFast, tokens_per_step: int, seed: int
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Batches (ids, labels), each (rows, length) and right-padded; labels are -100 except on assistant tokens.

    Causal attention never looks right, so padding needs no mask and rows never see one another.
    """
    import torch

    shuffle = random.Random(seed)
    pad = tokenizer.convert_tokens_to_ids(PAD)
    while True:
        pool = sorted(_encoded(list(itertools.islice(rows, _POOL_ROWS)), tokenizer), key=lambda pair: len(pair[0]))
        groups: list[list[tuple[list[int], list[int]]]] = [[]]
        for pair in pool:
            if (len(groups[-1]) + 1) * len(pair[0]) > tokens_per_step and groups[-1]:
                groups.append([])
            groups[-1].append(pair)
        shuffle.shuffle(groups)
        for group in groups:
            width = max(len(ids) for ids, _ in group)
            yield (
                torch.tensor([ids + [pad] * (width - len(ids)) for ids, _ in group]),
                torch.tensor([labels + [-100] * (width - len(labels)) for _, labels in group]),
            )


def _encoded(rows: list[Row], tokenizer: PreTrainedTokenizerFast) -> list[tuple[list[int], list[int]]]:
    """Token ids and labels of whole rows, as the chat template would write them."""
    texts = [text for row in rows for user, reply in row.turns for text in (prompt_text(user), reply + END)]
    encoded = iter(tokenizer(texts, add_special_tokens=False)["input_ids"])
    newline = tokenizer("\n", add_special_tokens=False)["input_ids"]
    pairs = []
    for row in rows:
        ids: list[int] = []
        labels: list[int] = []
        for _ in row.turns:
            prompt, reply = next(encoded), next(encoded)
            prompt = newline + prompt if ids else prompt
            ids += prompt + reply
            labels += [-100] * len(prompt) + reply
        pairs.append((ids, labels))
    return pairs


def _optimizers(model: Qwen2ForCausalLM, lr: float, settings: dict[str, Any]) -> list[torch.optim.Optimizer]:
    """Muon for the matrices of the layers, AdamW for embeddings, norms and biases."""
    import torch

    betas = (settings["beta1"], settings["beta2"])
    matrices = [p for n, p in model.named_parameters() if p.ndim == 2 and "embed_tokens" not in n]
    others = [p for n, p in model.named_parameters() if p.ndim != 2 or "embed_tokens" in n]
    if settings["name"] == "adamw":
        return [torch.optim.AdamW(model.parameters(), lr=lr, betas=betas, weight_decay=settings["weight_decay"])]
    return [
        torch.optim.Muon(matrices, lr=lr, weight_decay=settings["weight_decay"], adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(others, lr=lr, betas=betas, weight_decay=0.0),
    ]


def _fit(
    model: Qwen2ForCausalLM, batches: Iterator[tuple[torch.Tensor, torch.Tensor]], settings: dict[str, Any],
    phase: dict[str, Any], count: int, progress: Progress | None,
) -> tuple[list[float], int]:  # fmt: skip
    """Train for the first ``count`` steps of a phase; returns the losses and the number of tokens."""
    import torch

    peak, total = float(phase["lr"]), int(phase["steps"])
    optimizers = _optimizers(model, peak, settings)
    autocast = sum(p.numel() for p in model.parameters()) >= AUTOCAST_FROM
    losses: list[float] = []
    tokens = 0
    model.train()
    for step in range(count):
        ids, labels = next(batches)
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = peak * _schedule(step, total, settings)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            loss = _loss(model, ids, labels)
        model.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), settings["clip"])
        for optimizer in optimizers:
            optimizer.step()
        losses.append(float(loss.detach()))
        tokens += int(ids.ne(model.config.pad_token_id or 0).sum())
        if progress:
            progress(step + 1, count, losses[-1])
    model.eval()
    return losses, tokens


def _schedule(step: int, total: int, settings: dict[str, Any]) -> float:
    warmup = max(1, int(total * settings["warmup_share"]))
    if step < warmup:
        return (step + 1) / warmup
    done = (step - warmup) / max(1, total - warmup)
    low = float(settings["final_lr_share"])
    return low + (1 - low) * 0.5 * (1 + math.cos(math.pi * done))


def _loss(model: Qwen2ForCausalLM, ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy at assistant tokens; the head runs at those positions only."""
    import torch

    hidden = model.model(input_ids=ids, use_cache=False).last_hidden_state
    target = labels[:, 1:]
    kept = target != -100
    logits = model.lm_head(hidden[:, :-1][kept])
    return torch.nn.functional.cross_entropy(logits.float(), target[kept])


def _save(model: Qwen2ForCausalLM, tokenizer: PreTrainedTokenizerFast, out: Path) -> None:

    out.mkdir(parents=True, exist_ok=True)
    model.bfloat16().save_pretrained(str(out))
    save_tokenizer(tokenizer, out)


def main() -> None:
    """Command line: build one model and print its report as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("out")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    started = time.monotonic()

    losses: list[float] = []

    def show(step: int, steps: int, loss: float) -> None:
        losses.append(loss)
        if step % 50 == 0 or step == steps:
            print(f"{step}/{steps} loss {sum(losses[-50:]) / 50:.3f} {time.monotonic() - started:.0f}s", flush=True)

    report = build(arguments.name, arguments.out, steps=arguments.steps, seed=arguments.seed, progress=show)
    print(json.dumps(asdict(report)))


if __name__ == "__main__":
    main()
