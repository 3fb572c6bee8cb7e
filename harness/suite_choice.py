"""Which retention suite a run measures, and what it consists of."""

from __future__ import annotations

import json
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


def suite_tier(request: Request, profile: Profile) -> str:
    """The tier asked for, or the profile's. Raises ``UnknownNameError`` for one that no suite has."""
    from cl_bench.tasks.retention.suites import TIERS

    # A suite's own tiers are looked up when it is resolved; a run without one looks up nothing.
    if request.suite == "none" and request.tier is not None and request.tier not in TIERS:
        raise UnknownNameError("tier", request.tier, TIERS)
    return request.tier or profile.tier


def _fitting_suite(request: Request, profile: Profile, registry: Registry) -> str | None:
    """The profile's suite, or the first that the sequence declares where the profile's is none of those."""
    declared = registry.sequence(str(request.sequence)).suites
    return profile.suite if not declared or profile.suite in declared else declared[0]


def resolved_suite(
    name: str | None, tier: str, registry: Registry, data: DataSpec, execution: Execution
) -> SuiteSpec | None:
    """A suite with what fixes its data.

    Raises:
        UnknownNameError: No such suite, or no such tier of it.
        DataError: A local data file is broken.
    """
    if name is None:
        return None
    from cl_bench.tasks.retention.suites import resolve_suite

    entries = resolve_suite(registry.suite_path(name), tier, data_options(data, execution))
    return SuiteSpec(name=name, tier=tier, tasks=tuple(plain(entry) for entry in entries))


def plain(value: Any) -> Any:
    """Tuples and enumerations as they are after a round trip through the run directory."""
    return json.loads(json.dumps(value))
