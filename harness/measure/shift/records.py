"""A measured number with everything that says what it is: against whom, on which prompts and answers, how averaged."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Against = Literal["none", "base", "previous"]
BASE: Against = "base"
PREVIOUS: Against = "previous"
_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Record:
    """One number of ``shift.json``.

    Attributes:
        measure: What is measured.
        against: ``base``: the untouched model; ``previous``: the model before the stage; ``none``: the model alone.
        prompts: The set of prompts, or ``weights``.
        contexts: Who wrote the answers that were read, and how.
        reduction: How it was averaged.
        unit: Unit of the value.
        n: How many things the reduction goes over (tokens of a token mean, answers, weights).
        value: The number; None where it does not exist.
        reason: Why there is none, or what to mind about the one there is.
        by: The same by part: task, benchmark, layer or kind; of a difference, the two numbers.
    """

    measure: str
    against: Against
    prompts: str
    contexts: str
    reduction: str
    unit: str
    n: int
    value: float | None
    reason: str = ""
    by: Mapping[str, float | None] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The record as JSON: nine significant digits, no reason and no parts where there are none."""
        found: dict[str, Any] = {
            "measure": self.measure,
            "against": self.against,
            "prompts": self.prompts,
            "contexts": self.contexts,
            "reduction": self.reduction,
            "unit": self.unit,
            "n": self.n,
            "value": rounded(self.value),
        }
        # A remark on a value is no reason why there is none.
        broken = ["undefined: not a finite number"] if self.value is not None and found["value"] is None else []
        reason = "; ".join([*broken, *([self.reason] if self.reason else [])])
        if reason or found["value"] is None:
            found["reason"] = reason or "undefined"
        if self.by:
            found["by"] = {name: rounded(value) for name, value in self.by.items()}
        return found


def rounded(value: float | None) -> float | None:
    """Nine significant digits; None for what is not finite."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{_DIGITS}g}")
