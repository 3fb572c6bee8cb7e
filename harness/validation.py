"""Pydantic's complaints as one readable message with the nearest names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from cl_bench.harness.errors import UsageError

M = TypeVar("M", bound=BaseModel)


def build(model: type[M], content: Mapping[str, Any], where: str) -> M:
    """Validate content against a model.

    Args:
        model: The pydantic model.
        content: Raw values.
        where: What the content is, for the message ("settings of method sft").

    Raises:
        UsageError: A key is unknown (with the nearest known ones) or a value does not fit.
    """
    problems = [*_switches_for_numbers(model, content, "")]
    if problems:
        raise UsageError(f"{where}: {'; '.join(problems)}")
    try:
        return model.model_validate(dict(content))
    except ValidationError as error:
        raise readable(error, model, where) from error


def _switches_for_numbers(model: Any, content: Mapping[str, Any], place: str) -> Iterator[str]:
    """Fields that are given true or false and take neither; pydantic would read them as 1 and 0."""
    for name, value in content.items():
        field = getattr(model, "model_fields", {}).get(name)
        if field is None:
            continue
        if isinstance(value, bool) and not _takes_switches(field.annotation):
            yield f"{place}{name}: expected another value than true or false (got {value})"
        elif isinstance(value, Mapping) and _model_inside(field.annotation) is not None:
            yield from _switches_for_numbers(_model_inside(field.annotation), value, f"{place}{name}.")


def _takes_switches(annotation: Any) -> bool:
    if annotation is Any or annotation is bool or isinstance(annotation, bool):
        return True
    return any(_takes_switches(part) for part in get_args(annotation))


def readable(error: ValidationError, model: type[BaseModel], where: str) -> UsageError:
    """One ``UsageError`` that lists every problem pydantic found."""
    problems, hints = [], []
    for item in error.errors(include_url=False):
        place = ".".join(str(part) for part in item["loc"])
        if item["type"] == "extra_forbidden":
            problems.append(f"{place} is not known here")
            hints.append(nearest_hint(str(item["loc"][-1]), _known_fields(model, item["loc"][:-1])))
        else:
            problems.append(f"{place}: {item['msg']} (got {_short(item.get('input'))})")
    return UsageError(f"{where}: {'; '.join(problems)}", hint="; ".join(hint for hint in hints if hint))


def nearest_hint(name: str, known: Iterable[str]) -> str:
    """A "did you mean" for a mistyped name, or the list of known names."""
    names = sorted(known)
    nearest = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(nearest)}?" if nearest else f"known: {', '.join(names) or 'none'}"


def refuse_unknown(given: Iterable[str], known: Iterable[str], where: str) -> None:
    """Raise ``UsageError`` for the first key that is not among the known ones."""
    names = sorted(known)
    for key in given:
        if key not in names:
            raise UsageError(f"{where}: unknown key {key!r}", hint=nearest_hint(key, names))


def _known_fields(model: type[BaseModel], place: tuple[int | str, ...]) -> list[str]:
    current: Any = model
    for part in place:
        if isinstance(part, int):
            continue
        field = getattr(current, "model_fields", {}).get(part)
        current = _model_inside(field.annotation) if field is not None else None
    return list(getattr(current, "model_fields", {}))


def _model_inside(annotation: Any) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in getattr(annotation, "__args__", ()):
        found = _model_inside(argument)
        if found is not None:
            return found
    return None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
