"""What preparing data is asked for, and what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from cl_bench.tasks.sources.fetch import State
from cl_bench.tasks.sources.locate import DatasetSpec
from cl_bench.tasks.sources.prepared import PreparedSet


@dataclass(frozen=True, slots=True)
class Need:
    """A data set that a task or a suite reads.

    Attributes:
        user: Name of the task or suite.
        spec: The data set.
        optional: It is done without where the data set is absent.
        instead: Flat files that would do in its place, a tuple for each alternative.
    """

    user: str
    spec: DatasetSpec
    optional: bool = False
    instead: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Wanted:
    """Needs that are met together: the same configuration, revision and files.

    Attributes:
        needs: At least one; they may differ in names of splits and in fields.
    """

    needs: tuple[Need, ...]

    @property
    def specs(self) -> tuple[DatasetSpec, ...]:
        """What is asked for, each once."""
        distinct: list[DatasetSpec] = []
        for need in self.needs:
            if need.spec not in distinct:
                distinct.append(need.spec)
        return tuple(distinct)

    @property
    def users(self) -> list[str]:
        """Names of the tasks and suites, each once."""
        return list(dict.fromkeys(need.user for need in self.needs))

    @property
    def path(self) -> str:
        """Id on the hub."""
        return self.needs[0].spec.path

    @property
    def config(self) -> str | None:
        """Configuration, or None for the default."""
        return self.needs[0].spec.config

    @property
    def revision(self) -> str | None:
        """Revision asked for, or None."""
        return self.needs[0].spec.revision

    @property
    def key(self) -> tuple[str, str | None]:
        """Repository and configuration: what a root holds one of."""
        return self.path, self.config

    @property
    def optional(self) -> bool:
        """Whether all can do without."""
        return all(need.optional for need in self.needs)

    @property
    def on_hub(self) -> bool:
        """Whether the hub has it."""
        return all(need.spec.on_hub for need in self.needs)

    @property
    def flat_names(self) -> list[str]:
        """Names of its flat files."""
        return sorted({name for need in self.needs for name in need.spec.files.values()})

    @property
    def splits(self) -> list[str]:
        """Names on the hub of the splits that are read, each once."""
        return list(dict.fromkeys(spec.hub_split(split) for spec in self.specs for split in spec.files))

    @property
    def title(self) -> str:
        """How it is called in messages."""
        return title(self.path, self.config)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a data set.

    Attributes:
        wanted: What was asked for.
        state: ``downloaded``, ``copied`` (from the data root), ``present``, or what kept it from being there:
            ``absent``, ``gated`` or ``failed``.
        detail: Why it is not there; or what was done beside, such as the damaged file that was fetched again.
        found: Its entry in the record, or None.
    """

    wanted: Wanted
    state: State
    detail: str = ""
    found: PreparedSet | None = None

    @property
    def is_there(self) -> bool:
        """Whether runs can use it."""
        return self.state in ("downloaded", "copied", "present")

    @property
    def is_missed(self) -> bool:
        """Whether a run lacks it; what is optional is done without, whatever kept it from being there."""
        return not self.is_there and not self.wanted.optional

    @property
    def rows(self) -> dict[str, int]:
        """Rows of the splits that are read, by name on the hub or of the flat file."""
        if self.found is None:
            return {}
        keys = {self.found.rows_key(spec, split) for spec in self.wanted.specs for split in spec.files}
        return {key: self.found.rows[key] for key in sorted(keys) if key in self.found.rows}


def title(path: str, config: str | None) -> str:
    """How a data set is called in messages."""
    return f"{path} ({config})" if config else path


def table_titles(wanted: Sequence[Wanted]) -> list[str]:
    """How data sets are called in a table: with their splits where two would be called the same."""
    counts = Counter(one.title for one in wanted)
    return [f"{one.title}: {', '.join(one.splits)}" if counts[one.title] > 1 else one.title for one in wanted]


def wanted_sets(needs: Iterable[Need]) -> list[Wanted]:
    """Join needs that are met by the same files."""
    found: dict[tuple[object, ...], Wanted] = {}
    for need in needs:
        spec = need.spec
        key = (spec.path, spec.config, spec.revision, spec.on_hub, *sorted(spec.files.values()))
        found[key] = replace(one, needs=(*one.needs, need)) if (one := found.get(key)) else Wanted((need,))
    return list(found.values())
