"""Methods over seeds: runs in panels of one sequence and model, in each a row for every method and its settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cl_bench.harness.compare.estimates import OverSeeds, of_measures, over_seeds
from cl_bench.harness.compare.measures import COSTS, MEASURES, RunMeasures, measures_of
from cl_bench.harness.files import canonical_json
from cl_bench.harness.measure.scores import Measure
from cl_bench.harness.planned_stages import JOINT
from cl_bench.harness.run_directory import RunView, method_label

_DEFAULT_JOINT = "joint-sft"
_SHOWN_FIELDS = 3


@dataclass(frozen=True, slots=True)
class MethodRow:
    """One method with its settings, over seeds.

    Attributes:
        label: The method, with what sets it apart from another row of the same method.
        views: Its runs by seed, ascending.
        runs: Measures of each run, in the same order.
        measures: Each of ``MEASURES`` and ``COSTS`` over seeds.
        parts: Operations by part over seeds, in units of 1e15; a part that a run does not have is a zero.
        marks: Fields in which one of its runs differs from most runs compared.
    """

    label: str
    views: tuple[RunView, ...]
    runs: tuple[RunMeasures, ...]
    measures: Mapping[str, OverSeeds]
    parts: Mapping[str, OverSeeds]
    marks: tuple[str, ...] = ()

    @property
    def seeds(self) -> tuple[int, ...]:
        """The runs' seeds."""
        return tuple(view.spec.seed for view in self.views)

    @property
    def shared_start(self) -> str | None:
        """The last stage that runs of several seeds have in common, as branches of one run; None without such."""
        starts = [(view.spec.branch.weights, view.spec.branch.row) for view in self.views if view.spec.branch]
        return next((row for weights, row in starts if starts.count((weights, row)) > 1), None)

    def by_seed(self, measure: str) -> dict[int, float]:
        """A measure's values by seed, without those that have none."""
        values = (run.measures[measure].value for run in self.runs)
        return {seed: value for seed, value in zip(self.seeds, values, strict=True) if value is not None}


@dataclass(frozen=True, slots=True)
class Panel:
    """Runs of one sequence and one model.

    Attributes:
        title: Sequence, order and model.
        sequence: Name of the sequence.
        order: Its order.
        model: Name of the model.
        rows: Methods: the bounds first, then by name.
    """

    title: str
    sequence: str
    order: str
    model: str
    rows: tuple[MethodRow, ...]


def panels(views: Sequence[RunView], marks: Mapping[Path, Sequence[str]] | None = None) -> tuple[Panel, ...]:
    """Sort runs into panels and rows.

    Args:
        views: Runs, each once.
        marks: Fields in which runs differ from most, by directory.
    """
    grouped = _grouped(views, lambda view: {"sequence": view.spec.sequence.model_dump(mode="json"),
                                            "model": _model(view)})  # fmt: skip
    titles: dict[str, int] = {}
    return tuple(_panel(runs, marks or {}, titles) for runs in grouped)


def method_names(panels: Sequence[Panel]) -> dict[Path, str]:
    """Labels of the methods by run directory."""
    return {view.directory: row.label for panel in panels for row in panel.rows for view in row.views}


def _panel(views: Sequence[RunView], marks: Mapping[Path, Sequence[str]], titles: dict[str, int]) -> Panel:
    spec = views[0].spec
    order = "" if spec.sequence.order == "default" else f" ({spec.sequence.order})"
    title = f"{spec.sequence.name}{order}, {spec.model.name}"
    titles[title] = titles.get(title, 0) + 1
    if titles[title] > 1:  # stages of other rows or epochs under the same name
        title = f"{title} [{titles[title]}]"
    names = _names(views)
    joint = _joint_runs(views, names)
    rows = [_row(names, runs, joint, marks) for runs in _grouped(views, lambda view: names[view.directory])]
    rows.sort(key=lambda row: (row.views[0].spec.bound is None, row.label))
    return Panel(title, spec.sequence.name, spec.sequence.order, spec.model.name, tuple(rows))


def _row(
    names: Mapping[Path, str],
    views: Sequence[RunView],
    joint: Mapping[int, RunView],
    marks: Mapping[Path, Sequence[str]],
) -> MethodRow:
    ordered = tuple(sorted(views, key=lambda view: view.spec.seed))
    runs = tuple(measures_of(view, _partner(view, joint, marks)) for view in ordered)
    fields = dict.fromkeys(field for view in ordered for field in marks.get(view.directory, ()))
    parts = dict.fromkeys(part for run in runs for part in run.parts)
    return MethodRow(
        names[ordered[0].directory],
        ordered,
        runs,
        {name: of_measures([run.measures.get(name, Measure(None)) for run in runs]) for name in (*MEASURES, *COSTS)},
        {part: over_seeds([run.parts.get(part, 0.0) for run in runs]) for part in parts},
        tuple(fields),
    )


def _names(views: Sequence[RunView]) -> dict[Path, str]:
    """The method's label, with the settings that differ where several rows of the panel would have the same name."""
    by_label: dict[str, list[list[RunView]]] = {}
    for runs in _grouped(views, _settings):
        by_label.setdefault(method_label(runs[0].spec), []).append(runs)
    names = {}
    for label, alike in by_label.items():
        payloads = [dict(_flat(_settings(runs[0]))) for runs in alike]
        for runs, payload in zip(alike, payloads, strict=True):
            name = f"{label} ({_apart(payload, payloads)})" if len(alike) > 1 else label
            names.update({view.directory: name for view in runs})
    return names


def _joint_runs(views: Sequence[RunView], names: Mapping[Path, str]) -> dict[int, RunView]:
    """Runs of joint training by seed: of the one kind there is, or of plain ``joint-sft`` among several."""
    joint = [view for view in views if view.spec.bound == JOINT]
    kinds = {names[view.directory] for view in joint}
    chosen = kinds if len(kinds) == 1 else {_DEFAULT_JOINT}
    return {view.spec.seed: view for view in joint if names[view.directory] in chosen}


def _partner(view: RunView, joint: Mapping[int, RunView], marks: Mapping[Path, Sequence[str]]) -> RunView | None:
    """Joint training of the same seed, where the two are comparable."""
    found = joint.get(view.spec.seed)
    marked = found is not None and (marks.get(view.directory) or marks.get(found.directory))
    return None if marked else found


def _grouped(views: Sequence[RunView], key: Any) -> list[list[RunView]]:
    groups: dict[str, list[RunView]] = {}
    for view in views:
        groups.setdefault(canonical_json(key(view)), []).append(view)
    return list(groups.values())


def _model(view: RunView) -> dict[str, Any]:
    return view.spec.model.model_dump(mode="json", exclude={"source"})


def _settings(view: RunView) -> dict[str, Any]:
    """What makes a row of a panel: the whole spec but the seed, and but sequence and model, which the panel fixes."""
    payload = view.spec.seedless_payload()
    return {name: value for name, value in payload.items() if name not in ("sequence", "model")}


def _flat(value: Any, path: tuple[str, ...] = ()) -> Iterable[tuple[tuple[str, ...], Any]]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _flat(item, (*path, str(name)))
    elif isinstance(value, list) and all(isinstance(item, Mapping) for item in value):
        for number, item in enumerate(value):
            yield from _flat(item, (*path, str(item.get("name", number))))
    else:
        yield path, value


def _apart(payload: Mapping[tuple[str, ...], Any], others: Sequence[Mapping[tuple[str, ...], Any]]) -> str:
    """The fields in which a row's spec differs from those of the same name."""
    paths = dict.fromkeys(path for other in others for path in other)
    differing = [path for path in paths if len({canonical_json(other.get(path)) for other in others}) > 1]
    shown = [f"{path[-1]}={_short(payload.get(path))}" for path in differing[:_SHOWN_FIELDS]]
    return ", ".join(shown) + (", ..." if len(differing) > _SHOWN_FIELDS else "")


def _short(value: Any) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 16 else f"{text[:8]}..."
