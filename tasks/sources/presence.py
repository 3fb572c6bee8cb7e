"""Whether a data set is there with the splits that are asked for, not only a folder of its name."""

from __future__ import annotations

from cl_bench.harness.errors import DataError
from cl_bench.tasks.sources.base import DataOptions
from cl_bench.tasks.sources.front_matter import README, read_front_matter
from cl_bench.tasks.sources.locate import AbsentDataError, DatasetSpec, Located, locate, located_files


def absence(spec: DatasetSpec, options: DataOptions) -> AbsentDataError | None:
    """Why a data set, or one of its splits, is not there; None where all of it is.

    Raises:
        DataError: A prepared file is damaged, or the front matter of a folder cannot be read.
    """
    try:
        located = locate(spec, options)
    except AbsentDataError as error:
        return error
    if located.kind != "folder" or located.root is None:
        return None
    declares = bool(read_front_matter(located.root / README).get("configs"))
    lacks = (_lacks(spec, split, located, declares) for split in spec.files)
    return next((error for error in lacks if error is not None), None)


def _lacks(spec: DatasetSpec, split: str, located: Located, declares: bool) -> AbsentDataError | None:
    name = spec.hub_split(split)
    hint = f"add the files of the split {name}"
    if spec.on_hub:
        hint += f", or leave --data-root out and have all of it: cl-bench data prepare {spec.path}"
    try:
        if located_files(spec, split, located) or declares:
            return None
    except DataError as error:
        return AbsentDataError(error.what, error.why, hint)
    return AbsentDataError(f"the folder {located.root} has no files named after {name}", hint=hint)
