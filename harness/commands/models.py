"""``cl-bench models``: where models lie, and how they are built and fetched."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from cl_bench.harness.commands.execution import prepare_libraries, print_json, talking_on_stderr
from cl_bench.harness.errors import UnknownNameError, UsageError
from cl_bench.harness.progress import make_progress
from cl_bench.harness.spec import Execution


def path_command(name: str, offline: bool, json: bool) -> int:
    """Print the folder of a model; raises ``UnknownNameError`` or ``ModelError``."""
    prepare_libraries(Execution(offline=offline))
    from cl_bench.harness.models.by_name import find_model

    model = find_model(name, offline)
    print_json(model.model_dump()) if json else print(model.source)
    return 0


def build_command(
    name: str, out: Path, steps: int | None, seed: int, threads: int | None, quiet: bool, json: bool
) -> int:
    """Pre-train a lab model into ``<out>/<name>``.

    Raises:
        UnknownNameError: Not a lab model.
        UsageError: The folder exists and is not empty.
    """
    from cl_bench.harness.models.lab import LAB_MODELS

    if name not in LAB_MODELS:
        raise UnknownNameError("lab model", name, LAB_MODELS)
    folder = out / name
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty", hint="choose another --out")
    prepare_libraries(Execution(threads=threads))
    from cl_bench.harness.models.lab_build import build

    with talking_on_stderr(), make_progress(not quiet) as progress:
        if threads is not None:
            import torch

            torch.set_num_threads(threads)
        begun = False

        def advance(step: int, total: int, loss: float) -> None:
            nonlocal begun
            if not begun:
                progress.phase(f"pre-training {name}", total)
                begun = True
            progress.advance(loss=loss)

        report = build(name, folder, steps=steps, seed=seed, progress=advance)
    if json:
        print_json({**asdict(report), "path": str(folder)})
    else:
        print(f"{report.parameters:,} parameters, {report.steps} steps, {report.seconds:.0f} s, loss {report.loss:.3f}")
        print(folder)
    return 0


def fetch_command(name: str, json: bool) -> int:
    """Fetch a model into the cache.

    Raises:
        UnknownNameError: Not one that can be fetched.
        ModelError: It could not be fetched, or is not what was expected.
    """
    prepare_libraries(Execution())
    from cl_bench.harness.models.fetch import FETCHABLE, fetch

    if name not in FETCHABLE:
        raise UnknownNameError("model to fetch", name, FETCHABLE)
    with talking_on_stderr(), make_progress() as progress:
        path = fetch(name, progress=progress.note)
    print_json({"name": name, "path": str(path)}) if json else print(path)
    return 0
