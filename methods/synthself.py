"""SynthSelf: a larger model of the family rewrites the demonstrations in its own words; the student learns those."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, cast

from cl_bench.harness.errors import NothingAcceptedError
from cl_bench.harness.generation.base import GenerationSettings
from cl_bench.harness.measure.cost import forward_flops
from cl_bench.methods.base import (
    Adaptation,
    Context,
    Fidelity,
    Method,
    MethodSettings,
    Need,
    Stage,
    Student,
    setting,
)
from cl_bench.methods.training.adaptation import adaptation_of, rows_hash
from cl_bench.methods.training.conditioning import DEFAULT_TEMPLATE
from cl_bench.methods.training.losses import cross_entropy
from cl_bench.methods.training.mixin import TrainingSession, restore_ledger
from cl_bench.methods.training.rewriting import RewriteSettings, generate_rewrites
from cl_bench.methods.training.rows import training_rows
from cl_bench.methods.training.settings import TrainingSettings
from cl_bench.methods.training.supervised import supervised_trainer

_PAPER = "SynthSelf (2610.13113)"
_FAR_FROM_ACCEPTED = 0.5
"""Accepted share below which the report warns: what is left is a selection of easy prompts."""


class SynthSelfSettings(TrainingSettings):
    """Settings of SynthSelf."""

    rewrite_template: str = setting(
        DEFAULT_TEMPLATE,
        "The aligner's user turn, with {question} and {demonstration}.",
        unit="text",
        source=_PAPER,
        inferred=True,
    )
    candidates: int = setting(
        4,
        "Candidates per prompt at most; the first accepted one is kept.",
        unit="samples",
        source=_PAPER,
        inferred=True,
        ge=1,
    )
    temperature: float = setting(
        0.7, "Sampling temperature of the aligner.", unit="1", source=_PAPER, inferred=True, ge=0
    )
    max_completion_length: int = setting(
        1024, "Longest rewrite; longer ones count as truncated.", unit="tokens", source="SDFT code", inferred=True, ge=1
    )
    leak_phrases: tuple[str, ...] = setting(
        ("reference", "provided answer", "possible response", "example response", "given response"),
        "Phrases that betray the demonstration; a rewrite holding one is rejected (case ignored).",
        unit="text",
        source=_PAPER,
        inferred=True,
    )
    unaccepted: Literal["drop", "gold"] = setting(
        "drop", "Prompts without an accepted rewrite: dropped, or trained on the gold.", unit="choice", source=_PAPER,
        inferred=True,
    )  # fmt: skip


class SynthSelf(Method):
    """In-distribution rewriting by an aligner with rejection sampling, then SFT on the plain prompt.

    Reconstructed from abstract, tables and captions of 2610.13113: that an aligner of the same family rewrites, that a
    verifier rejects, and the training settings (table 5) are stated; prompt, candidates, temperature and filters are
    inferred and marked so in the settings.
    """

    name: ClassVar[str] = "synthself"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.DEMONSTRATIONS, Need.REWARD, Need.ALIGNER})
    fidelity: ClassVar[Fidelity] = Fidelity.RECONSTRUCTED
    paper: ClassVar[str] = "2610.13113"
    family: ClassVar[str] = "supervised"
    Settings: ClassVar[type[MethodSettings]] = SynthSelfSettings

    def adapt(self, student: Student, stage: Stage, context: Context) -> Adaptation:
        """Generate, filter, train. Raises ``NothingAcceptedError`` where the aligner gets nothing accepted."""
        settings = cast(SynthSelfSettings, cast(SynthSelfSettings, self.settings).for_stage(stage))
        self._fill_ledger(stage, context, settings)
        generated = list(context.ledger)
        rejected = dict(Counter(reason for row in generated for reason in row["reasons"]))
        pairs = []
        for example, row in zip(stage.examples, generated, strict=True):
            text = row["text"]
            if text is None and settings.unaccepted == "gold":
                text = example.demonstration
            if text is None:
                rejected["dropped_rows"] = rejected.get("dropped_rows", 0) + 1
            else:
                pairs.append((example, text))
        rows = training_rows(student, pairs, settings.max_length, rejected)
        if not rows:
            raise NothingAcceptedError(
                f"the aligner got no rewrite accepted in stage {stage.name}",
                why=", ".join(f"{reason}: {count}" for reason, count in sorted(rejected.items())) or "no rows",
                hint="look at method.rewrite_template, raise method.candidates, or choose a stronger --aligner",
            )
        session = TrainingSession(self, student, stage, context, settings)
        trainer = supervised_trainer(session, rows, cross_entropy)
        trainer.run()
        adaptation = adaptation_of(session, trainer, rejected, rows_hash(rows))
        _report_generation(adaptation, generated, context)
        return adaptation

    def _fill_ledger(self, stage: Stage, context: Context, settings: SynthSelfSettings) -> None:
        checkpoint = context.checkpoints.latest()
        if checkpoint is not None:
            restore_ledger(context.ledger, checkpoint)
            return
        rewriting = RewriteSettings(
            template=settings.rewrite_template,
            candidates=settings.candidates,
            generation=GenerationSettings(
                max_new_tokens=settings.max_completion_length,
                temperature=settings.temperature,
                batch_size=context.precision.generation_batch_size,
            ),
            leak_phrases=tuple(phrase.lower() for phrase in settings.leak_phrases),
        )
        context.ledger.replace(generate_rewrites(stage, context, rewriting))


def _report_generation(adaptation: Adaptation, rows: Sequence[dict[str, Any]], context: Context) -> None:
    accepted = [row for row in rows if row["text"] is not None]
    tokens = sum(row["generated_tokens"] for row in rows)
    passes = tokens + sum(row["prompt_tokens"] for row in rows)
    adaptation.generated_tokens["aligner"] = tokens
    adaptation.flops["data_generation"] = forward_flops(context.aligner_parameters(), passes)
    # A row that was never sampled says nothing about the aligner, and a mean of nothing is absent, no zero.
    sampled = [row for row in rows if row["prompt_tokens"]]
    values: dict[str, list[float]] = {
        "first_sample_accuracy": [row["first_correct"] for row in sampled],
        "first_sample_accepted": [row["first_accepted"] for row in sampled],
        "accepted_share": [row["text"] is not None for row in rows],
        "mean_candidates": [row["candidate"] for row in accepted],
        "edit_similarity": [row["similarity"] for row in accepted],
        "identical_to_demonstration": [row["similarity"] == 1.0 for row in accepted],
    }
    adaptation.data_generation = {name: sum(found) / len(found) for name, found in values.items() if found}
    if adaptation.data_generation["accepted_share"] < _FAR_FROM_ACCEPTED:
        share = adaptation.data_generation["accepted_share"]
        adaptation.warnings.append(f"only {share:.0%} of the prompts have an accepted rewrite: a biased selection")
