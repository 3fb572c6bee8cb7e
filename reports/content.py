"""What a report of one run says, as grids of text that the terminal table and the Markdown report both print."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cl_bench.harness.files import read_json
from cl_bench.harness.measure.contamination_scores import clean_metrics
from cl_bench.harness.measure.matrix import BASE_ROW, Cell, Column, ColumnKind, Matrix
from cl_bench.harness.measure.run_metrics import current_metrics
from cl_bench.harness.planned_stages import learned_columns, planned_rows
from cl_bench.harness.run_directory import ENDED, RunView, method_label
from cl_bench.harness.spec import RunSpec

MISSING = "-"
_SMALL, _SMALLEST = 0.01, 1e-4
"""Nats below which three decimals hide the number, and below which a number of many zeros does."""
GROUPS: tuple[tuple[ColumnKind, str], ...] = (
    ("sequence", "Tasks of the sequence"),
    ("ood", "Out of distribution"),
    ("retention", "Retention"),
)
LAB_SENTENCE = (
    "Lab numbers show whether a mechanism appears in a small generated world; they are no benchmark scores of a "
    "language model."
)


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of text.

    Attributes:
        title: Heading.
        header: Column names; the first column holds row names.
        rows: Cells.
        notes: Sentences below it.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def percent(value: float | None, signed: bool = False) -> str:
    """A fraction as percent with one decimal; ``MISSING`` for None."""
    if value is None:
        return MISSING
    return f"{100 * value:+.1f}" if signed else f"{100 * value:.1f}"


def headline(view: RunView) -> str:
    """What was run, in one line."""
    spec = view.spec
    order = "" if spec.sequence.order == "default" else f" ({spec.sequence.order})"
    return f"{method_label(spec)} on {spec.sequence.name}{order}, {spec.model.name}, seed {spec.seed}"


def provenance(spec: RunSpec) -> str:
    """Profile, recipe, aligner, suite and lab version in one line: numbers of different ones do not go in one table."""
    parts = [f"profile {spec.profile}", f"recipe {spec.recipe}{_step(spec)}"]
    if spec.aligner is not None:
        parts.append(f"aligner {spec.aligner.name}")
    if spec.suite is not None:
        parts.append(f"suite {spec.suite.name} ({spec.suite.tier})")
    if spec.lab_version is not None:
        parts.append(f"lab version {spec.lab_version}")
    if spec.evaluation.split != "test":
        parts.append(f"evaluated on {spec.evaluation.split} rows")
    parts += _prompts(spec)
    if spec.limit is not None:
        parts.append(f"PARTIAL: at most {spec.limit} rows a stage and a task")
    return ", ".join(parts)


def origin(spec: RunSpec) -> list[str]:
    """Of a branched run one sentence, which says whose stages it begins with; else nothing."""
    branch = spec.branch
    if branch is None:
        return []
    state = "and its method's state" if branch.carried else "and the method begins anew"
    return [
        f"goes on from stage {branch.row} of {branch.method}, seed {branch.seed} (run {branch.run[:8]}): "
        f"rows up to it are that run's, {state}"
    ]


def _prompts(spec: RunSpec) -> list[str]:
    """What makes this run's prompts others than the tasks' own, and which form of the data answers refer to."""
    evaluation, found = spec.evaluation, []
    if evaluation.system_prompt is not None:
        found.append(f"system prompt {evaluation.system_prompt!r:.40}")
    if evaluation.shots:
        found.append(f"{evaluation.shots} worked examples")
    if spec.model.thinking is not None:
        found.append(f"thinking {'on' if spec.model.thinking else 'off'}")
    if spec.data.option_order != "permuted":
        found.append(f"options {spec.data.option_order}")
    sets = {task.name: task.identity.get("test_set") for task in spec.tasks}
    found += [f"{name} tested on {one['name']}" for name, one in sets.items() if one and one.get("name")]
    return found


def _step(spec: RunSpec) -> str:
    """The settings that matter most to what is learned and forgotten, as the run had them."""
    settings = spec.method.settings if spec.method is not None else {}
    shown = {"learning_rate": "learning rate", "epochs": "epochs", "batch_size": "batch size"}
    numbers = {name: settings[name] for name in shown if isinstance(settings.get(name), int | float)}
    values = [f"{shown[name]} {number:g}" for name, number in numbers.items()]
    return f" ({', '.join(values)})" if values else ""


def metrics_of(view: RunView) -> Mapping[str, Any]:
    """``metrics.json``, or the same from the matrix where it is absent or older; ``clean``: some on clean items."""
    clean, found = clean_metrics(view.directory), current_metrics(view)
    return {**found, "clean": clean} if clean else found


def matrix_grids(matrix: Matrix, learned: Mapping[str, Sequence[str]], metrics: Mapping[str, Any]) -> list[Grid]:
    """One grid per kind of column: rows are stages, cells percent; what a stage trained on stands in brackets."""
    grids = []
    for kind, title in GROUPS:
        columns = matrix.of_kind(kind)
        if not columns or not matrix.rows:
            continue
        header = ["after", *(column.name for column in columns)]
        rows = [[row, *(_cell(matrix.cell(row, c.name), c.name in learned.get(row, ())) for c in columns)]
                for row in matrix.rows]  # fmt: skip
        if kind == "retention":
            header.append("mean")
            for cells in rows:
                cells.append(percent(_stage_value(metrics, cells[0], "retention")))
        if any(column.chance for column in columns):
            rows.append(["chance", *(percent(column.chance) for column in columns), *[""] * (kind == "retention")])
        grids.append(Grid(f"{title} (%)", tuple(header), tuple(map(tuple, rows)), _reasons(matrix, columns)))
    return grids


def _cell(cell: Cell, trained: bool) -> str:
    return f"[{percent(cell.value)}]" if trained else percent(cell.value)


def strict_grid(matrix: Matrix) -> Grid | None:
    """Share of answers that are right and in the form asked for, where both were counted; None where nowhere."""
    columns = [
        column
        for column in (*matrix.of_kind("sequence"), *matrix.of_kind("ood"))
        if any("strict" in matrix.cell(row, column.name).counts for row in matrix.rows)
    ]
    rows = tuple((row, *(_strict(matrix.cell(row, c.name).counts) for c in columns)) for row in matrix.rows)
    notes = ("Right and in the form that the prompt asks for; the matrix takes a right answer in any form.",)
    return Grid("Strict accuracy (%)", ("after", *(c.name for c in columns)), rows, notes) if columns else None


def _strict(counts: Mapping[str, float]) -> str:
    return percent(counts["strict"] / counts["n"] if counts.get("n") and "strict" in counts else None)


def _reasons(matrix: Matrix, columns: Sequence[Column]) -> tuple[str, ...]:
    by_reason: dict[str, list[str]] = {}
    for column in columns:
        missing = [row for row in matrix.rows if matrix.value(row, column.name) is None]
        for reason in dict.fromkeys(matrix.cell(row, column.name).reason for row in missing):
            rows = [row for row in missing if matrix.cell(row, column.name).reason == reason]
            where = "all rows" if len(rows) == len(matrix.rows) else ", ".join(rows)
            by_reason.setdefault(f"({where}): {reason}", []).append(column.name)
    return tuple(f"{MISSING} {', '.join(names)} {reason}" for reason, names in by_reason.items())


def stages_grid(view: RunView, metrics: Mapping[str, Any]) -> Grid | None:
    """What each stage learned, moved and cost; None for a run without stages."""
    adaptations, shifts = view.adaptations(), view.shifts()
    rows = []
    for stage in learned_columns(view.spec):
        done = adaptations.get(stage)
        numbers = [
            percent(_stage_value(metrics, stage, "acquisition")),
            percent(_stage_value(metrics, stage, "gain"), signed=True),
            percent(_stage_value(metrics, stage, "retention_change"), signed=True),
            nats(shifts.get(stage, {}).get("forward_kl_trained")),
        ]
        rows.append((stage, *numbers, *_cost(done)))
    header = ("stage", "acquired %", "gain", "ret. change", "KL nats", "steps", "seconds", "train tok",
              "sampled tok", "FLOP")  # fmt: skip
    notes = ["ret. change: retention minus the untouched model's. sampled tok: generated by aligner or student."]
    if shifts:
        kl = "from the untouched model to this stage, per token, on its own answers to dev prompts of the stage's task"
        notes.append(f"KL: forward, {kl}.")
    return Grid("Stages", header, tuple(rows), tuple(notes)) if rows else None


def _cost(adaptation: Mapping[str, Any] | None) -> tuple[str, ...]:
    if adaptation is None:
        return (MISSING,) * 5
    return (
        str(adaptation["steps"]),
        f"{adaptation['seconds']:.1f}",
        count(adaptation["trained_tokens"]),
        count(sum(adaptation["generated_tokens"].values())),
        count(sum(adaptation["flops"].values())),
    )


def count(number: float) -> str:
    """A count with three or four digits and a unit: k, M, G, T, P for powers of a thousand."""
    for unit, size in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= 10 * size or (number >= size and unit != "k"):
            return f"{number / size:.1f}{unit}"
    return f"{number:.0f}"


def nats(value: float | None, signed: bool = False) -> str:
    """Three decimals, or two digits of what they would show as nothing; ``MISSING`` for None."""
    if value is None:
        return MISSING
    form = ".3f" if value == 0 or abs(value) >= _SMALL else ".1e" if abs(value) < _SMALLEST else ".2g"
    return f"{value:{'+' if signed else ''}{form}}"


def rejected_sentences(view: RunView) -> list[str]:
    """Rows that methods without generated data left out, by stage and reason."""
    return [
        f"{stage}: rows left out: " + ", ".join(f"{number} {reason}" for reason, number in found["rejected"].items())
        for stage, found in view.adaptations().items()
        if any(found["rejected"].values()) and not found["data_generation"]
    ]


def standing(view: RunView) -> str:
    """How far a run has come, and of one that is not done where it stands, why, and how to go on."""
    status, rows = view.status, planned_rows(view.spec)
    state = status.get("state", "not started")
    place = "/".join(str(status[name]) for name in ("stage", "phase") if status.get(name))
    text = "unfinished: still running" if state == "running" else str(state)
    text += f" in {place}" if place else ""
    text += f", {len(view.stages)} of {len(rows)} rows finished"
    text += f": {status['reason']}" if status.get("reason") else ""
    return text if state in ("running", *ENDED) else f"{text}; cl-bench resume {view.directory}"


def warnings(view: RunView) -> list[str]:
    """What a reader must know before using the numbers."""
    sentences = [] if view.status.get("state") == "done" else [f"the run is {standing(view)}"]
    sentences += [f"{stage}: {text}" for stage, found in view.adaptations().items() for text in found["warnings"]]
    sentences += [f"{stage}: {sign}" for stage, signs in view.signs_of_collapse().items() for sign in signs]
    sentences += [f"task {task.name}: {remark}" for task in view.spec.tasks for remark in task.remarks]
    return [*sentences, *rejected_sentences(view), *_shots_sentences(view), *_skipped_sentences(view.matrix)]


def _shots_sentences(view: RunView) -> list[str]:
    """Benchmarks that were asked with fewer worked examples than their suite says."""
    base = view.stages.get(BASE_ROW)
    paths = [base / "eval" / c.name / "results.json" for c in view.matrix.of_kind("retention")] if base else []
    found = {
        path.parent.name: read_json(path).get("config", {}).get("shots_reason") for path in paths if path.is_file()
    }
    return [f"{name}: {reason}" for name, reason in found.items() if reason]


def _skipped_sentences(matrix: Matrix) -> list[str]:
    skipped = [
        (f"{row}/{column.name}", matrix.cell(row, column.name).counts.get("skipped", 0))
        for row in matrix.rows
        for column in matrix.columns
    ]
    return [f"{cell}: {number} rows skipped, they do not fit the model's context" for cell, number in skipped if number]


def cost_sentence(view: RunView) -> str:
    """Wall time by phase and peak memory over all processes that worked on the run."""
    sessions = view.manifest.get("sessions", [])
    phases: dict[str, float] = {}
    for session in sessions:
        for name, seconds in session["phase_seconds"].items():
            phase = name.rpartition("/")[2]  # "chemistry/adapt": over all stages
            phases[phase] = phases.get(phase, 0.0) + seconds
    total = sum(session["seconds"] for session in sessions)
    peak = max((session["peak_memory_bytes"] for session in sessions), default=0)
    parts = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in phases.items())
    return f"{total:.1f} s" + (f" ({parts})" if parts else "") + f", peak memory {peak / 2**30:.2f} GiB"


def _stage_value(metrics: Mapping[str, Any], row: str, name: str) -> float | None:
    value: float | None = metrics["stages"].get(row, {}).get(name, {}).get("value")
    return value


def ordered(names: Iterable[str]) -> list[str]:
    """Each name once, in the order of first appearance."""
    return list(dict.fromkeys(names))
