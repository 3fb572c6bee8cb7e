"""What the class of a method or modifier must be like; nothing is trained."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from cl_bench.harness.conformance.check import Check
from cl_bench.methods.base import Fidelity, Method, MethodSettings, Modifier, Need


def method_class_checks(method: type[Method]) -> list[Check]:
    """Checks of a method's class alone."""
    return [
        *_common(method),
        Check("needs are known", _unknown_needs(method)),
        Check("adapt takes (student, stage, context)", _other_arguments(method, Method, "adapt")),
        *_settings_checks(getattr(method, "Settings", None)),
    ]


def modifier_class_checks(modifier: type[Modifier]) -> list[Check]:
    """Checks of a modifier's class alone."""
    hooks = [name for name in vars(Modifier) if not name.startswith("_") and callable(getattr(Modifier, name))]
    problems = [problem for hook in hooks if (problem := _other_arguments(modifier, Modifier, hook))]
    changed = any(getattr(modifier, hook) is not getattr(Modifier, hook) for hook in hooks)
    return [
        *_common(modifier),
        Check("hooks take what they are given", "; ".join(problems)),
        Check("at least one hook is its own", "" if changed else f"none of {', '.join(hooks)} is defined"),
        *_settings_checks(getattr(modifier, "Settings", None)),
    ]


def _common(found: type) -> list[Check]:
    fidelity = getattr(found, "fidelity", None)
    return [
        Check(
            "fidelity is declared",
            "" if isinstance(fidelity, Fidelity) else f"fidelity is {fidelity!r}, not a Fidelity",
        ),
        Check("the class has a docstring", "" if (found.__doc__ or "").strip() else "it has none"),
    ]


def _unknown_needs(method: type[Method]) -> str:
    if not isinstance(method.needs, frozenset | set):
        return f"needs is {method.needs!r}, not a set of Need"
    unknown = [need for need in method.needs if not isinstance(need, Need)]
    return f"not a Need: {', '.join(map(repr, unknown))}" if unknown else ""


def _other_arguments(found: type, contract: type, function: str) -> str:
    """What differs in the arguments of a function from the contract's, or nothing."""
    wanted, given = (list(inspect.signature(getattr(cls, function)).parameters) for cls in (contract, found))
    return "" if given == wanted else f"{function} takes ({', '.join(name for name in given if name != 'self')})"


def _settings_checks(settings: Any) -> Iterator[Check]:
    if not (isinstance(settings, type) and issubclass(settings, MethodSettings)):
        yield Check("Settings is a MethodSettings class", f"it is {settings!r}")
        return
    yield Check("Settings is a MethodSettings class")
    unexplained = [name for name, field in settings.model_fields.items() if not _explained(field)]
    problem = f"without description, unit or source: {', '.join(unexplained)}" if unexplained else ""
    yield Check("every setting has a description, a unit and a source", problem)
    required = [name for name, field in settings.model_fields.items() if field.is_required()]
    if required:
        yield Check("every setting has a default", f"without default: {', '.join(required)}")
        return
    try:
        built = settings()
    except ValidationError as error:
        wrong = [f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors(include_url=False)]
        yield Check("defaults are allowed values", "; ".join(wrong))
        return
    yield Check("defaults are allowed values")
    again = settings.model_validate(json.loads(built.model_dump_json()))
    yield Check("settings survive a round trip through JSON", "" if built == again else "they come back changed")


def _explained(field: Any) -> bool:
    extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    return bool(field.description and extra.get("unit") and extra.get("source"))
