"""WiSE-FT: after each stage the weights are averaged with a frozen model's."""

from __future__ import annotations

from typing import ClassVar, Literal, cast

import torch

from cl_bench.methods.base import Context, Fidelity, MethodSettings, Modifier, Stage, Student, setting

_PAPER = "WiSE-FT (2109.01903)"


class WiSEFTSettings(MethodSettings):
    """Settings of WiSE-FT."""

    share: float = setting(
        0.5, "Share of the stage's result in the average; the paper looks at 0 to 1.", unit="fraction", source=_PAPER,
        ge=0, le=1,
    )  # fmt: skip
    anchor: Literal["task_start", "original"] = setting(
        "task_start",
        "The other model: that of the stage's start, or the untouched one.",
        unit="choice",
        source=_PAPER,
        inferred=True,
    )


class WiSEFT(Modifier):
    """Replaces the weights by (1 - share) x anchor + share x result at the end of each stage, fp32 (2109.01903).

    Training is unchanged; the next stage begins from the average.
    """

    name: ClassVar[str] = "wise-ft"
    paper: ClassVar[str] = "2109.01903"
    fidelity: ClassVar[Fidelity] = Fidelity.PAPER_FORMULA
    checked: ClassVar[str] = "averages by hand"
    Settings: ClassVar[type[MethodSettings]] = WiSEFTSettings

    @torch.no_grad()
    def after_stage(self, student: Student, stage: Stage, context: Context) -> None:
        """Average, tied weights once."""
        settings = cast(WiSEFTSettings, self.settings)
        frozen = context.original() if settings.anchor == "original" else context.task_start()
        anchors = dict(frozen.model.named_parameters())
        for name, weight in student.model.named_parameters():
            weight.copy_(torch.lerp(anchors[name].to(weight), weight, settings.share))
