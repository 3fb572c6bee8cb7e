"""Names from elsewhere that are joined to a folder: whether they stay in it, and how to remove what they name."""

from __future__ import annotations

import shutil
from pathlib import Path


def is_inside(name: object) -> bool:
    """Whether a POSIX path names something below whatever folder it is joined to.

    It does so where it is relative and every part between its slashes is the name of a file: none is empty, ``.`` or
    ``..``, and none holds a backslash (a separator elsewhere) or NUL. Links are not looked at.
    """
    if not isinstance(name, str) or "\\" in name or "\0" in name:
        return False
    return not {"", ".", ".."}.intersection(name.split("/"))


def leads_out(root: Path, name: str) -> bool:
    """Whether a link on the way from a folder to something below it leads out of the folder."""
    return not (root / name).parent.resolve().is_relative_to(root.resolve())


def remove_folder(root: Path, name: str) -> None:
    """Remove a folder below another; of a link on the way to it, the link, and nothing behind it."""
    if (link := _first_link(root, name)) is not None:
        link.unlink(missing_ok=True)
    else:
        shutil.rmtree(root / name, ignore_errors=True)


def make_folder(root: Path, name: str) -> Path:
    """Have a folder below another without links on the way to it or in it, which are removed; returns its path."""
    while (link := _first_link(root, name)) is not None:
        link.unlink(missing_ok=True)
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    for path in [path for path in folder.rglob("*") if path.is_symlink()]:
        path.unlink(missing_ok=True)
    return folder


def _first_link(root: Path, name: str) -> Path | None:
    """The link that comes first on the way from a folder to something below it, or None."""
    below = Path(name)
    ways = [root / part for part in (*reversed(below.parents[:-1]), below)]
    return next((way for way in ways if way.is_symlink()), None)
