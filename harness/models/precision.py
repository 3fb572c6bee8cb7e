"""Which numeric format to compute in, by size and device (fp32 master weights always)."""

from __future__ import annotations

from typing import Literal

import torch

_BF16_PAYS_FROM = 1_500_000
"""Parameters from which bf16 autocast is faster than fp32 on a CPU with bf16 units.

At 0.9 million, batches of ever new shapes cost it more than it saves: measured 37 s against 34 s of training over the
science sequence, at twice the memory.
"""


_CPU_UNITS = ("avx512_bf16", "amx_bf16", "bf16")
"""Names under which torch lists a CPU's bf16 units."""


def has_bf16_units(device: str) -> bool:
    """Whether a device multiplies bf16 matrices in hardware; a CPU without is far slower in bf16 than in fp32."""
    if device.split(":")[0] == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device != "cpu":
        return False
    found = torch.cpu.get_capabilities()
    return any(bool(found.get(name)) for name in _CPU_UNITS)


def training_format(
    choice: Literal["auto", "fp32", "bf16"], parameters: int, device: str = "cpu"
) -> Literal["fp32", "bf16"]:
    """Resolve ``auto``: bf16 autocast from 1.5 million parameters up on a device with bf16 units, else fp32."""
    if choice != "auto":
        return choice
    return "bf16" if parameters >= _BF16_PAYS_FROM and has_bf16_units(device) else "fp32"


def autocast_dtype(precision: Literal["fp32", "bf16"]) -> torch.dtype | None:
    """The autocast dtype, None for fp32."""
    return torch.bfloat16 if precision == "bf16" else None
