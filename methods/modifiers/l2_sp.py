"""L2-SP: a quadratic pull towards a frozen model's weights."""

from __future__ import annotations

from typing import ClassVar, Literal, cast

from torch import Tensor

from cl_bench.methods.base import Context, Fidelity, MethodSettings, Modifier, Stage, Student, setting
from cl_bench.methods.training.fisher import quadratic_penalty, trained_weights


class L2SPSettings(MethodSettings):
    """Settings of L2-SP."""

    strength: float = setting(
        0.1, "Weight of half the squared distance to the anchor.", unit="1", source="L2-SP (1802.01483)", ge=0
    )
    anchor: Literal["task_start", "original"] = setting(
        "task_start",
        "Weights to stay near: those at the start of the stage, or the untouched model's.",
        unit="choice",
        source="L2-SP (1802.01483): one stage, where both are the same",
        inferred=True,
    )


class L2SP(Modifier):
    """Adds strength / 2 x |weights - anchor|^2 once per optimizer step, before clipping (1802.01483).

    The cheap control of EWC: every weight counts alike. The anchor comes from a verified checkpoint, so that it is the
    same after a resume.
    """

    name: ClassVar[str] = "l2-sp"
    paper: ClassVar[str] = "1802.01483"
    fidelity: ClassVar[Fidelity] = Fidelity.PAPER_FORMULA
    checked: ClassVar[str] = "gradients by hand"
    Settings: ClassVar[type[MethodSettings]] = L2SPSettings

    def __init__(self, settings: MethodSettings | None = None) -> None:
        """Build with settings (defaults where None)."""
        super().__init__(settings)
        self._anchor: dict[str, Tensor] = {}

    def before_stage(self, student: Student, stage: Stage, context: Context) -> None:
        """Take the anchor."""
        original = cast(L2SPSettings, self.settings).anchor == "original"
        frozen = context.original() if original else context.task_start()
        self._anchor = {name: weight.detach().clone() for name, weight in frozen.model.named_parameters()}

    def parameter_penalty(self, student: Student) -> Tensor | None:
        """The penalty, a scalar."""
        return quadratic_penalty(
            trained_weights(student), self._anchor, None, cast(L2SPSettings, self.settings).strength
        )
