"""How far each stage moved the model: the shift panel as grids of text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cl_bench.harness.run_directory import RunView
from cl_bench.reports.content import MISSING, Grid

NEW_TASK, GENERAL = "new task", "general"
_NATS, _SMALL = ".4f", 0.001
_TOKENS = {"reduction": "token mean"}
_ARTEFACTS = ("repetition", "truncation", "leaked_template", "leaked_teacher", "broken_blocks")


@dataclass(frozen=True, slots=True)
class _Number:
    """A column of a table: a measure and what it must be of."""

    label: str
    measure: str
    wanted: Mapping[str, str] = field(default_factory=dict)
    form: str = _NATS


def _on(prompts: str, against: str, **more: str) -> dict[str, str]:
    return {"prompts": prompts, "against": against, **more}


def _both(label: str, measure: str, form: str, **wanted: str) -> list[_Number]:
    return [
        _Number(f"{label}, {whom}", measure, {"against": against, **wanted}, form)
        for against, whom in (("base", "base"), ("previous", "previous"))
    ]


_DIVERGENCE = [
    *(
        _Number(f"{label}, {prompts}, {against}", measure, _on(prompts, against, **_TOKENS))
        for measure, label in (("forward_kl", "forward KL"), ("reverse_kl", "reverse KL"))
        for prompts in (NEW_TASK, GENERAL)
        for against in ("base", "previous")
    ),
]
_AGREEMENT = [
    _Number(f"{label}, {prompts}, {against}", measure, _on(prompts, against), form)
    for measure, label, form in (("top1_agreement", "top-1 agreement", ".3f"), ("response_mmd2", "MMD²", ".2g"))
    for prompts in (NEW_TASK, GENERAL)
    for against in ("base", "previous")
]
_TRAINING = [
    *_both("NLL a token", "training_nll", ".3f", **_TOKENS),
    *_both("beyond own answers", "training_nll_excess", "+.3f", **_TOKENS),
    *_both("NLL, mean of rows", "training_nll", ".3f", reduction="sequence mean"),
]
_WEIGHTS = [
    *_both("relative L2", "parameter_relative_l2", ".2e"),
    *_both("cosine", "parameter_cosine", ".6f"),
    *_both("spectral norm", "parameter_spectral_norm", ".2e"),
    *_both("effective rank", "parameter_effective_rank", ".1f"),
    *_both("share changed", "parameter_changed_share", ".3f"),
]
_RESPONSES = [
    *_both("length ratio", "response_length_ratio", ".2f"),
    *_both("same text", "response_exact_match", ".3f"),
    *_both("edit similarity", "response_edit_similarity", ".3f"),
]


def shift_grids(view: RunView) -> list[Grid]:
    """Tables of the run's shift: divergence, agreement, training data, weights, answers, artefacts; those with numbers.

    A run of an earlier version, whose documents have another form, has none.
    """
    shifts = {stage: found["measures"] for stage, found in view.shifts().items() if found.get("measures")}
    grids = [
        _grid("Divergence (nats per token)", shifts, _DIVERGENCE, (
            "Forward KL(earlier || this row) on the earlier model's answers, reverse KL(this row || earlier) on this "
            "row's; answers at temperature 1 to dev prompts that no column scores; token means.",
        )),
        _grid("Agreement of distributions and answers", shifts, _AGREEMENT, (
            "Same answers. MMD²: unbiased, between embeddings that the untouched model gives the answers.",
        )),
        _grid("Likelihood of the rows trained on (nats per token)", shifts, _TRAINING, (
            "A sample of the exact tokens trained on, under the untouched model (base) and under the model at the "
            "start of the stage (previous); no divergence. Beyond own answers: minus the same model's own answers.",
        )),
        _grid("Parameter drift", shifts, _WEIGHTS, ("All weights; by layer in shift.json.",)),
        _grid("Response drift", shifts, _RESPONSES, (
            "Greedy answers to the scored rows, against the earlier ones to the same rows.",
        )),
        _artefacts(shifts),
    ]  # fmt: skip
    return [grid for grid in grids if grid is not None]


def record(measures: Sequence[Mapping[str, Any]], measure: str, wanted: Mapping[str, str]) -> Mapping[str, Any] | None:
    """The first record of a measure whose fields are as wanted; None where there is none."""
    return next(
        (
            found
            for found in measures
            if found["measure"] == measure and all(found[name] == value for name, value in wanted.items())
        ),
        None,
    )


def _grid(
    title: str, shifts: Mapping[str, Sequence[Mapping[str, Any]]], numbers: Sequence[_Number], notes: tuple[str, ...]
) -> Grid | None:
    rows = []
    remarks: dict[str, None] = {}
    for stage, measures in shifts.items():
        cells = []
        for number in numbers:
            found = record(measures, number.measure, number.wanted)
            cells.append(_cell(found, number.form))
            if found and found.get("reason"):
                remarks[f"{stage}, {number.label}: {found['reason']}"] = None
        rows.append((stage, *cells))
    if not any(cell != MISSING for row in rows for cell in row[1:]):
        return None
    return Grid(title, ("stage", *(number.label for number in numbers)), tuple(rows), (*notes, *_shortened(remarks)))


def _cell(found: Mapping[str, Any] | None, form: str) -> str:
    if found is None or found["value"] is None:
        return MISSING
    small = form == _NATS and 0 < abs(found["value"]) < _SMALL
    return format(found["value"], ".1e" if small else form)


def _shortened(remarks: Mapping[str, None]) -> list[str]:
    """Each reason once, with what it is the reason of."""
    by_reason: dict[str, list[str]] = {}
    for remark in remarks:
        where, _, reason = remark.partition(": ")
        by_reason.setdefault(reason, []).append(where)
    return [
        f"{'; '.join(where) if len(where) < 4 else f'{len(where)} cells'}: {why}" for why, where in by_reason.items()
    ]


def _artefacts(shifts: Mapping[str, Sequence[Mapping[str, Any]]]) -> Grid | None:
    rows, notes = [], []
    for stage, measures in shifts.items():
        now = record(measures, "artefact_rate", {"against": "none"})
        change = record(measures, "artefact_rate_change", {"against": "base"})
        if now is None or now["value"] is None:
            continue
        parts = now.get("by", {}), (change or {}).get("by", {})
        kinds = [f"{_percent(parts[0].get(kind))} ({_percent(parts[1].get(kind), '+')})" for kind in _ARTEFACTS]
        rows.append((stage, f"{_percent(now['value'])} ({_percent((change or {}).get('value'), '+')})", *kinds))
        grown = record(measures, "ngram_growth", {"against": "base"})
        if grown and grown.get("by"):
            grams = ", ".join(f"{_code(gram)} {z:.1f}" for gram, z in list(grown["by"].items())[:5])
            notes.append(f"{stage}, words that spread against base (z of the log-odds): {grams}.")
    header = ("stage", "any but truncation", *(kind.replace("_", " ") for kind in _ARTEFACTS))
    first = "Share of greedy answers to the scored rows; in brackets: more than the untouched model's, points."
    return Grid("Formatting artefacts (%)", header, tuple(rows), (first, *notes)) if rows else None


def _code(text: str) -> str:
    """A code span of any text: its fence is longer than every run of backticks inside."""
    fence = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    padding = " " if "`" in text else ""
    return f"{fence}{padding}{text}{padding}{fence}"


def _percent(value: float | None, sign: str = "") -> str:
    return MISSING if value is None else format(100 * value, f"{sign}.1f")
