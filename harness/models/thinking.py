"""Reasoning blocks: for models whose chat template can switch them on and off."""

from __future__ import annotations

import json
from pathlib import Path

from cl_bench.harness.errors import UsageError
from cl_bench.harness.models.chat_model import THINKING_SWITCH
from cl_bench.harness.spec import ModelSpec


def with_thinking(model: ModelSpec, thinking: bool | None) -> ModelSpec:
    """The model with its reasoning switched on or off; None leaves the template's default.

    Raises:
        UsageError: The model's chat template has no such switch.
    """
    if thinking is None:
        return model
    if THINKING_SWITCH not in _template(Path(model.source)):
        raise UsageError(
            f"{model.name} cannot switch its reasoning on or off",
            why=f"its chat template does not know {THINKING_SWITCH}",
            hint="leave --thinking and --no-thinking out",
        )
    return model.model_copy(update={"thinking": thinking})


def _template(folder: Path) -> str:
    path = folder / "chat_template.jinja"
    if path.is_file():
        return path.read_text(encoding="utf-8")
    settings = folder / "tokenizer_config.json"
    return str(json.loads(settings.read_text(encoding="utf-8")).get("chat_template")) if settings.is_file() else ""
