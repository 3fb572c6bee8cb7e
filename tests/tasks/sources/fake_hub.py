"""A hub in memory: what ``prepare`` asks ``huggingface_hub.HfApi`` for, with the faults that a real one has."""

from __future__ import annotations

import errno
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.tasks.sources.rows import Row

LICENCE = "mit"


def commit_of(number: int) -> str:
    """A commit's id, as long as a real one."""
    return f"{number:040x}"


def git_hash(data: bytes) -> str:
    return hashlib.sha1(f"blob {len(data)}\0".encode() + data).hexdigest()


def lines(rows: Iterable[Row]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def repository(configs: Mapping[str, Mapping[str, Iterable[Row]]], licence: str = LICENCE) -> dict[str, bytes]:
    """Files of a data set: JSON lines a split, and a README that declares them."""
    front, files = ["---", f"license: {licence}", "configs:"], {}
    for config, splits in configs.items():
        front += [f"- config_name: {config}", "  data_files:"]
        for split, rows in splits.items():
            files[f"{config}/{split}.jsonl"] = lines(rows)
            front += [f"  - split: {split}", f"    path: {config}/{split}.jsonl"]
    return {**files, "README.md": "\n".join([*front, "---", "# A data set", ""]).encode()}


@dataclass
class FakeHub:
    """Data sets by id and commit.

    Attributes:
        repositories: Files by id and commit; the last commit is ``main``.
        gated: Ids whose terms were not accepted.
        wrong: Files that arrive with other bytes than the hub says.
        cut: Files that arrive half and with an interruption, once each.
        disk: Bytes that fit on the disk, or None for any number.
        network: Whether anybody answers.
        large: Whether files count as large: the hub then gives their SHA-256, else git's hash.
        calls: What was asked for: ("info", id) and ("file", name).
    """

    repositories: dict[str, dict[str, dict[str, bytes]]] = field(default_factory=dict)
    gated: set[str] = field(default_factory=set)
    wrong: set[str] = field(default_factory=set)
    cut: set[str] = field(default_factory=set)
    disk: int | None = None
    network: bool = True
    large: bool = True
    calls: list[tuple[str, str]] = field(default_factory=list)

    def publish(self, path: str, files: dict[str, bytes], commit: str | None = None) -> str:
        """A new commit; returns its id."""
        commits = self.repositories.setdefault(path, {})
        commit = commit or commit_of(len(commits) + 10 * len(self.repositories))
        commits[commit] = files
        return commit

    def downloads(self) -> list[str]:
        """Names of the files that were sent."""
        return [name for kind, name in self.calls if kind == "file"]

    def dataset_info(
        self, repo_id: str, *, revision: str | None = None, timeout: float | None = None, files_metadata: bool = False
    ) -> Any:
        self.calls.append(("info", repo_id))
        self._answer()
        commit, files = self._commit(repo_id, revision)
        assert files_metadata and timeout is not None
        return SimpleNamespace(
            sha=commit,
            siblings=[self._sibling(name, data) for name, data in files.items()],
            card_data={"license": LICENCE} if "README.md" in files else None,
        )

    def hf_hub_download(
        self,
        repo_id: str,
        filename: str,
        *,
        repo_type: str | None = None,
        revision: str | None = None,
        local_dir: str | Path | None = None,
    ) -> str:
        assert repo_type == "dataset" and local_dir is not None
        self._answer()
        _, files = self._commit(repo_id, revision)
        if repo_id in self.gated:
            raise _http_error("GatedRepoError", 403)
        self._send(filename, files[filename], Path(local_dir) / filename)
        return str(Path(local_dir) / filename)

    def _send(self, name: str, data: bytes, target: Path) -> None:
        self.calls.append(("file", name))
        target.parent.mkdir(parents=True, exist_ok=True)
        if name in self.cut:
            self.cut.remove(name)
            target.write_bytes(data[: len(data) // 2])
            raise KeyboardInterrupt
        if self.disk is not None and len(data) > self.disk:
            target.write_bytes(data[: self.disk])
            raise OSError(errno.ENOSPC, "No space left on device", str(target))
        target.write_bytes(data[::-1] if name in self.wrong else data)

    def _answer(self) -> None:
        if not self.network:
            raise ConnectionError("[Errno -3] Temporary failure in name resolution")

    def _commit(self, path: str, revision: str | None) -> tuple[str, dict[str, bytes]]:
        commits = self.repositories.get(path)
        if commits is None:
            raise _http_error("RepositoryNotFoundError", 404)
        commit = list(commits)[-1] if revision in (None, "main") else revision
        if commit not in commits:
            raise _http_error("RevisionNotFoundError", 404)
        return str(commit), commits[str(commit)]

    def _sibling(self, name: str, data: bytes) -> Any:
        lfs = SimpleNamespace(sha256=hashlib.sha256(data).hexdigest()) if self.large else None
        return SimpleNamespace(rfilename=name, size=len(data), lfs=lfs, blob_id=git_hash(data))


def _http_error(name: str, status: int) -> Exception:
    from huggingface_hub import errors

    response: Any = SimpleNamespace(status_code=status, headers={}, request=None)
    error: Exception = getattr(errors, name)(f"{status} Client Error", response=response)
    return error
