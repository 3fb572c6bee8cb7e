"""``cl-bench env``: versions, threads, cache and device, for reports of faults and of numbers."""

from __future__ import annotations

import os
from typing import Any

from cl_bench.harness.commands.execution import print_json


def env_command(json: bool) -> int:
    """Print what may explain a difference between machines."""
    content = environment_report()
    if json:
        print_json(content)
        return 0
    for key, value in content.items():
        if isinstance(value, dict):
            print(f"{key}:")
            for name, item in value.items():
                print(f"  {name + ':':<22}{item if item is not None else '-'}")
        else:
            print(f"{key + ':':<24}{value if value is not None else '-'}")
    return 0


def environment_report() -> dict[str, Any]:
    """Versions, platform, torch's threads and devices, cache folder, and our environment variables."""
    import torch

    from cl_bench import __version__
    from cl_bench.harness.cache import cache_root
    from cl_bench.harness.cache_contents import kinds
    from cl_bench.harness.manifest import environment
    from cl_bench.harness.sizes import size_text

    cuda = torch.cuda.is_available()
    return {
        "cl-bench": __version__,
        **environment(),
        "device": torch.cuda.get_device_name(0) if cuda else "cpu",
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "cache": str(cache_root()),
        "cache_sizes": {kind.name: size_text(kind.size) for kind in kinds(cache_root())},
        "variables": {
            name: value
            for name, value in sorted(os.environ.items())
            if name.startswith(("CL_BENCH_", "HF_HUB_", "HF_HOME", "HF_DATASETS_", "OMP_NUM_THREADS"))
            and "TOKEN" not in name
        },
    }
