"""What stopped a run, as an error for people."""

from __future__ import annotations

import errno

from cl_bench.harness.cli_errors import of_the_system
from cl_bench.harness.errors import ClBenchError, UsageError
from cl_bench.harness.spec import RunSpec


def run_error(error: Exception, spec: RunSpec, begun: bool, resume: str) -> Exception:
    """The error to report for one that stopped a run; the error itself where it says enough or is a fault.

    Args:
        error: What was raised.
        spec: The run.
        begun: Whether the run has a finished row.
        resume: The command that goes on with the run.
    """
    if out_of_memory(error):
        return ClBenchError(f"out of memory: {_first_line(error)}", _sizes(spec), _LESS_MEMORY)
    refused = of_the_system(error)
    if refused is not None:
        return ClBenchError(refused.what, refused.why, f"{refused.hint}; then {resume}")
    if isinstance(error, UsageError) and begun:
        # Its exit code says that nothing was done.
        return ClBenchError(error.what, error.why, error.hint)
    return error


def reason_of(error: Exception) -> str:
    """A line for ``status.json``."""
    return error.what if isinstance(error, ClBenchError) else f"{type(error).__name__}: {_first_line(error)}"


def out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out, on a device or on the machine."""
    import torch

    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    # torch has no kind of its own for the machine's memory; the words depend on the system.
    words = ("not enough memory", "can't allocate memory", "Cannot allocate memory")
    return isinstance(error, RuntimeError) and any(found in str(error) for found in words)


_LESS_MEMORY = (
    "lower precision.micro_batch_size (method.batch_size stays: gradients are accumulated), "
    "precision.generation_batch_size or evaluation.batch_size, or choose bf16; what is finished is kept, and the same "
    "specification goes on from there"
)


def _sizes(spec: RunSpec) -> str:
    precision = spec.precision
    return (
        f"micro-batch {precision.micro_batch_size}, generation batch {precision.generation_batch_size}, "
        f"evaluation batch {spec.evaluation_batch_size}, training in {precision.training}, "
        f"generation in {precision.generation}"
    )


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
