"""Training on text that the aligner wrote: what SynthSelf and off-policy distillation share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from cl_bench.harness.errors import NothingAcceptedError
from cl_bench.harness.measure.cost import forward_flops
from cl_bench.methods.base import Adaptation, Context, Method, Stage, Student
from cl_bench.methods.training.adaptation import adaptation_of, rows_hash
from cl_bench.methods.training.anchors import Anchor
from cl_bench.methods.training.mixin import TrainingSession, restore_ledger
from cl_bench.methods.training.rewriting import RewriteSettings, generate_rewrites
from cl_bench.methods.training.rows import training_rows
from cl_bench.methods.training.settings import TrainingSettings
from cl_bench.methods.training.supervised import TokenLoss, supervised_trainer

_FAR_FROM_ACCEPTED = 0.5
"""Accepted share below which the report warns: what is left is a selection of easy prompts."""


def train_on_generated(
    method: Method,
    student: Student,
    stage: Stage,
    context: Context,
    settings: TrainingSettings,
    writing: RewriteSettings,
    token_loss: TokenLoss,
    anchor: Anchor | None = None,
    gold_where_unaccepted: bool = False,
) -> Adaptation:
    """Let the aligner write, keep what is accepted, and train on it with the plain prompt.

    Args:
        method: The method, for its states in checkpoints.
        student: Trained in place.
        stage: Rows.
        context: Aligner, cache, checkpoints, seeds.
        settings: The method's settings for this stage.
        writing: How the aligner writes and what is accepted.
        token_loss: Loss of one label.
        anchor: A model whose distribution on the written text enters the loss, or None.
        gold_where_unaccepted: Train on the demonstration where nothing was accepted, instead of dropping the row.

    Raises:
        NothingAcceptedError: No row is left.
    """
    _fill_ledger(stage, context, writing)
    generated = list(context.ledger)
    rejected = dict(Counter(reason for row in generated for reason in row["reasons"]))
    pairs = []
    for example, row in zip(stage.examples, generated, strict=True):
        text = row["text"]
        if text is None and gold_where_unaccepted:
            text = example.demonstration
        if text is None:
            rejected["dropped_rows"] = rejected.get("dropped_rows", 0) + 1
        else:
            pairs.append((example, text))
    rows = training_rows(student, pairs, settings.max_length, rejected)
    if not rows:
        raise NothingAcceptedError(
            f"the aligner got nothing accepted in stage {stage.name}",
            why=", ".join(f"{reason}: {count}" for reason, count in sorted(rejected.items())) or "no rows",
            hint="look at the aligner's prompt, raise method.candidates, or choose a stronger --aligner",
        )
    session = TrainingSession(method, student, stage, context, settings)
    trainer = supervised_trainer(session, rows, token_loss, anchor=anchor)
    trainer.run()
    adaptation = adaptation_of(session, trainer, rejected, rows_hash(rows))
    _report_generation(adaptation, generated, context)
    return adaptation


def _fill_ledger(stage: Stage, context: Context, writing: RewriteSettings) -> None:
    checkpoint = context.checkpoints.latest()
    if checkpoint is not None:
        restore_ledger(context.ledger, checkpoint)
        return
    context.ledger.replace(generate_rewrites(stage, context, writing))


def _report_generation(adaptation: Adaptation, rows: Sequence[dict[str, Any]], context: Context) -> None:
    accepted = [row for row in rows if row["text"] is not None]
    tokens = sum(row["generated_tokens"] for row in rows)
    passes = tokens + sum(row["prompt_tokens"] for row in rows)
    adaptation.generated_tokens["aligner"] = tokens
    adaptation.flops["data_generation"] = forward_flops(context.aligner_parameters(), passes)
    # A row that was never sampled says nothing about the aligner, and a mean of nothing is absent, no zero.
    sampled = [row for row in rows if row["prompt_tokens"]]
    compared = [row for row in accepted if row["similarity"] is not None]
    values: dict[str, list[float]] = {
        "first_sample_accuracy": [row["first_correct"] for row in sampled],
        "first_sample_accepted": [row["first_accepted"] for row in sampled],
        "accepted_share": [row["text"] is not None for row in rows],
        "mean_candidates": [row["candidate"] for row in accepted],
        "edit_similarity": [row["similarity"] for row in compared],
        "identical_to_demonstration": [row["similarity"] == 1.0 for row in compared],
    }
    adaptation.data_generation = {name: sum(found) / len(found) for name, found in values.items() if found}
    if adaptation.data_generation["accepted_share"] < _FAR_FROM_ACCEPTED:
        share = adaptation.data_generation["accepted_share"]
        adaptation.warnings.append(f"only {share:.0%} of the prompts have an accepted rewrite: a biased selection")
