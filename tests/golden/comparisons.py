"""One comparison for each kind of golden vector: what our own functions give for a vector's inputs.

A comparison yields (place in ``expected``, our value) or (place, our value, tolerance). Values and gradients come from
the functions that training and measurement call; parameters are read out of the vector's keys.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from cl_bench.methods.training import divergences, policy, tilt
from cl_bench.methods.training.anchors import Anchor
from cl_bench.methods.training.fisher import quadratic_penalty, squared_gradients
from cl_bench.methods.training.losses import cross_entropy, dft_loss, loss_weights, skip_mask
from cl_bench.methods.training.on_policy import on_policy_loss
from cl_bench.methods.training.supervised import supervised_loss
from cl_bench.methods.training.teachers import EMATeacher
from tests.golden.measures import cl_metrics, correlation_bootstrap, pflops, samplewise_, shift_drift
from tests.golden.vectors import FP32, Found, Vector, double, parse_key
from tests.support import tiny_model


class GivenLogits:
    """Stands in for a model: its hidden states are given logits [B, T, V] and its head changes nothing."""

    def __init__(self, logits: Tensor) -> None:
        self.logits = logits
        self.config = SimpleNamespace(vocab_size=logits.shape[-1], get_text_config=lambda: SimpleNamespace())

    def get_decoder(self) -> Callable[..., Any]:
        return lambda **_: SimpleNamespace(last_hidden_state=self.logits)

    def get_output_embeddings(self) -> Callable[[Tensor], Tensor]:
        return lambda hidden: hidden


def _labelled(vector: Vector, extra_tokens: float = 1.0) -> tuple[Tensor, dict[str, Tensor]]:
    """Logits with gradient, and the batch whose loss tokens are the labels."""
    inputs = vector["inputs"]
    logits = double(inputs["logits"]).requires_grad_()
    ids, mask = torch.tensor(inputs["input_ids"]), torch.tensor(inputs["labels"]) != -100
    weights = loss_weights(mask.double(), "token_mean", int(extra_tokens * mask.sum()), len(mask))
    return logits, {"input_ids": ids, "attention_mask": torch.ones_like(ids), "loss_weights": weights}


def sft_ce(vector: Vector) -> Found:
    logits, batch = _labelled(vector)
    loss = supervised_loss(GivenLogits(logits), batch, cross_entropy)
    loss.backward()
    yield ("loss",), loss
    yield ("grad_logits",), logits.grad
    yield ("num_tokens",), int((batch["loss_weights"] > 0).sum())
    yield ("hf_for_causal_lm_loss_float32",), loss, FP32
    keep = batch["loss_weights"][:, 1:] > 0
    per_token = torch.zeros(keep.shape, dtype=torch.float64)
    per_token[keep] = cross_entropy(logits.detach()[:, :-1][keep], batch["input_ids"][:, 1:][keep])
    yield ("per_token_nll",), per_token
    doubled, batch = _labelled(vector, extra_tokens=2)
    yield ("loss_with_num_items_in_batch_doubled",), supervised_loss(GivenLogits(doubled), batch, cross_entropy)


def dft(vector: Vector) -> Found:
    logits, batch = _labelled(vector)
    loss = supervised_loss(GivenLogits(logits), batch, dft_loss)
    loss.backward()
    yield ("loss",), loss
    yield ("grad_logits",), logits.grad
    yield ("official_loss",), loss, 1e-7
    yield ("official_unweighted_sft_loss",), supervised_loss(GivenLogits(logits), batch, cross_entropy), 1e-7


def asft(vector: Vector) -> Found:
    token_losses = {"sft": cross_entropy, "sft+kl": cross_entropy, "dft": dft_loss, "asft": dft_loss}
    reference = GivenLogits(double(vector["inputs"]["ref_logits"]))
    for key, expected in vector["expected"].items():
        words, parameters = parse_key(key)
        if "kl_weight" not in parameters:
            continue
        logits, batch = _labelled(vector)
        anchor = Anchor(reference, divergences.forward_kl, parameters["kl_weight"])
        loss = supervised_loss(GivenLogits(logits), batch, token_losses[words[0]], anchor)
        yield (key, "loss"), loss
        if "grad_logits" in expected:
            loss.backward()
            yield (key, "grad_logits"), logits.grad
    for name, divergence in (
        ("mean_forward_kl_ref_to_student", divergences.forward_kl),
        ("mean_reverse_kl_student_to_ref", divergences.reverse_kl),
    ):
        logits, batch = _labelled(vector)
        anchored = supervised_loss(GivenLogits(logits), batch, cross_entropy, Anchor(reference, divergence, 1.0))
        yield (name,), anchored - supervised_loss(GivenLogits(logits), batch, cross_entropy)


def sdft_kl(vector: Vector) -> Found:
    inputs = vector["inputs"]
    mask = double(inputs["completion_mask"])
    ratios = double(inputs["vllm_is_ratio"])
    for key, expected in vector["expected"].items():
        student = double(inputs["student_logits"]).requires_grad_()
        divergence = divergences.jensen_shannon(parse_key(key)[1]["alpha"])
        values = divergence(student.flatten(0, 1), double(inputs["teacher_logits"]).flatten(0, 1)).view_as(mask)
        yield (key, "per_token"), values
        loss = (values * loss_weights(mask, "sequence_mean", 0, len(mask))).sum()
        yield (key, "loss"), loss
        skipped = skip_mask(mask, inputs["skip"])
        yield (key, "loss_skip"), (values * loss_weights(skipped, "sequence_mean", 0, len(mask))).sum()
        if "loss_with_vllm_is_ratio_skip0" in expected:
            by_sequence = (ratios * mask).sum(1, keepdim=True) / mask.sum(1, keepdim=True)
            weighted = by_sequence * loss_weights(mask, "sequence_mean", 0, len(mask))
            yield (key, "loss_with_vllm_is_ratio_skip0"), (values * weighted).sum()
        if "grad_student_logits" in expected:
            loss.backward()
            yield (key, "grad_student_logits"), student.grad


def gkd_jsd(vector: Vector) -> Found:
    inputs = vector["inputs"]
    mask = double(inputs["completion_mask"])
    teacher = double(inputs["teacher_logits"]).flatten(0, 1)
    for key, expected in vector["expected"].items():
        parameters = parse_key(key)[1]
        student = double(inputs["student_logits"]).requires_grad_()
        divergence = divergences.tempered(divergences.jensen_shannon(parameters["beta"]), parameters["temperature"])
        values = divergence(student.flatten(0, 1), teacher).view_as(mask)
        loss = (values * loss_weights(mask, "token_mean", inputs["num_tokens"], len(mask))).sum()
        yield (key, "loss"), loss
        yield (key, "trl_chunked_float32"), loss, FP32
        yield (key, "loss_num_items_20"), (values * loss_weights(mask, "token_mean", 20, len(mask))).sum()
        if "grad_student_logits" in expected:
            loss.backward()
            yield (key, "grad_student_logits"), student.grad


def opsd(vector: Vector) -> Found:
    inputs = vector["inputs"]
    ids, teacher_ids = torch.tensor(inputs["student_input_ids"]), torch.tensor(inputs["teacher_input_ids"])
    keep = torch.tensor(inputs["labels"]) != -100
    gap = inputs["teacher_prompt_length"] - inputs["student_prompt_length"]
    teacher_keep = torch.nn.functional.pad(keep, (gap, 0))
    batch = {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "loss_weights": loss_weights(keep.double(), "token_mean", int(keep.sum()), len(keep)),
        "teacher_input_ids": teacher_ids,
        "teacher_attention_mask": torch.ones_like(teacher_ids),
        "teacher_keep": teacher_keep,
    }
    teacher = GivenLogits(double(inputs["teacher_logits"]))
    for key, expected in vector["expected"].items():
        words, parameters = parse_key(key)
        student = double(inputs["student_logits"]).requires_grad_()
        if words[0] == "jsd":
            divergence = divergences.divergence_of(
                parameters["beta"], parameters["top_k"], support="teacher", rest="renormalise"
            )
        else:
            divergence = divergences.sampled_token
        loss = on_policy_loss(GivenLogits(student), teacher, batch, divergence, parameters["temperature"])
        yield (key, "loss"), loss
        if "grad_student_logits" in expected:
            loss.backward()
            yield (key, "grad_student_logits"), student.grad


def sdpo_topk(vector: Vector) -> Found:
    inputs = vector["inputs"]
    mask = double(inputs["completion_mask"])
    usable = double(inputs["self_distillation_mask"])[:, None]
    teacher = double(inputs["teacher_logits"]).flatten(0, 1)
    ids = torch.tensor(inputs["completion_ids"])
    for key, expected in vector["expected"].items():
        words, parameters = parse_key(key)
        student = double(inputs["student_logits"]).requires_grad_()
        logits = student.flatten(0, 1)
        none_usable = words[:1] == ["all_masked"]
        if words[:1] == ["sampled_token"]:
            divergence = divergences.sampled_token
        else:
            rest: divergences.Rest = "tail" if parameters.get("tail") else "renormalise"
            divergence = divergences.divergence_of(
                parameters.get("alpha", 0.5), parameters.get("topk"), support="student", rest=rest
            )
        values = divergence(logits, teacher, ids.flatten()).view_as(mask)
        if parameters.get("is_clip") is not None:
            log_probs = logits.log_softmax(-1).gather(-1, ids.flatten()[:, None]).view_as(mask)
            old = double(inputs["old_log_probs"])
            values = values * divergences.importance_weights(log_probs, old, parameters["is_clip"])
        kept = mask * (0 if none_usable else usable)
        loss = (values * loss_weights(kept, "token_mean", int(kept.sum()), int((kept.sum(1) > 0).sum()))).sum()
        yield (key, "official_token_mean_loss"), loss
        if "trl_seqmean_loss" in expected:
            yield (key, "trl_seqmean_loss"), (values * loss_weights(kept, "sequence_mean", 0, len(kept))).sum()
        if "grad_student_logits" in expected:
            loss.backward()
            yield (key, "grad_student_logits"), student.grad


def grpo_advantages(vector: Vector) -> Found:
    inputs = vector["inputs"]
    rewards = (double(inputs["rewards_per_func"]) * double(inputs["reward_weights"])).sum(1)
    group = inputs["num_generations"]
    for key in vector["expected"]:
        words, parameters = parse_key(key)
        if words[0] == "verl_sdpo":
            scale: Any = "group" if parameters["norm_by_std"] else "none"
            yield (key,), policy.group_advantages(rewards, group, scale, epsilon=1e-6)
        elif "scale" in parameters:
            yield (key,), policy.group_advantages(rewards, group, parameters["scale"], epsilon=1e-4)


def grpo_loss(vector: Vector) -> Found:
    inputs = vector["inputs"]
    mask, advantages = double(inputs["completion_mask"]), double(inputs["advantages"])
    for key in vector["expected"]:
        words, parameters = parse_key(key)
        name, level, policy_of = words
        if name not in policy.REDUCTIONS:
            continue
        high = inputs["epsilon_low"] if parameters.get("beta") else inputs["epsilon_high_ppo_like"]
        low, high = (float(part) for part in parameters.get("eps", f"{inputs['epsilon_low']},{high}").split(","))
        objective = policy.PolicyObjective(
            low, high, "sequence" if level.startswith("sequence") else "token",
            parameters.get("beta", 0), parameters.get("use_bias_correction_kl", False),
        )  # fmt: skip
        logprobs = double(inputs["logps"]).requires_grad_()
        old = logprobs.detach() if policy_of == "on_policy" else double(inputs["old_logps"])
        losses = policy.policy_loss(objective, logprobs, old, advantages, mask, double(inputs["ref_logps"]))
        weights = loss_weights(
            mask, policy.REDUCTIONS[name], int(mask.sum()), len(mask), inputs["max_completion_length"]
        )
        loss = (losses * weights).sum()
        loss.backward()
        yield (key, "loss"), loss
        yield (key, "grad_logps"), logprobs.grad


def isdft_tilt(vector: Vector) -> Found:
    inputs = vector["inputs"]
    mask = double(inputs["completion_mask"])
    weights = loss_weights(mask, "sequence_mean", 0, len(mask))
    teacher, base = double(inputs["teacher_logits"]).flatten(0, 1), double(inputs["base_logits"]).flatten(0, 1)
    for key, expected in vector["expected"].items():
        if "(" in key:
            start, end, steps = _schedule(key)
            for step in expected:
                yield (key, step), tilt.ramp(int(step), start, end, steps)
            continue
        rho = parse_key(key)[1]["rho"]
        student = double(inputs["student_logits"]).requires_grad_()
        logits = student.flatten(0, 1)
        log_student, log_teacher = divergences.log_probs(logits.detach(), teacher)
        found = tilt.tilted_target(log_student, log_teacher, rho, "information", 60)
        yield (key, "lam"), found.strength.view_as(mask)
        yield (key, "gamma"), found.budget.view_as(mask)
        yield (key, "info_under_q"), found.reached.view_as(mask)
        yield (key, "kl_T_p"), divergences.forward_kl(logits, teacher).view_as(mask)
        distill = divergences.forward_kl(logits, found.log_target).view_as(mask)
        yield (key, "kl_qstar_p"), distill
        anchor = divergences.forward_kl(logits, base).view_as(mask)
        yield (key, "distill_loss_fwd"), (distill * weights).sum()
        yield (key, "anchor_loss"), (anchor * weights).sum()
        total = ((distill + inputs["mu"] * anchor) * weights).sum()
        yield (key, "total_loss"), total
        if "log_q_star" in expected:
            yield (key, "log_q_star"), found.log_target.view_as(student)
        if "grad_student_logits_total" in expected:
            total.backward()
            yield (key, "grad_student_logits_total"), student.grad


def _schedule(key: str) -> tuple[float, float, int]:
    """Start, end and length of ``schedule_linear(rho_min=0.25,rho=1.0,ramp=150)``."""
    inside = key[key.index("(") + 1 : key.index(")")]
    parameters = parse_key(inside.replace(",", "|"))[1]
    return parameters["rho_min"], parameters["rho"], parameters["ramp"]


def ewc(vector: Vector) -> Found:
    inputs = vector["inputs"]
    weights = {name: double(value).requires_grad_() for name, value in inputs["params"].items()}
    saved = [{name: double(value) for name, value in one.items()} for one in inputs["saved"]]
    importance = [{name: double(value) for name, value in one.items()} for one in inputs["importance"]]
    strength = inputs["ewc_lambda"]
    pairs = list(zip(saved, importance, strict=True))
    separate = torch.stack([quadratic_penalty(weights, a, f, strength) for a, f in pairs]).sum()
    separate.backward()
    yield ("kirkpatrick_half_lambda_separate",), separate
    yield ("grad_w_half_lambda_separate",), weights["w"].grad
    yield ("grad_b_half_lambda_separate",), weights["b"].grad
    # avalanche's lambda is half of ours, and it accumulates in fp32.
    doubled = [quadratic_penalty(weights, a, f, 2 * strength) for a, f in pairs]
    yield ("penalty_lambda_separate",), torch.stack(doubled).sum(), FP32
    yield ("penalty_lambda_online_last_only",), doubled[-1], FP32
    matrix = double(inputs["fisher_W"]).requires_grad_()
    rows = double(inputs["fisher_X"])
    log_likelihoods = [(matrix @ row).log_softmax(-1) for row in rows]
    gold = [[(1.0, one[label])] for one, label in zip(log_likelihoods, inputs["fisher_y"], strict=True)]
    yield ("fisher_empirical_per_example",), squared_gradients({"W": matrix}, gold)["W"]
    log_likelihoods = [(matrix @ row).log_softmax(-1) for row in rows]
    every = [[(float(value.detach().exp()), value) for value in one] for one in log_likelihoods]
    yield ("fisher_true_model_labels",), squared_gradients({"W": matrix}, every)["W"]


def teacher_ema(vector: Vector) -> Found:
    inputs = vector["inputs"]
    start = torch.tensor(inputs["teacher"])
    rows, columns = start.shape
    student = tiny_model(0)
    name, parameter = next(iter(student.model.named_parameters()))
    for key in vector["expected"]:
        with torch.no_grad():
            parameter[:rows, :columns] = start
        teacher = EMATeacher(student, parse_key(key)[1]["rate"])
        steps = []
        for moved in inputs["students"]:
            with torch.no_grad():
                parameter[:rows, :columns] = torch.tensor(moved)
            teacher.update(student)
            steps.append(dict(teacher.chat.model.named_parameters())[name][:rows, :columns].tolist())
        yield (key,), steps, FP32


COMPARISONS: dict[str, Callable[[Vector], Found]] = {
    "asft": asft,
    "cl_metrics": cl_metrics,
    "correlation": correlation_bootstrap,
    "dft": dft,
    "ewc": ewc,
    "gkd_jsd": gkd_jsd,
    "grpo_advantages": grpo_advantages,
    "grpo_loss": grpo_loss,
    "isdft_tilt": isdft_tilt,
    "opsd": opsd,
    "pflops": pflops,
    "samplewise": samplewise_,
    "sdft_kl": sdft_kl,
    "sdpo_topk": sdpo_topk,
    "sft_ce": sft_ce,
    "shift_drift": shift_drift,
    "teacher_ema": teacher_ema,
}
"""Comparison by the beginning of a vector's file name."""

EXEMPT: dict[str, str] = {
    "grpo_advantages/trl|normalize_then_sum": "for several reward functions; a task here has one reward",
    "grpo_loss/cispo|*": "trl's own loss type, which no method here offers",
    "grpo_loss/sapo|*": "trl's own loss type, which no method here offers",
    "grpo_loss/luspo|*": "trl's own loss type, which no method here offers",
    "grpo_loss/vespo|*": "trl's own loss type, which no method here offers",
    "isdft_tilt/*/max_abs_diff_vs_official_float32_bisection": "a note on the vector itself",
    "ewc/fisher_WRONG_*": "the mistake that the right value is told apart from",
}
"""Expected keys that nothing is compared with, as ``prefix/place`` patterns, with the reason."""
