"""The record of prepared data sets: which files are there, of which revision, with which hashes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from cl_bench.harness.cache import cache_root
from cl_bench.harness.errors import DataError
from cl_bench.harness.files import file_hash, write_json
from cl_bench.tasks.sources.inside import is_inside

if TYPE_CHECKING:
    from cl_bench.tasks.sources.locate import DatasetSpec

RECORD = "prepared.json"
PARTIAL = ".partial"
"""Below a root: what is being downloaded, by id of the repository; gone once a data set is whole."""


class _Recorded(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RecordedFile(_Recorded):
    """A file of a prepared data set.

    Attributes:
        size: Bytes.
        sha256: Hash of the bytes, in hex.
    """

    size: int = Field(ge=0)
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class PreparedSet(_Recorded):
    """A prepared data set: one configuration of one repository.

    What is recorded is also removed one day, so that no name may lead out of the root.

    Attributes:
        path: Its id on the hub.
        config: Its configuration, or None for the default.
        kind: ``folder`` (``ROOT/<owner>/<name>``) or ``files`` (flat JSONL files in ``ROOT``).
        origin: Where the files came from: ``hub``, or the folder they were copied from.
        revision: What was asked for, or None.
        commit: The commit on the hub, or None where the files came from a folder.
        fetched: Day on which that commit was looked up, as ``YYYY-MM-DD``.
        licence: As the data set's card says, or None where it does not.
        rows: Rows by name of the split on the hub, or of flat files by name, as a check load counted them.
        files: Files by POSIX path below the root.
    """

    path: str
    config: str | None = None
    kind: Literal["folder", "files"] = "folder"
    origin: str
    revision: str | None = None
    commit: str | None = None
    fetched: str
    licence: str | None = None
    rows: Mapping[str, int] = Field(default_factory=dict)
    files: Mapping[str, RecordedFile]

    @field_validator("path", "files")
    @classmethod
    def _stays_inside(cls, value: Any) -> Any:
        for name in [value] if isinstance(value, str) else value:
            if not is_inside(name):
                raise ValueError(f"{name!r} does not lie below the folder")
        return value

    @property
    def key(self) -> tuple[str, str | None]:
        """Repository and configuration: a root holds one of each."""
        return self.path, self.config

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files.values())

    def is_revision(self, revision: str | None) -> bool:
        """Whether this is the revision that is asked for; None asks for any."""
        return revision is None or revision in (self.commit, self.revision)

    def damage(self, root: Path, flat_names: Collection[str]) -> dict[str, str]:
        """What is wrong with the files, by path below the root; reads them. Empty where nothing is.

        Args:
            root: The root.
            flat_names: Of a data set of flat files, those that matter.
        """
        files = {name: file for name, file in self.files.items() if self.kind == "folder" or name in flat_names}
        return {name: reason for name, file in files.items() if (reason := _difference(root / name, file))}

    def rows_key(self, spec: DatasetSpec, split: str) -> str:
        """Under which name ``rows`` counts a split."""
        return spec.hub_split(split) if self.kind == "folder" else spec.files[split]


class _Record(_Recorded):
    format: Literal[1] = 1
    data_sets: tuple[PreparedSet, ...] = ()


def prepared_root() -> Path:
    """Folder of the data sets that ``cl-bench data prepare`` puts where runs find them."""
    return cache_root() / "data"


def read_record(root: Path) -> tuple[PreparedSet, ...]:
    """The data sets prepared in a folder; none where it has no record.

    Raises:
        DataError: The record is damaged.
    """
    path = root / RECORD
    try:
        return _Record.model_validate_json(path.read_bytes()).data_sets
    except FileNotFoundError:
        return ()
    except (ValidationError, OSError) as error:
        raise DataError(
            f"{path} cannot be read",
            _reason(error),
            "remove it and prepare the data again: files that are there are not downloaded again",
        ) from error


def _reason(error: ValidationError | OSError) -> str:
    if isinstance(error, OSError):
        return str(error)
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def write_record(root: Path, data_sets: Iterable[PreparedSet]) -> None:
    """Replace the record of a folder."""
    record = _Record(data_sets=tuple(sorted(data_sets, key=lambda one: (one.path, one.config or ""))))
    write_json(root / RECORD, record)


def record_file(root: Path, name: str) -> RecordedFile:
    """Size and hash of a file below a root."""
    path = root / name
    return RecordedFile(size=path.stat().st_size, sha256=file_hash(path))


def find_prepared(root: Path, spec: DatasetSpec) -> tuple[PreparedSet | None, str]:
    """The prepared data set that a specification asks for.

    Args:
        root: Folder with a record, or without.
        spec: What is asked for.

    Returns:
        The data set, or None with the reason why one that is there is not it (empty where there is none at all).

    Raises:
        DataError: The record, or a file of the data set, is damaged.
    """
    found = next((one for one in read_record(root) if one.key == (spec.path, spec.config)), None)
    if found is None:
        return None, ""
    if not found.is_revision(spec.revision):
        held = found.commit or found.revision or "unknown"
        return None, f"what is prepared in {root} is revision {held}, and {spec.revision} is asked for"
    if found.kind == "files" and (absent := [name for name in spec.files.values() if name not in found.files]):
        return None, f"what is prepared in {root} lacks {' and '.join(absent)}"
    for name, reason in found.damage(root, set(spec.files.values())).items():
        where = "" if root == prepared_root() else f" --to {root}"
        raise DataError(
            f"{root / name} is not the file that was prepared", reason, f"cl-bench data prepare {spec.path}{where}"
        )
    return found, ""


def _difference(path: Path, file: RecordedFile) -> str:
    if not path.is_file():
        return "it is missing"
    if (size := path.stat().st_size) != file.size:
        return f"it has {size:,} bytes instead of {file.size:,}"
    return "" if file_hash(path) == file.sha256 else "its bytes do not have the recorded hash"
