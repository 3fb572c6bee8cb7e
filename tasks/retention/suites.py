"""Retention suites: YAML lists of benchmarks, resolved into entries that a run's spec records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from cl_bench.harness.errors import UnknownNameError, UsageError
from cl_bench.tasks.retention.adapters import ADAPTERS
from cl_bench.tasks.retention.definitions import check_replaced
from cl_bench.tasks.retention.suite_files import check_data, check_fields, read_suite
from cl_bench.tasks.sources.base import DataOptions

TIERS = ("smoke", "fast", "full")


@dataclass(frozen=True, slots=True)
class SuiteEntry:
    """One benchmark of a suite: a column of the matrix.

    Attributes:
        name: Column name, unique in the suite.
        source: ``lab-skill`` (generated) or ``lm-eval`` (a task definition of lm-eval on public data).
        task: Name of the skill or of lm-eval's task.
        metric: Primary metric, in lm-eval's form ``acc`` or ``exact_match,flexible-extract``.
        chance: Value of guessing, as a fraction.
        shots: Worked examples in the prompt.
        group: What the benchmark stands for (instruction following, commonsense, knowledge, code, math).
        chat_template: Whether prompts are rendered with the model's chat template.
        rows: How many fixed rows are evaluated; None: all.
        max_new_tokens: Limit of generated answers; None: the task's own.
        data: Where an lm-eval task's rows are: ``path``, ``config``, ``revision`` on the hub, ``files`` (split to file
            name) in a flat folder, ``fields`` (name to JSON type) that every row must have.
        adapter: What the project adds to lm-eval's definition (``cl_bench.tasks.retention.adapters``), or None.
        config: Keys of lm-eval's definition that are replaced.
        worked_examples: Where worked examples are that may be absent, in the form of ``data``; without them prompts
            have none, and the result says so.
        row_id: Field with a row's id where rows have no ``id``; rows with neither are named by a hash of their
            content. None: by their number.
        executes_code: Scoring runs programs that the model wrote.
        optional: Left out of a run's suite where its rows are absent, instead of a column without values.
    """

    name: str
    source: Literal["lab-skill", "lm-eval"]
    task: str
    metric: str
    chance: float
    shots: int = 0
    group: str = ""
    chat_template: bool = True
    rows: int | None = None
    max_new_tokens: int | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    adapter: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    worked_examples: Mapping[str, Any] = field(default_factory=dict)
    row_id: str | None = None
    executes_code: bool = False
    optional: bool = False

    def __post_init__(self) -> None:
        """Refuse keys of a definition that a suite may not replace; raises ``UnknownNameError``."""
        check_replaced(self.config, self.name)

    def to_dict(self) -> dict[str, Any]:
        """The entry as JSON. What the first suites did not have is left out where unused: their hashes stay."""
        entry = asdict(self)
        return {name: value for name, value in entry.items() if name not in _LATER or value}

    @classmethod
    def from_dict(cls, resolved: Mapping[str, Any]) -> SuiteEntry:
        """The entry of a resolved dict (``resolve_suite``); its ``identity`` is not part of the entry."""
        return cls(**{key: value for key, value in resolved.items() if key != "identity"})


_LATER = frozenset({"adapter", "config", "worked_examples", "row_id", "executes_code", "optional"})


def load_suite(path: Path, tier: str | None = "fast") -> tuple[SuiteEntry, ...]:
    """Read a suite.

    Args:
        path: The suite's YAML file.
        tier: Which number of rows: a key of the file's ``tiers``; None: all.

    Raises:
        UsageError: The file is no suite, or names an unknown tier or adapter; says what is missing in which benchmark.
    """
    content = read_suite(path)
    tiers: dict[str, int | None] = content["tiers"]
    if tier is not None and tier not in tiers:
        raise UnknownNameError("tier", tier, tiers)
    rows = None if tier is None else tiers[tier]
    defaults: dict[str, Any] = content.get("defaults") or {}
    expanded = [entry for declared in content["tasks"] for entry in _expanded({**defaults, **declared})]
    suite = tuple(_entry({"rows": rows, **entry}, path) for entry in expanded)
    for entry in suite:
        _check(entry, path)
    names = [entry.name for entry in suite]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise UsageError(f"{path} names {', '.join(sorted(repeated))} more than once")
    return suite


def suite_tiers(path: Path) -> dict[str, int | None]:
    """Tiers of a suite with their rows, in the order of the file; raises UsageError as ``load_suite`` does."""
    return dict(read_suite(path)["tiers"])


def _entry(values: dict[str, Any], path: Path) -> SuiteEntry:
    check_fields(SuiteEntry, values, f"the benchmark {values.get('name') or values.get('task')!r} of {path}")
    return SuiteEntry(**values)


def _check(entry: SuiteEntry, path: Path) -> None:
    if entry.adapter is not None and entry.adapter not in ADAPTERS:
        raise UnknownNameError("adapter", entry.adapter, ADAPTERS)
    if entry.adapter is not None and ADAPTERS[entry.adapter].executes_code and not entry.executes_code:
        raise UsageError(f"{path}: {entry.name} runs model-written programs", hint="it must say `executes_code: true`")
    if not 0 <= entry.chance < 1:
        raise UsageError(f"{path}: the chance of {entry.name} is {entry.chance}", "it must be from 0 to below 1")
    if entry.source == "lab-skill":
        if entry.metric != "acc":
            raise UnknownNameError(f"metric of the lab skill {entry.name} ({path})", entry.metric, ["acc"])
        return
    what = f"the benchmark {entry.name!r} of {path}"
    check_data(entry.data, f"`data` of {what}")
    if entry.worked_examples:
        check_data(entry.worked_examples, f"`worked_examples` of {what}")


def _expanded(entry: dict[str, Any]) -> list[dict[str, Any]]:
    """``skills: all`` stands for every skill of the lab, whose kind, group and chance the lab declares."""
    if entry.get("source") != "lab-skill":
        return [entry]
    from cl_bench.tasks.lab.skills import SKILLS

    if entry.pop("skills", "all") != "all":
        raise UsageError("`skills` of a lab entry can only be `all`", hint="leave it out and give `task`")
    wanted = entry.pop("task", None)
    known = {skill.name: skill for skill in SKILLS}
    if wanted is not None and wanted not in known:
        raise UnknownNameError("lab skill", wanted, known)
    chosen = SKILLS if wanted is None else (known[wanted],)
    return [
        {"name": f"lab-{skill.name}", "task": skill.name, "group": skill.group, "chance": skill.chance, **entry}
        for skill in chosen
    ]


def resolve_suite(path: Path, tier: str, options: DataOptions) -> tuple[dict[str, Any], ...]:
    """Entries of a suite as JSON, each with the ``identity`` of its data: what a run's spec records.

    Raises:
        DataError: A local data file is broken. Absent data is no error: the identity says why it is absent, and an
            optional entry is left out.
    """
    from cl_bench.tasks.retention.benchmarks import benchmark_identity, is_absent

    resolved = [{**entry.to_dict(), "identity": benchmark_identity(entry, options)} for entry in load_suite(path, tier)]
    return tuple(entry for entry in resolved if not (entry.get("optional") and is_absent(entry["identity"])))
