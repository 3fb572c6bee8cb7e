"""Measurements of the lab models that the lab's criteria are judged by; no training method is involved."""

from __future__ import annotations

import random
import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from cl_bench.harness.generation.base import GenerationSettings, Prompt
from cl_bench.harness.generation.local import LocalSampler
from cl_bench.harness.measure.loglikelihood import loglikelihoods
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.harness.seeds import row_seed
from cl_bench.tasks.base import Example
from cl_bench.tasks.lab.conditioning import FEEDBACK, TRAINED, UNSEEN, WRONG
from cl_bench.tasks.lab.scoring import score_text
from cl_bench.tasks.lab.skills import SKILLS, skill_task
from cl_bench.tasks.lab.styles import ALT_HOUSE, BARE, DISTANCES, HOUSE, render, style_name
from cl_bench.tasks.lab.task import LabTask
from cl_bench.tasks.lab.world import DOMAINS

NEW_TOKENS = 64
CONDITIONS = ("demonstration", "LO", "MID", "bare", "answer-first", "own sibling", "feedback", "unseen wording")


def generate(
    model: ChatModel, questions: Sequence[str], temperature: float = 0.0, samples: int = 1, seed: int = 0
) -> list[list[str]]:
    """Completions of user turns: one list of ``samples`` texts a question."""
    prompts = [
        Prompt(model.prompt_ids([{"role": "user", "content": q}]), row_seed(seed, "criteria", "sample", q, 0, k))
        for q in questions
        for k in range(samples)
    ]
    done = LocalSampler(model).generate(prompts, GenerationSettings(NEW_TOKENS, temperature, batch_size=256))
    texts = [completion.text if completion.ended == "eos" else completion.text + "\n" for completion in done]
    return [texts[i * samples : (i + 1) * samples] for i in range(len(questions))]


def accuracy(examples: Sequence[Example], texts: Sequence[str]) -> float:
    """Share of correct responses."""
    return sum(score_text(e, t).correct for e, t in zip(examples, texts, strict=True)) / len(examples)


def closed_book(model: ChatModel, limit: int = 300, split: str = "test") -> dict[str, dict[str, float]]:
    """Greedy accuracy by domain: ``all`` and every kind."""
    found: dict[str, dict[str, float]] = {}
    for domain in DOMAINS:
        task = LabTask(domain)
        rows = list(task.ood() if split == "ood" else task.test())[:limit]
        texts = [t[0] for t in generate(model, [e.question for e in rows])]
        kinds = defaultdict(list)
        for example, text in zip(rows, texts, strict=True):
            kinds[str(example.meta["kind"])].append(score_text(example, text).correct)
        found[domain] = {"all": accuracy(rows, texts), **{k: statistics.mean(v) for k, v in kinds.items()}}
    return found


def skills(model: ChatModel, split: str = "test") -> dict[str, float]:
    """Accuracy of every skill: greedy generation, or the likeliest choice."""
    found = {}
    for skill in SKILLS:
        rows = list(skill_task(skill.name).dev() if split == "dev" else skill_task(skill.name).test())
        if skill.kind == "generate":
            found[skill.name] = accuracy(rows, [t[0] for t in generate(model, [e.question for e in rows])])
            continue
        requests = [
            (model.prompt_ids(e.messages), model.completion_ids(text)) for e in rows for text in e.meta["continuations"]
        ]
        scores = iter(loglikelihoods(model, requests))
        right = 0
        for example in rows:
            values = [next(scores).logprob for _ in example.meta["continuations"]]
            right += values.index(max(values)) == example.meta["gold_index"]
        found[skill.name] = right / len(rows)
    return found


def _house_of(model: ChatModel) -> str:
    return ALT_HOUSE if model.name.endswith("alt") else HOUSE


def _prompt(condition: str, example: Example, wrong: Example, house: str) -> str:
    reasoning, answer = str(example.meta["reasoning"]), example.answer or ""
    if condition == "feedback":
        attempt = render(house, str(wrong.meta["reasoning"]), wrong.answer or "")
        template = FEEDBACK[0].replace("{attempt}", attempt)
        return template.replace("{feedback}", WRONG[0].replace("{answer}", answer)).replace(
            "{question}", example.question
        )
    style = {"bare": BARE, "own sibling": house, "answer-first": style_name("HI", "answer-first")}.get(
        condition, condition if condition in DISTANCES else "HI"
    )
    template = UNSEEN[0] if condition == "unseen wording" else TRAINED[0]
    return template.replace("{question}", example.question).replace("{demonstration}", render(style, reasoning, answer))


def conditioning(model: ChatModel, rows_each: int = 40) -> dict[str, float]:
    """Greedy accuracy over all domains with a reference in context, by condition.

    With a wrong reference both are counted: following it, and answering right in spite of it.
    """
    rows = [e for domain in DOMAINS for e in _spread(LabTask(domain).train(), rows_each)]
    others = _other_of_kind(rows)
    house = _house_of(model)
    found = {}
    for condition in CONDITIONS:
        prompts = [_prompt(condition, e, o, house) for e, o in zip(rows, others, strict=True)]
        found[condition] = accuracy(rows, [t[0] for t in generate(model, prompts)])
    swapped = [replace(e, answer=o.answer, meta={**e.meta, "reasoning": o.meta["reasoning"]})
               for e, o in zip(rows, others, strict=True)]  # fmt: skip
    texts = [t[0] for t in generate(model, [_prompt("demonstration", e, e, house) for e in swapped])]
    found["wrong reference followed"] = accuracy(swapped, texts)
    found["wrong reference, right answer"] = accuracy(rows, texts)
    return found


def _spread(rows: Sequence[Example], n: int) -> list[Example]:
    """``n`` of the rows at random, the same ones every time (a stride would keep step with the kinds)."""
    return random.Random(n).sample(list(rows), n)


def _other_of_kind(rows: Sequence[Example]) -> list[Example]:
    """For every row another row of its kind with another answer (itself where there is none)."""
    chosen = random.Random(0)
    found = []
    for row in rows:
        pool = [r for r in rows if r.meta["kind"] == row.meta["kind"] and r.answer != row.answer]
        found.append(chosen.choice(pool) if pool else row)
    return found


def data_generation(model: ChatModel, temperature: float, rows_each: int = 100) -> dict[str, float]:
    """First-sample accuracy by domain of rewriting the HI demonstration of training rows."""
    found = {}
    for domain in DOMAINS:
        rows = _spread(LabTask(domain).train(), rows_each)
        prompts = [_prompt("demonstration", e, e, HOUSE) for e in rows]
        found[domain] = accuracy(rows, [t[0] for t in generate(model, prompts, temperature)])
    return found


def mixed_outcomes(model: ChatModel, rows_each: int = 60, samples: int = 8) -> dict[str, float]:
    """Share of training prompts by domain with both right and wrong answers among temperature-1 samples."""
    found = {}
    for domain in DOMAINS:
        rows = _spread(LabTask(domain).train(), rows_each)
        texts = generate(model, [e.question for e in rows], 1.0, samples)
        right = [sum(score_text(e, t).correct for t in ts) for e, ts in zip(rows, texts, strict=True)]
        found[domain] = sum(0 < r < samples for r in right) / len(rows)
    return found


def demonstration_nll(model: ChatModel, rows_each: int = 40) -> dict[str, dict[str, float]]:
    """NLL of the training demonstrations without reference, nats a token: mean and a 95 % bootstrap interval."""
    found: dict[str, dict[str, float]] = {}
    for distance in DISTANCES:
        rows = [e for d in DOMAINS for e in _spread(LabTask(d, distance=distance).train(), rows_each)]
        requests = [(model.prompt_ids(e.messages), model.completion_ids(e.demonstration or "")) for e in rows]
        values = [-s.logprob / len(r[1]) for s, r in zip(loglikelihoods(model, requests), requests, strict=True)]
        tokens = [len(r[1]) for r in requests]
        low, high = _interval(values, statistics.fmean)
        found[distance] = {
            "mean": statistics.fmean(values), "low": low, "high": high, "tokens": statistics.fmean(tokens)
        }  # fmt: skip
    return found


def _interval(values: Sequence[float], statistic: Callable[[Sequence[float]], float]) -> tuple[float, float]:
    draw = random.Random(0)
    means = sorted(statistic(draw.choices(values, k=len(values))) for _ in range(1000))
    return means[25], means[974]


def long_context(model: ChatModel, rows: int = 60, tokens: int = 256) -> float:
    """Accuracy of restating a reference that is the last turn of a chat of at least so many tokens."""
    examples = [e for d in DOMAINS for e in _spread(LabTask(d).train(), rows)][: 4 * rows]
    random.Random(1).shuffle(examples)
    last, right = examples[:rows], 0
    prompts = []
    for i, example in enumerate(last):
        turns: list[dict[str, str]] = []
        for other in examples[rows + i :] + examples[:i]:
            turns += [
                {"role": "user", "content": _prompt("demonstration", other, other, HOUSE)},
                {"role": "assistant", "content": render(HOUSE, str(other.meta["reasoning"]), other.answer or "")},
            ]
            ids = model.prompt_ids(
                [*turns, {"role": "user", "content": _prompt("demonstration", example, example, HOUSE)}]
            )
            if len(ids) >= tokens:
                break
        prompts.append(Prompt(ids))
    done = LocalSampler(model).generate(prompts, GenerationSettings(NEW_TOKENS))
    right = sum(score_text(e, c.text).correct for e, c in zip(last, done, strict=True))
    return right / rows


def measure(model: ChatModel) -> dict[str, Any]:
    """Every measurement of one model."""
    return {
        "parameters": model.parameter_count(),
        "closed_book": closed_book(model),
        "ood": {domain: found["all"] for domain, found in closed_book(model, split="ood").items()},
        "skills": skills(model),
        "conditioning": conditioning(model),
        "nll": demonstration_nll(model),
        "mixed": mixed_outcomes(model),
        "generation_0.7": data_generation(model, 0.7),
        "generation_1.0": data_generation(model, 1.0),
        "long_context": long_context(model),
    }
