"""One comparison for each kind of golden vector: what our own functions give for a vector's inputs.

A comparison yields (place in ``expected``, our value) or (place, our value, tolerance). Values and gradients come from
the functions that training and measurement call; parameters are read out of the vector's keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from cl_bench.harness.measure import correlation, metrics, samplewise, shift
from cl_bench.harness.measure.cost import forward_flops, petaflops
from cl_bench.harness.measure.drift import matrix_change, weight_drift
from cl_bench.harness.measure.matrix import Cell, Column, Matrix
from cl_bench.methods.training import divergences, policy, tilt
from cl_bench.methods.training.anchors import Anchor
from cl_bench.methods.training.fisher import quadratic_penalty, squared_gradients
from cl_bench.methods.training.losses import cross_entropy, dft_loss, loss_weights, skip_mask
from cl_bench.methods.training.on_policy import on_policy_loss
from cl_bench.methods.training.supervised import supervised_loss
from cl_bench.methods.training.teachers import EMATeacher
from tests.support import tiny_model

Place = tuple[str, ...]
Found = Iterator[tuple[Place, Any] | tuple[Place, Any, float]]
Vector = Mapping[str, Any]

FP32 = 2e-5
"""Tolerance where the reference computes in fp32."""


def parse_key(key: str) -> tuple[list[str], dict[str, Any]]:
    """Words and parameters of a key: ``jsd|beta=0.5|top_k=None`` to (["jsd"], {"beta": 0.5, "top_k": None})."""
    words: list[str] = []
    parameters: dict[str, Any] = {}
    for part in key.split("|"):
        name, equals, value = part.partition("=")
        if equals:
            parameters[name] = _literal(value)
        else:
            words.append(part)
    return words, parameters


def _literal(text: str) -> Any:
    constants = {"None": None, "True": True, "False": False}
    if text in constants:
        return constants[text]
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def double(values: Any) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


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


def cl_metrics(vector: Vector) -> Found:
    inputs = vector["inputs"]
    tasks = [f"task{index}" for index in range(len(inputs["base"]))]
    matrix = Matrix([Column(task, "sequence", 0.0, 1, "accuracy") for task in tasks])
    for row, values in zip(["base", *tasks], [inputs["base"], *inputs["R"]], strict=True):
        matrix.add_row(row)
        for task, value in zip(tasks, values, strict=True):
            matrix.set(row, task, Cell(value))
    scores = metrics.Scores(matrix, {task: (task,) for task in tasks})
    joint = dict(zip(tasks, inputs["joint_reference"], strict=True))
    yield ("average_accuracy_final",), metrics.average_accuracy(scores)
    yield ("average_incremental_accuracy",), metrics.average_incremental_accuracy(scores)
    yield ("BWT",), metrics.backward_transfer(scores)
    yield ("mammoth_BWT",), metrics.backward_transfer(scores)
    yield ("FWT_vs_base",), metrics.forward_transfer(scores)
    yield ("mammoth_FWT",), metrics.forward_transfer(scores)
    yield ("forgetting_max_past_minus_final",), metrics.forgetting(scores)
    yield ("forgetting_max_from_learn",), metrics.forgetting(scores, since_learned=True)
    yield ("forgetting_clamped_at_zero",), metrics.forgetting(scores, with_final=True)
    yield ("mammoth_forgetting",), metrics.forgetting(scores, with_final=True)
    yield ("intransigence",), metrics.intransigence(scores, joint)
    yield ("learning_accuracy_diag",), metrics.mean_over_stages(scores, metrics.acquisition)
    yield ("acquisition_gain_over_base",), metrics.mean_over_stages(scores, metrics.gain)
    yield ("per_task_forgetting",), [metrics.task_forgetting(scores, task) for task in tasks[:-1]]
    triangle = metrics.forgetting_matrix(scores)
    yield ("avalanche_forgetting_matrix",), [[triangle[row].get(task, 0.0) for task in tasks] for row in tasks]


def samplewise_(vector: Vector) -> Found:
    inputs = vector["inputs"]
    for key in vector["expected"]:
        options = parse_key(key)[1].get("k")
        found = samplewise.sample_wise(inputs["pre"], inputs["post"], options)
        yield (key, "n"), found.n
        yield (key, "acc_pre"), found.accuracy_before
        yield (key, "acc_post"), found.accuracy_after
        counts = {"1->1": found.kept, "1->0": found.forgotten, "0->1": found.gained, "0->0": found.never}
        for name, count in counts.items():
            yield (key, "counts", name), count
        yield (key, "expected_chance_transition"), found.chance_transition
        for name, share in (("forgetting", found.forgetting), ("backward_transfer", found.backward_transfer)):
            yield (key, name), share
            yield (key, f"{name}_adj_unclipped"), found.adjusted(share)
            yield (key, f"{name}_adj"), max(0.0, found.adjusted(share))
        if options:
            yield (key, "known_pre"), found.known_before
            yield (key, "known_post"), found.known_after


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


def shift_drift(vector: Vector) -> Found:
    inputs = vector["inputs"]
    base, post, mask = double(inputs["base_logits"]), double(inputs["post_logits"]), torch.tensor(inputs["mask"])
    ids = torch.tensor(inputs["token_ids"])
    forward = shift.token_kl(base, post)
    yield ("forward_kl_base_post_tokenmean",), shift.token_mean(forward, mask)
    yield ("forward_kl_base_post_seqmean",), shift.sequence_mean(forward, mask)
    yield ("reverse_kl_post_base_tokenmean",), shift.token_mean(shift.token_kl(post, base), mask)
    nll, other = shift.token_nll(base, ids), shift.token_nll(post, ids)
    mean = shift.token_mean(nll, mask)
    yield ("nll_under_base_tokenmean",), mean
    yield ("nll_under_base_seqmean",), shift.sequence_mean(nll, mask)
    yield ("ppl_under_base",), double(mean).exp()
    yield ("sampled_forward_kl_k1",), shift.token_mean(shift.sampled_kl_k1(nll, other), mask)
    yield ("sampled_forward_kl_k3",), shift.token_mean(shift.sampled_kl_k3(nll, other), mask)
    before, after = double(inputs["W0"]), double(inputs["W1"])
    for name, value in weight_drift([(before, after)]).items():
        yield (name,), value
    change = matrix_change(before, after)
    yield ("spectral_norm",), change["spectral_norm"]
    yield ("stable_rank",), change["stable_rank"]
    yield ("effective_rank_sv_entropy",), change["effective_rank"]
    yield ("effective_rank_energy_entropy",), change["effective_rank_energy"]
    yield ("fraction_changed_gt_1e_3_rel",), change["changed_share"]


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


def correlation_bootstrap(vector: Vector) -> Found:
    inputs = vector["inputs"]
    x, y = inputs["shift"], inputs["forgetting_delta"]
    drawn = correlation.resamples(len(x), inputs["n_boot"], inputs["bootstrap_seed"])
    found = correlation.correlate(x, y, drawn)
    yield ("pearson",), found.pearson
    yield ("pearson_p",), found.pearson_p
    yield ("spearman",), found.spearman
    yield ("slope",), found.slope
    yield ("intercept",), found.intercept
    yield ("pearson_ci95",), list(found.pearson_interval)
    yield ("spearman_ci95",), list(found.spearman_interval)


def pflops(vector: Vector) -> Found:
    inputs = vector["inputs"]
    parameters, prompt, generated = int(inputs["n_params"]), inputs["prompt_tokens"], inputs["generated_tokens"]
    yield ("pflops_2N_prompt_plus_generated",), petaflops(forward_flops(parameters, prompt + generated))
    yield ("pflops_2N_generated_only",), petaflops(forward_flops(parameters, generated))
    for row in inputs["seed_table2"]:
        million = petaflops(forward_flops(int(row["n_params_assumed"]), 10**6))
        yield ("implied_tokens_million", f"{row['aligner']}|{row['domain']}"), row["pflops"] / million


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
