"""SynthSelf: a larger model of the family rewrites the demonstrations in its own words; the student learns those."""

from __future__ import annotations

from typing import ClassVar, Literal, cast

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
from cl_bench.methods.training.conditioning import DEFAULT_TEMPLATE
from cl_bench.methods.training.generated import train_on_generated
from cl_bench.methods.training.losses import cross_entropy
from cl_bench.methods.training.rewriting import RewriteSettings
from cl_bench.methods.training.settings import TrainingSettings, rollouts

_PAPER = "SynthSelf (2610.13113)"


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
    checked: ClassVar[str] = "rules of acceptance by hand; the source has published no code"
    paper: ClassVar[str] = "2610.13113"
    family: ClassVar[str] = "supervised"
    Settings: ClassVar[type[MethodSettings]] = SynthSelfSettings

    def adapt(self, student: Student, stage: Stage, context: Context) -> Adaptation:
        """Generate, filter, train. Raises ``NothingAcceptedError`` where the aligner gets nothing accepted."""
        settings = cast(SynthSelfSettings, cast(SynthSelfSettings, self.settings).for_stage(stage))
        writing = RewriteSettings(
            template=settings.rewrite_template,
            candidates=settings.candidates,
            generation=rollouts(settings.max_completion_length, settings.temperature, context),
            leak_phrases=tuple(phrase.lower() for phrase in settings.leak_phrases),
        )
        gold = settings.unaccepted == "gold"
        return train_on_generated(
            self, student, stage, context, settings, writing, cross_entropy, gold_where_unaccepted=gold
        )
