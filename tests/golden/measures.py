"""Comparisons of what measurement computes: metrics, shift, drift, correlation, cost."""

from __future__ import annotations

import torch

from cl_bench.harness.measure import correlation, metrics, samplewise
from cl_bench.harness.measure.cost import forward_flops, petaflops
from cl_bench.harness.measure.matrix import Cell, Column, Matrix
from cl_bench.harness.measure.scores import Scores
from cl_bench.harness.measure.shift import divergence as shift
from cl_bench.harness.measure.shift.weights import matrix_change, weight_drift
from tests.golden.vectors import Found, Vector, double, parse_key


def cl_metrics(vector: Vector) -> Found:
    inputs = vector["inputs"]
    tasks = [f"task{index}" for index in range(len(inputs["base"]))]
    matrix = Matrix([Column(task, "sequence", 0.0, 1, "accuracy") for task in tasks])
    for row, values in zip(["base", *tasks], [inputs["base"], *inputs["R"]], strict=True):
        matrix.add_row(row)
        for task, value in zip(tasks, values, strict=True):
            matrix.set(row, task, Cell(value))
    scores = Scores(matrix, {task: (task,) for task in tasks})
    joint = dict(zip(tasks, inputs["joint_reference"], strict=True))
    yield ("average_accuracy_final",), metrics.average_accuracy(scores)
    yield ("average_incremental_accuracy",), metrics.average_incremental_accuracy(scores)
    yield ("BWT",), metrics.backward_transfer(scores)
    yield ("mammoth_BWT",), metrics.backward_transfer(scores)
    yield ("FWT_vs_base",), metrics.forward_transfer(scores)
    yield ("mammoth_FWT",), metrics.forward_transfer(scores)
    yield ("forgetting_max_past_minus_final",), metrics.forgetting(scores, "all")
    yield ("forgetting_max_from_learn",), metrics.forgetting(scores, "own")
    yield ("forgetting_clamped_at_zero",), metrics.forgetting(scores, "every")
    yield ("mammoth_forgetting",), metrics.forgetting(scores, "every")
    yield ("intransigence",), metrics.intransigence(scores, joint)
    yield ("learning_accuracy_diag",), metrics.mean_over_stages(scores, metrics.acquisition)
    yield ("acquisition_gain_over_base",), metrics.mean_over_stages(scores, metrics.gain)
    yield ("per_task_forgetting",), [metrics.task_forgetting(scores, task, "all") for task in tasks[:-1]]
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
