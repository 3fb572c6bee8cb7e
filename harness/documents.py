"""Checking the JSON documents of a run directory against their versioned schemas."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from cl_bench.harness.errors import StoreError

if TYPE_CHECKING:
    from jsonschema.protocols import Validator


def schema_names() -> tuple[str, ...]:
    """Names of all schemas: ``matrix``, ``metrics``, ``samples`` (one row), ..."""
    entries = resources.files("cl_bench.harness.schemas").iterdir()
    return tuple(sorted(entry.name.removesuffix(".json") for entry in entries if entry.name.endswith(".json")))


def validate_document(document: Any, schema: str) -> None:
    """Check a document (or one row of a JSON-lines file).

    Raises:
        StoreError: It does not fit; the place and the reason are named.
    """
    from jsonschema.exceptions import best_match

    error = best_match(_validator(schema).iter_errors(document))
    if error is not None:
        place = "/".join(str(part) for part in error.absolute_path) or "the document itself"
        raise StoreError(f"a document of kind {schema} does not fit its schema", f"at {place}: {error.message}")


@cache
def _validator(schema: str) -> Validator:
    from jsonschema import Draft202012Validator

    text = resources.files("cl_bench.harness.schemas").joinpath(f"{schema}.json").read_text(encoding="utf-8")
    return Draft202012Validator(json.loads(text))
