"""Students and aligners as a specification records them: found by name, paired, sized, without loading weights."""

from __future__ import annotations

from pathlib import Path

from cl_bench.harness.errors import ModelError, UsageError
from cl_bench.harness.models.safetensors_header import stored_parameters
from cl_bench.harness.profile_files import PrecisionChoice
from cl_bench.harness.spec import ModelSpec
from cl_bench.methods.base import Precision


def find_model(name: str, offline: bool) -> ModelSpec:
    """A model by lab name, fetched name, folder or hub id.

    Raises:
        UnknownNameError: Nothing of that name.
        ModelError: It cannot be used.
    """
    from cl_bench.harness.models.load import resolve_model

    found = resolve_model(name, offline=offline)
    return ModelSpec(name=found.name, fingerprint=found.fingerprint, source=str(found.path))


def refind(model: ModelSpec, offline: bool) -> ModelSpec:
    """A recorded model as it is now, from its folder or, where that is gone, by its name; the name is kept.

    Raises:
        ModelError: It is gone.
    """
    source = model.source if Path(model.source).is_dir() else model_request(model)
    return find_model(source, offline).model_copy(update={"name": model.name, "thinking": model.thinking})


def verified_folder(model: ModelSpec, offline: bool = True) -> Path:
    """The folder of a recorded model, after its content was compared with what was recorded.

    Raises:
        ModelError: It is gone, or its files are not the recorded ones.
    """
    found = refind(model, offline)
    if found.fingerprint != model.fingerprint:
        raise ModelError(
            f"the files of {model.name} have changed since the run was planned",
            why=f"{found.source} no longer hashes to {model.fingerprint[:8]}",
            hint="put the files back, or start a new run",
        )
    return Path(found.source)


def model_request(model: ModelSpec) -> str:
    """What to pass as ``--model`` to get a recorded model again."""
    from cl_bench.harness.models.fetch import FETCHABLE
    from cl_bench.harness.models.lab import LAB_MODELS

    if model.name in LAB_MODELS or model.name in FETCHABLE:
        return model.name
    # Hub ids were written with -- for the slash, which no path can hold.
    return model.name.replace("--", "/") if "--" in model.name else model.source or model.name


def find_aligner(choice: str, student: ModelSpec, offline: bool) -> ModelSpec:
    """The aligner of a student.

    Args:
        choice: A model's name, "self", or "next-size-up" for lab models.
        student: The student.
        offline: Never ask the hub.

    Raises:
        UsageError: "next-size-up" of a model that is not the lab's.
        ModelError: The aligner is not found, has another tokenizer, or its weights are cut off.
    """
    from cl_bench.harness.models.lab import LAB_MODELS, next_size_up
    from cl_bench.harness.models.vocabulary import check_same_tokenizer

    if choice == "self":
        return student
    if choice == "next-size-up":
        if student.name not in LAB_MODELS:
            raise UsageError(
                f"{student.name} has no next size up", why="only lab models have", hint="name one with --aligner"
            )
        choice = next_size_up(student.name)
    aligner = find_model(choice, offline)
    check_same_tokenizer(Path(student.source), Path(aligner.source))
    stored_parameters(Path(aligner.source))  # weights that are cut off are found now, not after the base row
    return aligner


def settled_precision(choice: PrecisionChoice, model: Path, device: str = "cpu") -> Precision:
    """The precision with ``auto`` replaced by what pays for a model of that size on that device."""
    from cl_bench.harness.models.precision import training_format

    return Precision(
        training=training_format(choice.training, stored_parameters(model), device),
        generation=choice.generation,
        micro_batch_size=choice.micro_batch_size,
        generation_batch_size=choice.generation_batch_size,
    )
