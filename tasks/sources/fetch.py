"""What is asked of the hub: a revision's commit, its files with their hashes, and the bytes, checked on arrival."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from cl_bench.harness.files import file_hash
from cl_bench.tasks.sources.inside import is_inside

State = Literal["downloaded", "present", "copied", "absent", "gated", "failed"]
SECONDS_TO_ANSWER = 15.0
"""How long the hub may take to say what a data set consists of."""


class Hub(Protocol):
    """The two methods of ``huggingface_hub.HfApi`` that are used."""

    def dataset_info(
        self, repo_id: str, *, revision: str | None = None, timeout: float | None = None, files_metadata: bool = False
    ) -> Any:
        """Commit (``sha``), files (``siblings``) and card of a data set at a revision."""

    def hf_hub_download(
        self,
        repo_id: str,
        filename: str,
        *,
        repo_type: str | None = None,
        revision: str | None = None,
        local_dir: str | Path | None = None,
    ) -> Any:
        """Put a file of a revision below a folder; goes on with what an interrupted call has left there."""


class FetchError(Exception):
    """The hub did not give what was asked for.

    Attributes:
        state: What that makes of the data set.
        reason: Why, with what to do about it.
        final: Whether asking for anything else is in vain too (no network).
    """

    def __init__(self, state: State, reason: str, final: bool = False) -> None:
        """See the class."""
        super().__init__(reason)
        self.state, self.reason, self.final = state, reason, final


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file on the hub: bytes, and the hash that the hub has of it (of large files SHA-256, of others git's)."""

    size: int | None = None
    sha256: str | None = None
    blob: str | None = None

    def difference(self, path: Path) -> str:
        """What distinguishes a file on this machine from this one; empty where nothing does."""
        if not path.is_file():
            return "it did not arrive"
        if self.size is not None and (size := path.stat().st_size) != self.size:
            return f"it has {size:,} bytes instead of {self.size:,}"
        if self.sha256 is not None:
            return "" if file_hash(path) == self.sha256 else "its bytes do not have the hash that the hub gives"
        if self.blob is not None and _git_hash(path) != self.blob:
            return "its bytes do not have the hash that the hub gives"
        return ""

    def is_at(self, path: Path) -> bool:
        """Whether exactly this file is there; never where the hub gives no hash."""
        return (self.sha256 or self.blob) is not None and not self.difference(path)


@dataclass(frozen=True, slots=True)
class Remote:
    """A data set on the hub at one commit."""

    path: str
    commit: str
    licence: str | None
    files: Mapping[str, RemoteFile]


def real_hub() -> Hub:
    """The hub itself, with the user's token and endpoint."""
    from huggingface_hub import HfApi

    hub: Hub = HfApi()
    return hub


def look_up(hub: Hub, path: str, revision: str | None) -> Remote:
    """Resolve a revision to its commit.

    Args:
        hub: Whom to ask.
        path: Id of the data set.
        revision: Branch, tag or commit; None for what is published today.

    Raises:
        FetchError: There is no such data set or revision, or the hub does not answer.
    """
    try:
        info = hub.dataset_info(path, revision=revision, timeout=SECONDS_TO_ANSWER, files_metadata=True)
    except Exception as error:
        raise explained(error, path, revision) from error
    files = {
        sibling.rfilename: _remote_file(sibling) for sibling in info.siblings or [] if is_inside(sibling.rfilename)
    }
    commit = str(info.sha)
    if not is_inside(commit) or "/" in commit:  # it names the folder of what is being downloaded
        raise FetchError("failed", f"the hub gives {commit!r} as the commit of {path}")
    return Remote(path, commit, _licence(info.card_data), files)


def download(hub: Hub, remote: Remote, names: Iterable[str], folder: Path) -> None:
    """Put files below a folder, whole or not at all: one that is not what the hub says is removed.

    Raises:
        FetchError: The hub did not deliver all of them.
        OSError: The disk refused.
    """
    wanted = [name for name in names if not remote.files[name].is_at(folder / name)]
    for name in wanted:
        (folder / name).unlink(missing_ok=True)
        _download_file(hub, remote, name, folder)
    wrong = {name: reason for name in wanted if (reason := remote.files[name].difference(folder / name))}
    for name in wrong:
        (folder / name).unlink(missing_ok=True)
    if wrong:
        said = "; ".join(f"{name}: {reason}" for name, reason in wrong.items())
        raise FetchError("failed", f"{said}; the same command fetches it again")


def _download_file(hub: Hub, remote: Remote, name: str, folder: Path) -> None:
    # Not `snapshot_download`: it works in threads, and Ctrl-C then waits until the files under way are complete.
    try:
        hub.hf_hub_download(remote.path, name, repo_type="dataset", revision=remote.commit, local_dir=folder)
    except Exception as error:
        if getattr(error, "errno", None) is not None and not isinstance(error, ConnectionError | TimeoutError):
            raise
        raise explained(error, remote.path, remote.commit) from error


def explained(error: Exception, path: str, revision: str | None) -> FetchError:
    """An exception of ``huggingface_hub`` in the words of this project."""
    from huggingface_hub import errors

    page = f"https://huggingface.co/datasets/{path}"
    first = (str(error).strip().splitlines() or [type(error).__name__])[0]
    if isinstance(error, errors.GatedRepoError):
        return FetchError("gated", f"accept the terms on {page}, then give a token: hf auth login, or HF_TOKEN")
    if isinstance(error, errors.RevisionNotFoundError):
        return FetchError("absent", f"the hub has no revision {revision} of it")
    if isinstance(error, errors.RepositoryNotFoundError):
        return FetchError("absent", f"there is no {page}, or it is private and HF_TOKEN is not of someone who may read")
    if isinstance(error, errors.OfflineModeIsEnabled):
        return FetchError("failed", "Hugging Face's libraries were told to stay offline (HF_HUB_OFFLINE)", final=True)
    if isinstance(error, errors.LocalEntryNotFoundError | ConnectionError | TimeoutError) or _is_transport(error):
        return FetchError(
            "failed", f"the hub cannot be reached ({first}); check the network, or give --data-root", final=True
        )
    return FetchError("failed", f"{type(error).__name__}: {first}")


def _is_transport(error: Exception) -> bool:
    """Whether nobody answered: the base of httpx's errors of connecting, under whichever name httpx is installed."""
    return any(kind.__name__ == "TransportError" for kind in type(error).__mro__)


def _remote_file(sibling: Any) -> RemoteFile:
    lfs = getattr(sibling, "lfs", None)
    sha256 = getattr(lfs, "sha256", None)
    blob = None if sha256 else getattr(sibling, "blob_id", None)
    return RemoteFile(getattr(sibling, "size", None), sha256, blob)


def _licence(card: Any) -> str | None:
    """The card's ``license``; several are joined, and "other" is followed by its name where it has one."""
    value = card.get("license") if hasattr(card, "get") else getattr(card, "license", None)
    if not value:
        return None
    names: Sequence[str] = value if isinstance(value, list) else [value]
    further = card.get("license_name") if hasattr(card, "get") else None
    return ", ".join(map(str, names)) + (f" ({further})" if further else "")


def _git_hash(path: Path) -> str:
    digest = hashlib.sha1(usedforsecurity=False)
    digest.update(f"blob {path.stat().st_size}\0".encode())
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
