"""What methods made: their own data, and what became of their teachers."""

from __future__ import annotations

from cl_bench.harness.run_directory import RunView
from cl_bench.reports.content import MISSING, Grid, nats, ordered, percent


def data_generation_grid(view: RunView) -> Grid | None:
    """How well the method's own data came out, for methods that make their data; None for the others."""
    adaptations = {stage: found for stage, found in view.adaptations().items() if found["data_generation"]}
    names = ordered(name for found in adaptations.values() for name in found["data_generation"])
    reasons = ordered(reason for found in adaptations.values() for reason in found["rejected"])
    rows = []
    for stage, found in adaptations.items():
        made = [_generated(name, found["data_generation"].get(name)) for name in names]
        rejected = [str(found["rejected"].get(reason, 0)) for reason in reasons]
        rows.append((stage, *made, *rejected))
    header = ("stage", *(_generated_label(name) for name in names), *(reason.replace("_", " ") for reason in reasons))
    notes = (
        (f"Rejected or dropped rows, by reason: {', '.join(r.replace('_', ' ') for r in reasons)}.",) if reasons else ()
    )
    return Grid("Generated data", header, tuple(rows), notes) if rows else None


def teacher_grid(view: RunView) -> Grid | None:
    """The teacher at the end of each stage, for methods that have one; None for the others."""
    found = {stage: a["teacher"] for stage, a in view.adaptations().items() if a.get("teacher")}
    rows = tuple(
        (
            stage,
            percent(numbers["reward"]) if "reward" in numbers else MISSING,
            nats(numbers.get("kl_to_student")),
            nats(numbers.get("kl_to_start")),
        )
        for stage, numbers in found.items()
    )
    header = ("stage", "reward %", "KL to student", "KL to its start")
    notes = ("Up to 16 prompts of the last batch; KL(teacher || student), KL(teacher || itself at the start), nats.",)
    return Grid("Teacher", header, rows, notes) if rows else None


def _is_share(name: str) -> bool:
    return name.endswith(("accuracy", "accepted", "share", "rate", "similarity", "to_demonstration"))


def _generated_label(name: str) -> str:
    return f"{name.replace('_', ' ')} %" if _is_share(name) else name.replace("_", " ")


def _generated(name: str, value: float | None) -> str:
    if value is None:
        return MISSING
    return percent(value) if _is_share(name) else f"{value:.4g}"
