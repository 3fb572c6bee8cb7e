"""Which numeric format to compute in, by size and device (fp32 master weights always)."""

from __future__ import annotations

from typing import Literal

import torch

_BF16_PAYS_FROM = 1_500_000
"""Parameters from which bf16 autocast is faster than fp32 on a CPU with bf16 units.

At 0.9 million, batches of ever new shapes cost it more than it saves: measured 37 s against 34 s of training over the
science sequence, at twice the memory.
"""


def training_format(choice: Literal["auto", "fp32", "bf16"], parameters: int) -> Literal["fp32", "bf16"]:
    """Resolve ``auto``: bf16 autocast from 1.5 million parameters up, else fp32."""
    if choice != "auto":
        return choice
    return "bf16" if parameters >= _BF16_PAYS_FROM else "fp32"


def autocast_dtype(precision: Literal["fp32", "bf16"]) -> torch.dtype | None:
    """The autocast dtype, None for fp32."""
    return torch.bfloat16 if precision == "bf16" else None
