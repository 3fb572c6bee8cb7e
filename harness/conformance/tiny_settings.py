"""Settings for a tiny model, their switched variants, and a record of which settings are read.

No rule here knows which method or modifier is running: a setting is told by its unit, its type and its default.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal, get_args, get_origin

from pydantic import ValidationError

from cl_bench.methods.base import MethodSettings

_MOST_BY_UNIT = {"tokens": 12, "samples": 3, "rows": 4, "epochs": 2}
"""Numbers in these units are cut to this, so that a stage takes a fraction of a second."""
_WHOLE_SEQUENCE = "max_length"
"""The shared loop's limit of prompt and completion together: cutting it would drop the rows."""
_LEARNING_RATE = 1e-3
"""Random weights hardly move under a rate that suits trained ones."""


def tiny_values(settings: type[MethodSettings], **changes: Any) -> dict[str, Any]:
    """Values that differ from the defaults; what the class refuses stays at its default.

    Args:
        settings: A settings class whose fields all have defaults.
        **changes: Values that go before the rules, where the class has such a field.
    """
    values: dict[str, Any] = {}
    for name, known in settings.model_fields.items():
        most = _MOST_BY_UNIT.get(_unit(known))
        number = isinstance(known.default, int | float) and not isinstance(known.default, bool)
        if number and most is not None and name != _WHOLE_SEQUENCE and known.default > most:
            values[name] = most
    if "learning_rate" in settings.model_fields:
        values["learning_rate"] = _LEARNING_RATE
    values |= {name: value for name, value in changes.items() if name in settings.model_fields}
    return accepted(settings, values)


def accepted(settings: type[MethodSettings], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values without those that the class refuses."""
    try:
        settings(**values)
    except ValidationError as error:
        refused = {str(item["loc"][0]) for item in error.errors() if item["loc"]} or set(values)
        return accepted(settings, {name: value for name, value in values.items() if name not in refused})
    return dict(values)


def variants(settings: type[MethodSettings], base: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The base with one switch thrown: another choice, what is off on, what is empty filled.

    Settings that are read only where two switches stand otherwise are not reached.
    """
    for name, known in settings.model_fields.items():
        for value in _others(known):
            values = accepted(settings, {**base, name: value})
            if name in values:
                yield values


def _others(known: Any) -> list[Any]:
    default = known.default
    if isinstance(default, bool):
        return [not default]
    choices = [choice for choice in _choices(known.annotation) if choice != default]
    if choices:
        return choices
    if default is None:
        return [2, 0.5, "text"]
    if default == "":
        return ["text"]
    return [0.5, 2] if isinstance(default, int | float) and default == 0 else []


def _choices(annotation: Any) -> list[Any]:
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return list(annotation)
    return [choice for part in get_args(annotation) for choice in _choices(part)]


def _unit(known: Any) -> str:
    extra = known.json_schema_extra if isinstance(known.json_schema_extra, dict) else {}
    return str(extra.get("unit", ""))


@dataclass(slots=True)
class Reads:
    """Names of settings that were read."""

    names: set[str] = field(default_factory=set)

    def watching(self, settings: type[MethodSettings]) -> type[MethodSettings]:
        """A subclass that notes every field that is read; copies of its objects go on noting."""
        noted, known = self.names, frozenset(settings.model_fields)

        def read(self: Any, name: str) -> Any:
            if name in known:
                noted.add(name)
            elif name in _WHOLE:
                noted.update(known)
            return object.__getattribute__(self, name)

        body = {"__module__": __name__, "__getattribute__": read}
        return types.new_class(settings.__name__, (settings,), exec_body=lambda namespace: namespace.update(body))


_WHOLE = frozenset({"model_dump", "model_dump_json"})
"""Who asks for these has every setting."""
