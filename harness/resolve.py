"""From a request to run specifications: command line over file over profile, every name checked, every value filled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from cl_bench.harness.code_leave import check_code_leave
from cl_bench.harness.errors import UsageError
from cl_bench.harness.files import file_hash
from cl_bench.harness.models.by_name import find_aligner, find_model, refind, settled_precision
from cl_bench.harness.models.thinking import with_thinking
from cl_bench.harness.needs import check_needs, need_aligner
from cl_bench.harness.profile_files import (
    PrecisionChoice,
    Profile,
    Recipe,
    load_profile,
    load_recipe,
    profile_for_model,
)
from cl_bench.harness.registry import Registry
from cl_bench.harness.request import BOUNDS, Request, merge
from cl_bench.harness.spec import (
    RESULTS_VERSION,
    ComponentSpec,
    DataSpec,
    EvaluationSpec,
    Execution,
    ModelSpec,
    RunSpec,
    SequenceSpec,
    StageSpec,
    TaskSpec,
    data_options,
)
from cl_bench.harness.suite_choice import plain, resolved_suite, suite_name, suite_tier
from cl_bench.harness.validation import build, refuse_unknown
from cl_bench.methods.base import MethodSettings, Need
from cl_bench.tasks.base import Task
from cl_bench.tasks.sources.base import DataOptions

Note = Callable[[str], None]


def resolve(request: Request, execution: Execution, registry: Registry, note: Note) -> list[RunSpec]:
    """The specification of every requested seed.

    Names and settings are checked first, then models, then data; nothing is written and no weights are loaded.

    Args:
        request: What the user asks for.
        execution: Where data are.
        registry: What can be named.
        note: Receives remarks for the user.

    Raises:
        UsageError: An unknown name or setting, or a value that does not fit.
        ModelError: A model is not found, or the aligner has another tokenizer.
        DataError: Data are absent or broken.
    """
    _refuse_empty_names(request)
    profile = load_profile(request.profile or profile_for_model(request.model))
    recipe = load_recipe(request.recipe or profile.recipe)
    bound, method_name = _method_name(request, registry)
    method = _method(method_name, request, profile, recipe, registry)
    modifiers = _modifiers(request, recipe, registry, method_name)
    sequence = _sequence(request, profile, registry)
    for stage in sequence.stages:
        registry.source("tasks", stage.task)
    data = build(DataSpec, merge(profile.data.model_dump(), request.group("data")), "settings of data")
    evaluation, batch_size = _evaluation(request, profile)
    suite = suite_name(request, profile, registry)
    tier = suite_tier(request, profile)
    precision_choice = build(
        PrecisionChoice, merge(profile.precision.model_dump(), request.group("precision")), "settings of precision"
    )
    stages = [stage.name for stage in sequence.stages]
    aligner_choice = _aligner_choice(request, profile, registry, method_name, stages, note)
    model = with_thinking(find_model(request.model or profile.model, execution.offline), request.thinking)
    aligner = find_aligner(aligner_choice, model, execution.offline) if aligner_choice else None
    loaded = _loaded((stage.task for stage in sequence.stages), registry, data_options(data, execution))
    resolved = resolved_suite(suite, tier, registry, data, execution, note)
    check_code_leave(loaded.values(), resolved, execution.allow_code, note)
    for name, task in loaded.items():
        for remark in task.remarks:
            note(f"task {name}: {remark}")
    if method_name is not None:
        check_needs(registry.method_class(method_name), {stage.name: loaded[stage.task] for stage in sequence.stages})
    first = RunSpec(
        profile=profile.name,
        recipe=recipe.name,
        lab_version=_lab_version(data, model),
        method=method,
        modifiers=modifiers,
        bound=bound,
        sequence=sequence,
        data=data,
        tasks=_identified_tasks(loaded),
        suite=resolved,
        evaluation=evaluation,
        model=model,
        aligner=aligner,
        precision=settled_precision(precision_choice, Path(model.source), execution.device),
        evaluation_batch_size=batch_size,
        limit=request.limit,
        eval_every=request.eval_every,
    )
    return [first.model_copy(update={"seed": seed}) for seed in request.seeds or (0,)]


def differences(one: RunSpec, other: RunSpec) -> dict[str, tuple[Any, Any]]:
    """Dotted names of the fields in which two specifications differ, hashed fields only, with their values."""
    return dict(sorted(_differing(one.hash_payload(), other.hash_payload(), "")))


def changes(spec: RunSpec, execution: Execution, registry: Registry) -> list[str]:
    """What a specification depends on and is not what it was: models, data, sources of method and modifiers.

    Raises:
        UnknownNameError: Something that it names is gone.
        ModelError: A model is gone.
        DataError: Data are gone or broken.
    """
    now = spec.model_copy(
        update={
            "results_version": RESULTS_VERSION,
            "method": spec.method and _identified("methods", spec.method, registry),
            "modifiers": tuple(_identified("modifiers", modifier, registry) for modifier in spec.modifiers),
            "model": refind(spec.model, execution.offline),
            "aligner": spec.aligner and refind(spec.aligner, execution.offline),
            "tasks": _identified_tasks(
                _loaded((task.name for task in spec.tasks), registry, data_options(spec.data, execution))
            ),
            "lab_version": _lab_version(spec.data, spec.model),
            "suite": spec.suite and resolved_suite(spec.suite.name, spec.suite.tier, registry, spec.data, execution),
        }
    )
    return list(differences(spec, now))


def _identified(kind: str, component: ComponentSpec, registry: Registry) -> ComponentSpec:
    found = registry.method_class if kind == "methods" else registry.modifier_class
    identity = _identity(kind, component.name, found(component.name).Settings, component.settings, registry)
    return component.model_copy(update={"identity": identity})


def _identity(
    kind: str, name: str, settings: type[MethodSettings], values: Mapping[str, Any], registry: Registry
) -> str:
    """Identity of the source and of every file that a setting names: its content decides the result, not its name."""
    parts = [registry.identity(kind, name)]
    for field, about in settings.model_fields.items():
        extra = about.json_schema_extra
        if isinstance(extra, dict) and extra.get("unit") == "path" and values.get(field):
            try:
                parts.append(f"{field}={file_hash(Path(str(values[field])))[:16]}")
            except OSError as error:
                what = f"{kind.removesuffix('s')}.{name}.{field}: {values[field]} cannot be read"
                raise UsageError(what, error.strerror or str(error), "name a file") from error
    return " ".join(parts)


def _loaded(names: Iterable[str], registry: Registry, options: DataOptions) -> dict[str, Task]:
    return {name: registry.task(name, options) for name in dict.fromkeys(names)}


def _identified_tasks(tasks: Mapping[str, Task]) -> tuple[TaskSpec, ...]:
    return tuple(
        TaskSpec(name=name, identity=plain(task.identity()), remarks=tuple(task.remarks))
        for name, task in tasks.items()
    )


def _refuse_empty_names(request: Request) -> None:
    # An unset variable of the shell (--model "$MODEL") must not choose what the profile would.
    for option, value in request.model_dump(exclude={"settings"}).items():
        if value == "":
            raise UsageError(f"--{option.replace('_', '-')} is empty", hint="name one, or leave the option out")


def _method_name(request: Request, registry: Registry) -> tuple[Literal["base", "joint"] | None, str | None]:
    if request.method is None:
        raise UsageError("no method given", hint=f"--method with one of: {', '.join([*BOUNDS, *registry.methods()])}")
    if request.joint_with is not None and request.method != "joint":
        raise UsageError("--joint-with goes with --method joint", why=f"the method is {request.method}")
    if request.method == "base":
        return "base", None
    bound: Literal["joint"] | None = "joint" if request.method == "joint" else None
    name = (request.joint_with or "sft") if bound else request.method
    if name not in registry.methods():
        raise registry.unknown("methods", name, BOUNDS)
    return bound, name


def _method(
    name: str | None, request: Request, profile: Profile, recipe: Recipe, registry: Registry
) -> ComponentSpec | None:
    own = request.group("method")
    if name is None:
        if own:
            raise UsageError("the bound 'base' trains nothing and has no settings", hint="drop --set method.…")
        return None
    found = registry.method_class(name)
    _refuse_broken(found, "method", name)
    known = found.Settings.model_fields
    values = recipe.method_settings(name, known)
    templates = {f"{key}_template": text for key, text in profile.templates.items()}
    values |= {key: text for key, text in templates.items() if key in known and key not in recipe.methods.get(name, {})}
    return component(found.Settings, "method", name, values | own, registry)


def _refuse_broken(found: type, kind: str, name: str) -> None:
    """Refuse a class that lacks what a specification is made of."""
    settings: Any = getattr(found, "Settings", None)
    needs: Any = getattr(found, "needs", frozenset())
    hint = f"cl-bench validate {kind} {name} names all that is wrong with it"
    if not (isinstance(settings, type) and issubclass(settings, MethodSettings)):
        raise UsageError(f"{kind} {name} has no Settings class", f"Settings is {settings!r}", hint)
    if not (isinstance(needs, frozenset | set) and all(isinstance(need, Need) for need in needs)):
        raise UsageError(f"{kind} {name} does not say what it needs", f"needs is {needs!r}, not a set of Need", hint)


def component(
    settings: type[MethodSettings], kind: str, name: str, values: Mapping[str, Any], registry: Registry
) -> ComponentSpec:
    """A method or modifier with every setting filled.

    Raises:
        UsageError: A setting is unknown or its value does not fit.
    """
    full = build(settings, values, f"settings of {kind} {name}").model_dump(mode="json")
    return ComponentSpec(name=name, settings=full, identity=_identity(f"{kind}s", name, settings, full, registry))


def _modifiers(
    request: Request, recipe: Recipe, registry: Registry, method_name: str | None
) -> tuple[ComponentSpec, ...]:
    names = request.modifiers or ()
    given = request.group("modifier")
    for name in names:
        registry.source("modifiers", name)
    refuse_unknown(given, names, "settings of modifiers (choose modifiers with --with)")
    if not names:
        return ()
    if len(set(names)) < len(names):
        raise UsageError(f"--with names a modifier twice: {', '.join(names)}")
    if method_name is None:
        raise UsageError("the bound 'base' trains nothing and takes no modifiers", hint="drop --with")
    if not registry.method_class(method_name).takes_modifiers:
        raise UsageError(f"method {method_name} takes no modifiers", why="it does not use the shared training loop")
    _refuse_two_adapters(names, registry)
    found = []
    for name in names:
        modifier = registry.modifier_class(name)
        _refuse_broken(modifier, "modifier", name)
        settings = modifier.Settings
        values = recipe.modifier_settings(name, settings.model_fields) | dict(given.get(name, {}))
        found.append(component(settings, "modifier", name, values, registry))
    return tuple(found)


def _refuse_two_adapters(names: Iterable[str], registry: Registry) -> None:
    found = [name for name in names if registry.modifier_class(name).reparametrises]
    if len(found) > 1:
        raise UsageError(
            f"--with {' and '.join(found)} exclude each other",
            why="each changes which parameters are trained",
            hint="choose one of them",
        )


def _sequence(request: Request, profile: Profile, registry: Registry) -> SequenceSpec:
    if request.sequence is None:
        raise UsageError("no sequence given", hint=f"--sequence with one of: {', '.join(registry.sequences())}")
    sequence = registry.sequence(request.sequence).resolve(request.order)
    settings = request.group("sequence")
    every = {key: settings.pop(key) for key in ("rows", "epochs") if key in settings}
    names = [stage.name for stage in sequence.stages]
    refuse_unknown(settings, ["rows", "epochs", *names], f"settings of sequence {sequence.name}")
    stages = []
    for stage in sequence.stages:
        own = settings.get(stage.name, {})
        if not isinstance(own, Mapping):
            raise UsageError(f"sequence.{stage.name}: expected rows or epochs", hint=f"sequence.{stage.name}.epochs=1")
        default = {"rows": profile.training_rows} if stage.rows is None else {}
        values = stage.model_dump() | default | every | dict(own)
        values["rows"] = _smaller(values["rows"], request.limit)
        stages.append(build(StageSpec, values, f"settings of stage {stage.name}"))
    return sequence.model_copy(update={"stages": tuple(stages)})


def _evaluation(request: Request, profile: Profile) -> tuple[EvaluationSpec, int]:
    settings = request.group("evaluation")
    batch_size = settings.pop("batch_size", profile.evaluation_batch_size)
    if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size < 1:
        raise UsageError(f"evaluation.batch_size: expected a whole number above 0, got {batch_size!r}")
    values = merge(profile.evaluation.model_dump(), settings)
    for name in ("rows", "ood_rows", "suite_rows"):
        values[name] = _smaller(values.get(name), request.limit)
    return build(EvaluationSpec, values, "settings of evaluation"), batch_size


def _smaller(value: Any, limit: int | None) -> Any:
    # A value of the wrong type is left for the validation that follows.
    if limit is None or (value is not None and not isinstance(value, int)):
        return value
    return limit if value is None else min(value, limit)


def _aligner_choice(
    request: Request, profile: Profile, registry: Registry, method_name: str | None, stages: Sequence[str], note: Note
) -> str | None:
    """Which aligner the method gets; None where it uses none, so that naming one does not make another run."""
    if method_name is None or Need.ALIGNER not in registry.method_class(method_name).needs:
        if request.aligner not in (None, "none"):
            note(f"{method_name or 'base'} uses no aligner; --aligner {request.aligner} has no effect")
        return None
    choice = request.aligner or profile.aligner
    if choice in (None, "none"):
        raise need_aligner(method_name, stages)
    return choice


def _lab_version(data: DataSpec, model: ModelSpec) -> int | None:
    from cl_bench.harness.models.lab import LAB_MODELS

    if data.source != "lab" and model.name not in LAB_MODELS:
        return None
    from cl_bench.tasks.lab.version import LAB_VERSION

    return int(LAB_VERSION)


def _differing(one: Any, other: Any, place: str) -> list[tuple[str, tuple[Any, Any]]]:
    if isinstance(one, dict) and isinstance(other, dict):
        keys = dict.fromkeys([*one, *other])
        names = {key: f"{place}.{key}".lstrip(".") for key in keys}
        return [found for key in keys for found in _differing(one.get(key), other.get(key), names[key])]
    return [] if one == other else [(place, (one, other))]
