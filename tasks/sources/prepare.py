"""``cl-bench data prepare``: puts public data sets into a folder, whole, checked and recorded."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from cl_bench.harness.errors import ClBenchError, DataError, UsageError
from cl_bench.tasks.sources.base import DataOptions
from cl_bench.tasks.sources.fetch import FetchError, Hub, Remote, download, look_up, real_hub
from cl_bench.tasks.sources.front_matter import README, config_files, folder_names, read_front_matter
from cl_bench.tasks.sources.holdings import Holdings
from cl_bench.tasks.sources.inside import make_folder, remove_folder
from cl_bench.tasks.sources.locate import AbsentDataError, DatasetSpec, Located, locate, located_files, read_located
from cl_bench.tasks.sources.placing import place_files, place_folder
from cl_bench.tasks.sources.prepared import PARTIAL, PreparedSet, RecordedFile
from cl_bench.tasks.sources.wanted import Outcome, Wanted, title

Note = Callable[[str], None]
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def prepare(
    wanted: Sequence[Wanted],
    root: Path,
    *,
    hub: Hub | None = None,
    data_root: Path | None = None,
    offline: bool = False,
    note: Note = lambda line: None,
) -> list[Outcome]:
    """Have data sets in a folder where runs find them.

    What is there already is checked against its recorded hashes and kept. What is not is copied from ``data_root``
    where it lies there, else downloaded at the revision asked for. A data set counts, and is recorded in
    ``prepared.json``, when its files have the hashes that the hub gives and its rows load. A call that was interrupted
    is gone on with by the next one.

    Args:
        wanted: The data sets.
        root: The folder.
        hub: Whom to ask; None for the hub itself.
        data_root: A folder with data sets that need no download, as ``--data-root`` takes it.
        offline: Do not ask the hub.
        note: Called with one line before each download and at what is worth knowing.

    Returns:
        An outcome each, in the order of ``wanted``.

    Raises:
        UsageError: The folders are the same one.
        ClBenchError: Another process is preparing data there.
        DataError: The record is damaged.
    """
    if data_root is not None and data_root.resolve() == root.resolve():
        raise UsageError("--to and --data-root are the same folder", hint="what lies there needs no preparation")
    with _locked(root):
        work = _Preparation(Holdings(root), hub, data_root, offline, note)
        # A revision that is pinned decides for those that take any.
        order = sorted(range(len(wanted)), key=lambda index: wanted[index].revision is None)
        outcomes = {index: work.outcome(wanted[index]) for index in order}
        work.clean_up()
    return [outcomes[index] for index in range(len(wanted))]


class _Preparation:
    """One call of ``prepare``."""

    def __init__(self, holdings: Holdings, hub: Hub | None, data_root: Path | None, offline: bool, note: Note) -> None:
        self.holdings, self.root = holdings, holdings.root
        self.hub, self.data_root, self.offline, self.note = hub, data_root, offline, note
        self.stopped = ""
        """Why nothing more can be had: the disk is full, or nobody answers."""
        self.remotes: dict[tuple[str, str | None], Remote] = {}
        self.revisions: dict[str, str | None] = {}
        self.unfinished: set[str] = set()

    def outcome(self, wanted: Wanted) -> Outcome:
        """Have one data set there, or say why not."""
        other = self.revisions.setdefault(wanted.path, wanted.revision)
        if wanted.revision not in (None, other):
            why = f"{other} is asked for too, and a folder holds one revision: prepare them with different --to"
            return Outcome(wanted, "failed", why)
        found = self.holdings.get(wanted.key)
        damage = found.damage(self.root, wanted.flat_names) if found is not None else {}
        said = "; ".join(f"{self.root / name}: {reason}" for name, reason in damage.items())
        if said:
            self.note(said)
        outcome = self._attempt(wanted, None if damage else found)
        if not outcome.is_there:
            self.unfinished.add(wanted.path)
        parts = (said, "fetched again" if said and outcome.is_there else "", outcome.detail)
        return replace(outcome, detail="; ".join(filter(None, parts)))

    def clean_up(self) -> None:
        """Remove what downloads left of data sets that are whole, and folders into which nothing came."""
        partial = self.root / PARTIAL
        for path in self.holdings.paths() - self.unfinished:
            remove_folder(self.root, f"{PARTIAL}/{path}")
        if partial.is_symlink():
            partial.unlink()
        for folder in sorted(partial.rglob("*"), reverse=True):
            _remove_if_empty(folder)
        _remove_if_empty(partial)

    def _attempt(self, wanted: Wanted, found: PreparedSet | None) -> Outcome:
        try:
            if found is not None and found.is_revision(wanted.revision) and self._has_splits(found, wanted):
                origin = "" if found.origin == "hub" else f"copied from {found.origin}"
                return Outcome(wanted, "present", origin, self._checked(wanted, found))
            return self._copied(wanted) or self._fetched(wanted)
        except FetchError as error:
            self.stopped = error.reason if error.final else self.stopped
            return Outcome(wanted, error.state, error.reason)
        except DataError as error:
            return Outcome(wanted, "failed", "; ".join(filter(None, (error.what, error.why))))
        except OSError as error:
            if error.errno not in _FULL:
                raise
            self.stopped = f"{error.strerror or 'the disk is full'}: free some space, or name another folder (--to)"
            return Outcome(wanted, "failed", self.stopped)

    def _copied(self, wanted: Wanted) -> Outcome | None:
        """From the data root; None where it is not there."""
        if self.data_root is None:
            return None
        source, options = self.data_root, DataOptions("hub", self.data_root, offline=True)
        try:
            located = [locate(spec, options) for spec in wanted.specs]
        except AbsentDataError:
            return None
        if not all(_declares(spec, one) for spec, one in zip(wanted.specs, located, strict=True)):
            return None
        if any(one.kind == "files" for one in located):
            if (held := self.holdings.get(wanted.key)) is not None and held.kind == "folder":
                self.holdings.drop(wanted.key, None, ())
            files = place_files(source, self.root, wanted.flat_names, self.holdings.files())
            found = self._checked(wanted, PreparedSet(kind="files", **_common(wanted, str(source), files)))
        else:
            folder = source / wanted.path
            names = config_files(folder_names(folder), read_front_matter(folder / README), wanted.config, str(folder))
            found = self._placed(wanted, folder, names, str(source))
        return Outcome(wanted, "copied", f"from {source}", found)

    def _fetched(self, wanted: Wanted) -> Outcome:
        """From the hub."""
        if not wanted.on_hub:
            return Outcome(wanted, "absent", _as_files(wanted))
        if self.offline:
            return Outcome(wanted, "absent", "not fetched: the hub must not be asked (offline)")
        if self.stopped:
            return Outcome(wanted, "failed", self.stopped)
        hub = self.hub = self.hub or real_hub()
        remote = self._remote(hub, wanted)
        raw = make_folder(self.root, f"{PARTIAL}/{wanted.path}/{remote.commit}")
        download(hub, remote, [README] if README in remote.files else [], raw)
        names = config_files(remote.files, read_front_matter(raw / README), wanted.config, wanted.path)
        missing = [name for name in names if not remote.files[name].is_at(self.root / wanted.path / name)]
        if missing:
            size = sum(remote.files[name].size or 0 for name in missing)
            self.note(f"downloading {wanted.title} ({size / 1e6:,.1f} MB)")
            download(hub, remote, missing, raw)
        return Outcome(wanted, "downloaded", found=self._placed(wanted, raw, names, "hub", remote))

    def _remote(self, hub: Hub, wanted: Wanted) -> Remote:
        """The repository at the revision asked for; where none is, at the one that its other parts here have."""
        revision = wanted.revision or self.holdings.commit(wanted.path)
        key = wanted.path, revision
        if key not in self.remotes:
            self.remotes[key] = look_up(hub, wanted.path, revision)
        return self.remotes[key]

    def _placed(
        self, wanted: Wanted, source: Path, names: Sequence[str], origin: str, remote: Remote | None = None
    ) -> PreparedSet:
        commit = remote.commit if remote is not None else None
        ours = self.holdings.files()
        for one in self.holdings.drop(wanted.key, commit, [f"{wanted.path}/{name}" for name in (*names, README)]):
            self.note(f"{title(one.path, one.config)}: {commit} takes the place of {one.commit}")
        configs = [wanted.config, *self.holdings.folder_configs(wanted.path)]
        files = place_folder(source, self.root, wanted.path, configs, names, ours, link=remote is not None)
        licence = remote.licence if remote is not None else None
        return self._checked(wanted, PreparedSet(commit=commit, licence=licence, **_common(wanted, origin, files)))

    def _checked(self, wanted: Wanted, one: PreparedSet) -> PreparedSet:
        """Load the rows that were not counted yet, check them, and enter the data set into the record."""
        rows = dict(one.rows)
        for spec in wanted.specs:
            for split in spec.files:
                if (key := one.rows_key(spec, split)) not in one.rows:
                    rows[key] = len(read_located(spec, split, self._located(one, spec)))
        return one if rows == one.rows else self.holdings.add(one.model_copy(update={"rows": rows}))

    def _has_splits(self, found: PreparedSet, wanted: Wanted) -> bool:
        if found.kind == "files":
            return set(wanted.flat_names) <= set(found.files)
        return all(_declares(spec, self._located(found, spec)) for spec in wanted.specs)

    def _located(self, one: PreparedSet, spec: DatasetSpec) -> Located:
        if one.kind == "folder":
            return Located("folder", self.root / one.path)
        return Located("files", self.root, {split: self.root / name for split, name in spec.files.items()})


def _declares(spec: DatasetSpec, located: Located) -> bool:
    """Whether a folder that says which splits it has says that it has these."""
    try:
        for split in spec.files:
            located_files(spec, split, located)
    except DataError:
        return False
    return True


def _as_files(wanted: Wanted) -> str:
    ways = dict.fromkeys((tuple(wanted.flat_names), *(way for need in wanted.needs for way in need.instead)))
    return f"published as files; give --data-root DIR with {', or '.join(' and '.join(way) for way in ways)}"


def _common(wanted: Wanted, origin: str, files: dict[str, RecordedFile]) -> dict[str, Any]:
    return {
        "path": wanted.path,
        "config": wanted.config,
        "revision": wanted.revision,
        "origin": origin,
        "fetched": date.today().isoformat(),
        "files": files,
    }


@contextmanager
def _locked(root: Path) -> Iterator[None]:
    """Hold a folder, which is made, against other preparations; what it was made of goes again where it stays empty."""
    import fcntl

    made = [folder for folder in (root, *root.parents) if not folder.exists()]
    root.mkdir(parents=True, exist_ok=True)
    lock = root / ".prepare.lock"
    with lock.open("a") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held = lock.exists() and os.path.samestat(os.fstat(stream.fileno()), lock.stat())
        except OSError:
            held = False
        if not held:  # or another process has just removed the file that was opened here
            raise ClBenchError(f"another process is preparing data in {root}", hint="wait for it")
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)
    for folder in made:
        _remove_if_empty(folder)


def _remove_if_empty(folder: Path) -> None:
    if folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir()):
        folder.rmdir()
