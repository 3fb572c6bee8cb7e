"""``cl-bench reproduce``: what of a run can be had again here, and what cannot; with ``--run`` whether it comes out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cl_bench.harness.commands.execution import check_device, prepare_libraries, print_json, talking_on_stderr
from cl_bench.harness.commands.recorded import as_before
from cl_bench.harness.commands.run import run_all
from cl_bench.harness.errors import EXIT_DONE, EXIT_FAILED, ClBenchError, StoreError, UsageError
from cl_bench.harness.files import write_text
from cl_bench.harness.manifest import environment
from cl_bench.harness.progress import ClosingProgress, make_progress
from cl_bench.harness.registry import Registry
from cl_bench.harness.run_directory import ENDED, RunView, load_run, next_attempt, run_path
from cl_bench.harness.selfcheck.results import compared
from cl_bench.harness.spec import Execution, RunSpec

_ENVIRONMENT = ("python", "machine", "threads", "git_commit", "git_diff_sha256")


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Something that is not what it was.

    Attributes:
        what: Its name.
        then: What the run had, as text.
        now: What is here, as text.
        decides: Whether it is in the specification, so that the same run cannot be had at all.
    """

    what: str
    then: str
    now: str
    decides: bool


def reproduce_command(
    directory: Path, options: Mapping[str, Any], output: Path, run: bool, save_spec: Path | None, json: bool
) -> int:
    """Compare, print, and run again where asked; returns the exit code.

    Args:
        directory: Run directory.
        options: Options of ``execution_of`` that were given; the others are those of the run's last session.
        output: Folder for the second run.
        run: Carry the run out again and compare what comes of it.
        save_spec: Where to write the specification, or None.
        json: Print one line of JSON.

    Raises:
        StoreError: Not a run, or with ``run`` one that cannot be had again here or did not come to its end.
        UsageError: The second run would be the first one's directory, or the run had plug-ins that no option names.
    """
    view = load_run(directory)
    execution = replace(as_before(directory, options), output=output, attempt=_attempt(view, output) if run else 1)
    prepare_libraries(execution)
    check_device(execution.device)
    if save_spec is not None:
        write_text(save_spec, view.spec.to_yaml())
    again: Path | None = None
    files = 0
    difference: str | None = None
    with talking_on_stderr(), make_progress(execution.progress) as progress:
        registry = Registry(execution.include_paths)
        progress.phase("reading models and data")
        found = [*_specified(view.spec, execution, registry), *_around(view.manifest)]
        progress.close()
        if run:
            if decisive := [one.what for one in found if one.decides]:
                raise StoreError(f"{directory} cannot be run again here", f"not what it was: {', '.join(decisive)}")
            again = _run_again(view.spec, execution, registry, progress)
            difference, files = compared(again, directory)
    if json:
        second = {"second_run": str(again) if again is not None else None, "files_compared": files}
        mismatches = [_as_plain(one) for one in found]
        print_json({"run": str(directory), "not_matched": mismatches, **second, "difference": difference})
    else:
        _print(found, again, difference, files)
    return EXIT_FAILED if difference or any(one.decides for one in found) else EXIT_DONE


def _attempt(view: RunView, output: Path) -> int:
    """Which run of the specification below the output folder the second one is: one that was begun goes on.

    Raises:
        StoreError: The first run did not come to its end.
        UsageError: It lies below the output folder.
    """
    if view.status.get("state") not in ENDED:
        state = view.status.get("state", "unfinished")
        raise StoreError(f"{view.directory} is {state}", "there is no end to compare with", "cl-bench resume it first")
    attempt = next_attempt(output, view.spec)
    earlier = [run_path(output, view.spec, number) for number in range(1, attempt)]
    if view.directory.resolve() in {path.resolve() for path in earlier}:
        raise UsageError("the second run would lie beside the first", hint="name another folder with --output")
    unfinished = bool(earlier) and load_run(earlier[-1], verify=False).status.get("state") not in ENDED
    return attempt - 1 if unfinished else attempt


def _run_again(spec: RunSpec, execution: Execution, registry: Registry, progress: ClosingProgress) -> Path:
    """Carry a run out with an empty cache, which would answer with what the first run came to; its directory."""
    with TemporaryDirectory(prefix="cl-bench-cache-") as cache:
        (outcome,) = run_all([spec], replace(execution, cache=Path(cache)), registry, progress)
    assert outcome.result is not None
    return outcome.result.directory


def _specified(spec: Any, execution: Any, registry: Registry) -> Iterator[Mismatch]:
    from cl_bench.harness.resolve import changes

    try:
        changed = changes(spec, execution, registry)
    except ClBenchError as error:
        yield Mismatch("models, data and sources", "as the specification says", str(error).replace("\n", "; "), True)
        return
    for name in changed:
        yield Mismatch(name, "as the specification says", "another", True)


def _around(manifest: Mapping[str, Any]) -> Iterator[Mismatch]:
    """What may make other numbers although the specification is the same."""
    sessions, now = manifest.get("sessions") or [{}], _facts(environment())
    recorded = [_facts(session.get("environment", {})) for session in sessions]
    for name in dict.fromkeys([*now, *(name for facts in recorded for name in facts)]):
        # Each process that worked on the run may have had another.
        then = list(dict.fromkeys(facts.get(name, "not recorded") for facts in recorded))
        if then != [now.get(name, "not recorded")]:
            yield Mismatch(name, " and ".join(then), now.get(name, "not recorded"), False)


def _facts(found: Mapping[str, Any]) -> dict[str, str]:
    """What of an environment may make other numbers, as text by name."""
    facts = {name: found[name] for name in _ENVIRONMENT if name in found}
    facts |= {f"package {name}": version for name, version in sorted(found.get("packages", {}).items())}
    facts |= {f"hardware: {name}": value for name, value in found.get("hardware", {}).items() if name != "memory_bytes"}
    return {name: str(value) for name, value in facts.items()}


def _as_plain(one: Mismatch) -> dict[str, Any]:
    return {"what": one.what, "then": one.then, "now": one.now, "decides": one.decides}


def _print(found: list[Mismatch], again: Path | None, difference: str | None, compared: int) -> None:
    if not found:
        print("specification, models, data, sources, versions and hardware are what they were")
    for one in found:
        kind = "decides the result" if one.decides else "may change numbers"
        print(f"not matched ({kind}): {one.what}: {one.then} then, {one.now} now")
    if again is not None:
        print(f"the second run differs: {difference}" if difference else f"{compared} files are equal bit for bit")
        print(again)
