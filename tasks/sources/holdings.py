"""What a folder of prepared data sets holds, kept in step with its record while data sets come and go."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from cl_bench.harness.errors import DataError
from cl_bench.tasks.sources.front_matter import README
from cl_bench.tasks.sources.inside import leads_out
from cl_bench.tasks.sources.prepared import PreparedSet, read_record, record_file, write_record

Key = tuple[str, str | None]


class Holdings:
    """The prepared data sets of a folder; every change is on the disk when it returns."""

    def __init__(self, root: Path) -> None:
        """Read the record of ``root``; raises DataError where it is damaged."""
        self.root = root
        self._sets: dict[Key, PreparedSet] = {one.key: one for one in read_record(root)}

    def get(self, key: Key) -> PreparedSet | None:
        """A data set by repository and configuration, or None."""
        return self._sets.get(key)

    def paths(self) -> set[str]:
        """Ids of the repositories."""
        return {path for path, _ in self._sets}

    def files(self) -> set[str]:
        """Recorded files of all data sets, below the root; what lies behind a link out of it may be anybody's."""
        return {name for name in _names(self._sets.values()) if not leads_out(self.root, name)}

    def commit(self, path: str) -> str | None:
        """The commit of a repository's parts that came from the hub, or None."""
        return next((one.commit for one in self._sets.values() if one.path == path and one.commit), None)

    def folder_configs(self, path: str) -> list[str | None]:
        """Configurations of a repository that are in its hub-shaped folder."""
        return [one.config for one in self._sets.values() if one.path == path and one.kind == "folder"]

    def drop(self, key: Key, commit: str | None, keep: Collection[str]) -> list[PreparedSet]:
        """Make room for a data set: forget what it replaces.

        That is the data set itself and, where both came from the hub, the repository's parts of another commit. Files
        that nothing else has are removed: a pattern of the front matter would count them in.

        Args:
            key: The data set to come.
            commit: Its commit, or None.
            keep: Files below the root that stay.

        Returns:
            The data sets of another commit.

        Raises:
            DataError: A file to be removed lies behind a link that leads out of the root; nothing was changed.
        """
        gone = [one for one in self._sets.values() if one.key == key or _other_commit(one, key[0], commit)]
        others = [one for one in self._sets.values() if one not in gone]
        names = _names(gone) - set(keep) - _names(others)
        if behind := sorted(name for name in names if leads_out(self.root, name)):
            raise DataError(
                f"{self.root / behind[0]} lies behind a link out of {self.root}",
                "what is replaced is removed, and nothing outside the folder is",
                "remove the link, or name another folder with --to",
            )
        for one in gone:
            del self._sets[one.key]
        if gone:
            write_record(self.root, self._sets.values())
        for path in (self.root / name for name in names):
            if path.is_symlink() or not path.is_dir():
                path.unlink(missing_ok=True)
        return [one for one in gone if _other_commit(one, key[0], commit)]

    def add(self, one: PreparedSet) -> PreparedSet:
        """Enter a data set; returns its entry.

        Flat files join those of it that are there. Other configurations share its README, whose hash is renewed for
        them.
        """
        held = self._sets.get(one.key)
        if held is not None and held.kind == one.kind == "files":
            one = one.model_copy(update={"files": {**held.files, **one.files}, "rows": {**held.rows, **one.rows}})
        self._sets[one.key] = one
        readme = f"{one.path}/{README}"
        if readme in one.files:
            file = record_file(self.root, readme)
            for key, other in self._sets.items():
                if readme in other.files:
                    self._sets[key] = other.model_copy(update={"files": {**other.files, readme: file}})
        write_record(self.root, self._sets.values())
        return self._sets[one.key]


def _names(data_sets: Iterable[PreparedSet]) -> set[str]:
    return {name for one in data_sets for name in one.files}


def _other_commit(one: PreparedSet, path: str, commit: str | None) -> bool:
    return one.path == path and None not in (commit, one.commit) and one.commit != commit
