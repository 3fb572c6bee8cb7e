"""Options that several commands share, and how every command group is set up."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cl_bench.harness.cli_group import SuggestingGroup

GROUP_SETTINGS: dict[str, Any] = {
    "cls": SuggestingGroup,
    "no_args_is_help": True,
    "rich_markup_mode": None,  # with it, --help imports rich and takes twice as long
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}

Json = Annotated[bool, typer.Option("--json", help="Print exactly one line of JSON to stdout.")]
Output = Annotated[Path, typer.Option("--output", help="Folder below which run directories are made.")]
DataRoot = Annotated[
    Path | None, typer.Option("--data-root", help="Folder with the data sets: DIR/<owner>/<name>, or flat JSONL files.")
]
IncludePath = Annotated[
    list[Path] | None,
    typer.Option("--include-path", help="Folder with your own methods, tasks, sequences or suites; repeatable."),
]
Offline = Annotated[bool, typer.Option("--offline", help="Never reach for the network.")]
Threads = Annotated[int | None, typer.Option("--threads", min=1, help="CPU threads.")]
RunDevice = Annotated[str | None, typer.Option("--device", help="Torch device; by default the run's own.")]
RunThreads = Annotated[int | None, typer.Option("--threads", min=1, help="CPU threads; by default the run's own.")]
Device = Annotated[str, typer.Option("--device", help="Torch device.")]
CheckpointEvery = Annotated[
    str, typer.Option("--checkpoint-every", help='Checkpoints within a stage: "60s", "200steps" or "never".')
]
Keep = Annotated[str, typer.Option("--keep-checkpoints", help="Weights of finished stages to keep: all, last or none.")]
AllowCode = Annotated[
    bool | None,
    typer.Option(
        "--allow-code-execution/--no-code-execution",
        help="Run programs that the model wrote to score them, or leave such benchmarks out.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
