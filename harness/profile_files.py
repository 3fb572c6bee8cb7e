"""Profiles and recipes: the YAML files that hold everything a run needs unless the user says otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from cl_bench.harness.errors import UnknownNameError, UsageError
from cl_bench.harness.spec import DataSpec, EvaluationSpec
from cl_bench.harness.validation import build, refuse_unknown
from cl_bench.harness.yaml_files import read_mapping

_PROFILES = Path(__file__).parent / "profiles"
_RECIPES = _PROFILES / "recipes"
DEFAULT_PROFILE = "lab"


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
    name: str
    description: str = ""


class PrecisionChoice(BaseModel):
    """Numeric formats as a profile gives them; ``training: auto`` is settled by the model's size.

    Attributes:
        training: Autocast format in training, or "auto".
        generation: Format of sampling, divergences and evaluation.
        micro_batch_size: Rows in one forward and backward pass.
        generation_batch_size: Rows decoded together.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
    training: Literal["auto", "fp32", "bf16"] = "auto"
    generation: Literal["fp32", "bf16"] = "fp32"
    micro_batch_size: int = Field(default=16, ge=1)
    generation_batch_size: int = Field(default=128, ge=1)


class Profile(_File):
    """Model, data, suite and recipe that belong together.

    Attributes:
        for_models: Patterns of model names that choose this profile where none is named.
        model: Student.
        aligner: "next-size-up" (lab models), "self", a model's name, or None.
        data: Source and form of the task data.
        suite: Retention suite, or None.
        tier: Tier of the suite.
        recipe: Recipe of method settings.
        training_rows: Training rows of a stage where neither the sequence nor the request gives a number; None for all.
        precision: Numeric formats and batch plan.
        evaluation: Rows evaluated and the system prompt.
        evaluation_batch_size: Rows scored together.
        templates: Values of every method's ``<key>_template`` setting, by key.
    """

    for_models: tuple[str, ...] = ()
    model: str
    aligner: str | None = None
    data: DataSpec
    suite: str | None = None
    tier: str = "full"
    recipe: str
    training_rows: int | None = Field(default=None, ge=1)
    precision: PrecisionChoice = PrecisionChoice()
    evaluation: EvaluationSpec = EvaluationSpec()
    evaluation_batch_size: int = Field(default=128, ge=1)
    templates: dict[str, str] = Field(default_factory=dict)


class Recipe(_File):
    """Settings of methods and modifiers.

    Attributes:
        defaults: Values for every method that has such a setting.
        methods: Values by method; a name the method does not have is an error.
        modifiers: Values by modifier, likewise.
        grid: Values that ``--tune`` tries, by setting; the same for every method.
    """

    defaults: dict[str, Any] = Field(default_factory=dict)
    methods: dict[str, dict[str, Any]] = Field(default_factory=dict)
    modifiers: dict[str, dict[str, Any]] = Field(default_factory=dict)
    grid: dict[str, tuple[Any, ...]] = Field(default_factory=dict)

    def method_settings(self, name: str, known: Mapping[str, Any]) -> dict[str, Any]:
        """What the recipe says about a method.

        Args:
            name: The method.
            known: Its settings, by name.

        Raises:
            UsageError: Its own section names a setting that it does not have.
        """
        own = self.methods.get(name, {})
        refuse_unknown(own, known, f"recipe {self.name}, method {name}")
        return {key: value for key, value in self.defaults.items() if key in known} | own

    def modifier_settings(self, name: str, known: Mapping[str, Any]) -> dict[str, Any]:
        """What the recipe says about a modifier; raises as ``method_settings`` does."""
        own = self.modifiers.get(name, {})
        refuse_unknown(own, known, f"recipe {self.name}, modifier {name}")
        return dict(own)


def profile_names() -> list[str]:
    """Names of the profiles."""
    return sorted(path.stem for path in _PROFILES.glob("*.yaml"))


def recipe_names() -> list[str]:
    """Names of the recipes."""
    return sorted(path.stem for path in _RECIPES.glob("*.yaml"))


def load_profile(name: str) -> Profile:
    """Load a profile by name, or from a path that ends in ``.yaml``.

    Raises:
        UnknownNameError: No such profile.
        UsageError: The file is broken.
    """
    path = profile_path(name)
    return build(Profile, read_mapping(path), str(path))


def profile_path(name: str) -> Path:
    """File of a profile, by name or path."""
    return _path(name, "profile", _PROFILES, profile_names())


def load_recipe(name: str) -> Recipe:
    """Load a recipe by name, or from a path that ends in ``.yaml``; raises as ``load_profile`` does."""
    path = recipe_path(name)
    return build(Recipe, read_mapping(path), str(path))


def recipe_path(name: str) -> Path:
    """File of a recipe, by name or path."""
    return _path(name, "recipe", _RECIPES, recipe_names())


def profile_for_model(model: str | None) -> str:
    """The profile that a model's name chooses: the first with a matching pattern, the longest pattern first."""
    if model is None:
        return DEFAULT_PROFILE
    for pattern, profile in sorted(_patterns(), key=lambda item: -len(item[0])):
        if fnmatchcase(model, pattern) or fnmatchcase(model.lower(), pattern):
            return profile
    return DEFAULT_PROFILE


def _patterns() -> Iterator[tuple[str, str]]:
    for name in profile_names():
        for pattern in load_profile(name).for_models:
            yield pattern, name


def _path(name: str, kind: str, folder: Path, known: list[str]) -> Path:
    if name.endswith((".yaml", ".yml")):
        path = Path(name)
        if not path.is_file():
            raise UsageError(f"{kind} file {name} does not exist", hint=f"or one of: {', '.join(known)}")
        return path
    if name not in known:
        raise UnknownNameError(kind, name, known)
    return folder / f"{name}.yaml"
