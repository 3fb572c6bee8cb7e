"""Every method and modifier that the registry lists passes every check on the tiny model."""

from __future__ import annotations

from pathlib import Path

import pytest

from cl_bench.harness.conformance.behaviour import METHOD_BEHAVIOUR, MODIFIER_BEHAVIOUR, behaviour_checks
from cl_bench.harness.conformance.class_checks import method_class_checks, modifier_class_checks
from cl_bench.harness.conformance.trials import Trials
from cl_bench.harness.registry import Registry

REGISTRY = Registry()


@pytest.mark.parametrize("name", REGISTRY.methods())
def test_method(name: str, tmp_path: Path) -> None:
    method = REGISTRY.method_class(name)
    checks = behaviour_checks(Trials(method, tmp_path))
    assert [check for check in (*method_class_checks(method), *checks) if not check.passed or check.skipped] == []
    assert len(checks) == len(METHOD_BEHAVIOUR)


@pytest.mark.parametrize("name", REGISTRY.modifiers())
def test_modifier_beside_sft(name: str, tmp_path: Path) -> None:
    modifier = REGISTRY.modifier_class(name)
    checks = behaviour_checks(Trials(REGISTRY.method_class("sft"), tmp_path, modifier))
    assert [check for check in (*modifier_class_checks(modifier), *checks) if not check.passed or check.skipped] == []
    assert len(checks) == len(MODIFIER_BEHAVIOUR)
