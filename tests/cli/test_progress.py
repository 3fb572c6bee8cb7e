"""Progress: plain lines off a terminal, bars on one, nothing when quiet; warnings always."""

from __future__ import annotations

import io

import pytest

from cl_bench.harness import progress as module
from cl_bench.harness.progress import BarProgress, PlainProgress, SilentProgress, make_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def work(progress: module.ClosingProgress) -> None:
    with progress:
        progress.phase("train chemistry", 3)
        progress.advance(loss=2.0)
        progress.advance(2, loss=0.5)
        progress.note("two rows [skipped]")
        progress.phase("report")


def test_plain_lines() -> None:
    stream = io.StringIO()
    work(make_progress(True, stream))
    note, train, report = stream.getvalue().splitlines()
    assert note == "two rows [skipped]"
    assert train.startswith("train chemistry")
    assert "3/3" in train
    assert train.endswith("loss=0.5")
    assert report.startswith("report")


def test_a_long_phase_says_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(module, "monotonic", lambda: now)
    stream = io.StringIO()
    progress = PlainProgress(stream)
    progress.phase("train", 100)
    for step in range(40):
        now = float(step)
        progress.advance()
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2
    assert all(line.endswith("...") for line in lines)


def test_bars_keep_finished_phases_as_lines() -> None:
    stream = Terminal()
    progress = make_progress(True, stream)
    assert isinstance(progress, BarProgress)
    work(progress)
    assert "two rows [skipped]" in stream.getvalue()
    assert "3/3" in stream.getvalue()


def test_quiet_shows_warnings_alone() -> None:
    stream = io.StringIO()
    progress = make_progress(False, stream)
    assert isinstance(progress, SilentProgress)
    work(progress)
    assert stream.getvalue() == "two rows [skipped]\n"
