"""``cl-bench cache``: what the cache holds, and pruning it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cl_bench.harness.cache import cache_root
from cl_bench.harness.cache_contents import entries, kinds, parse_age, parse_size, prunable, remove
from cl_bench.harness.commands.execution import print_json
from cl_bench.harness.errors import UsageError
from cl_bench.harness.sizes import size_text


def list_command(json: bool) -> int:
    """Print the cache's folders with their sizes."""
    root = _folder()
    found = kinds(root)
    if json:
        rows = [{"kind": kind.name, "files": kind.entries, "bytes": kind.size, "computed": kind.computed}
                for kind in found]  # fmt: skip
        print_json({"cache": str(root), "kinds": rows})
        return 0
    print(root)
    for kind in found:
        remark = "" if kind.computed else "  fetched, never pruned"
        print(f"  {kind.name:<14}{kind.entries:>7} files  {size_text(kind.size):>9}{remark}")
    if not found:
        print("  empty")
    return 0


def _folder() -> Path:
    """The cache's folder, which need not exist. Raises ``UsageError`` where a file is in its place."""
    root = cache_root()
    if root.exists() and not root.is_dir():
        hint = "name a folder in CL_BENCH_CACHE, or remove the file"
        raise UsageError(f"the cache {root} is not a folder", "a file is in its place", hint)
    return root


def prune_command(
    only: Sequence[str], older_than: str | None, max_size: str | None, everything: bool, dry_run: bool, json: bool
) -> int:
    """Remove computed entries.

    Raises:
        UsageError: Nothing says what may go, a value or kind is unknown, or the cache is no folder.
    """
    if not (older_than or max_size or everything):
        raise UsageError("nothing says what may go", hint="--older-than 30d, --max-size 2GB, or --all")
    if everything and (older_than or max_size):
        raise UsageError("--all and a limit exclude each other", "--all removes every entry, old or not", "name one")
    age = parse_age(older_than) if older_than else None
    size = 0 if everything else parse_size(max_size) if max_size else None
    found = entries(_folder(), only or None)
    chosen = prunable(found, age, size)
    freed = sum(entry.size for entry in chosen) if dry_run else remove(chosen)
    left = sum(entry.size for entry in found) - freed
    if json:
        print_json({"removed": len(chosen), "bytes": freed, "left_bytes": left, "dry_run": dry_run})
    else:
        verb = "would remove" if dry_run else "removed"
        print(f"{verb} {len(chosen)} of {len(found)} entries, {size_text(freed)}; {size_text(left)} left")
    return 0
