"""Which retention suite a run measures, and what it consists of."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cl_bench.harness.errors import UnknownNameError
from cl_bench.harness.profile_files import Profile
from cl_bench.harness.registry import Registry
from cl_bench.harness.request import Request
from cl_bench.harness.spec import DataSpec, Execution, SuiteSpec, data_options


def suite_name(request: Request, profile: Profile, registry: Registry) -> str | None:
    """The suite asked for, or the profile's; None where there is none. Raises ``UnknownNameError``."""
    name = request.suite or _fitting_suite(request, profile, registry)
    if name in (None, "none"):
        return None
    registry.source("suites", str(name))
    return name


@dataclass(frozen=True, slots=True)
class ProfileTier:
    """The tier that a profile names: where a suite has no tier of that name, its first one stands in."""

    name: str


def suite_tier(request: Request, profile: Profile) -> str | ProfileTier:
    """The tier asked for, or the profile's. Raises ``UnknownNameError`` for one that no suite has."""
    from cl_bench.tasks.retention.suites import TIERS

    # A suite's own tiers are looked up when it is resolved; a run without one looks up nothing.
    if request.suite == "none" and request.tier is not None and request.tier not in TIERS:
        raise UnknownNameError("tier", request.tier, TIERS)
    return request.tier or ProfileTier(profile.tier)


def _fitting_suite(request: Request, profile: Profile, registry: Registry) -> str | None:
    """The profile's suite, or the first that the sequence declares where the profile's is none of those."""
    declared = registry.sequence(str(request.sequence)).suites
    return profile.suite if not declared or profile.suite in declared else declared[0]


def resolved_suite(
    name: str | None,
    tier: str | ProfileTier,
    registry: Registry,
    data: DataSpec,
    execution: Execution,
    note: Callable[[str], None] = lambda line: None,
) -> SuiteSpec | None:
    """A suite with what fixes its data, under the tier that was taken; ``note`` is told where the profile has another.

    Raises:
        UsageError: The suite's file is broken.
        UnknownNameError: No such suite, or no such tier of it.
        DataError: A local data file is broken.
    """
    if name is None:
        return None
    from cl_bench.tasks.retention.suites import resolve_suite, suite_tiers

    path = registry.suite_path(name)
    if isinstance(tier, ProfileTier):
        asked, tiers = tier.name, suite_tiers(path)
        tier = asked if asked in tiers else next(iter(tiers))
        if tier != asked:
            note(f"the suite {name} has no tier {asked}: its first one, {tier}, is taken (--tier chooses)")
    entries = resolve_suite(path, tier, data_options(data, execution))
    return SuiteSpec(name=name, tier=tier, tasks=tuple(plain(entry) for entry in entries))


def plain(value: Any) -> Any:
    """Tuples and enumerations as they are after a round trip through the run directory."""
    return json.loads(json.dumps(value))
