"""Headers of safetensors files: how many weights there are, and whether the file is whole, without reading them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from cl_bench.harness.errors import ModelError

_LONGEST_HEADER = 100_000_000  # bytes; the format's own limit
_MALFORMED = (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, ArithmeticError, RecursionError)


def stored_parameters(folder: Path) -> int:
    """Number of weights in a folder's safetensors files.

    Raises:
        ModelError: A file is not in safetensors format, or is shorter than its header says.
    """
    return sum(_weights(path) for path in sorted(folder.glob("*.safetensors")))


def _weights(path: Path) -> int:
    try:
        with path.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            if length > _LONGEST_HEADER:
                raise ValueError("its header's length is out of bounds")
            header: dict[str, Any] = json.loads(stream.read(length))
        entries = [entry for name, entry in header.items() if name != "__metadata__"]
        end = 8 + length + max((int(entry["data_offsets"][1]) for entry in entries), default=0)
        total = sum(math.prod(map(int, entry["shape"])) for entry in entries)
    except _MALFORMED as error:
        raise ModelError(f"{path} is not a safetensors file", why=str(error)) from error
    size = path.stat().st_size
    if size < end:
        raise ModelError(f"{path} is cut off", f"it has {size} bytes, its header speaks of {end}", "copy it again")
    return total
