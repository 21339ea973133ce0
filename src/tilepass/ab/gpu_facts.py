"""What a result on a GPU depends on: the GPU, its driver and clocks, and the versions used."""

from __future__ import annotations

from typing import Any

from tilepass.ab.environment import versions
from tilepass.ab.nvml import NvmlClock
from tilepass.core.errors import TilepassError


def open_clock() -> tuple[NvmlClock | None, dict[str, str]]:
    """The clock of torch's first GPU and what NVML says of it; without NVML the facts say why."""
    try:
        clock = NvmlClock(str(_properties().uuid))
        return clock, clock.facts()
    except TilepassError as error:
        return None, {"clocks": f"not read: {error}"}


def gpu_facts(clock_facts: dict[str, str]) -> dict[str, str]:
    """Of torch's first GPU, by the names that reports use; `clock_facts` are from `open_clock`."""
    import torch

    properties = _properties()
    return {
        "GPU": str(properties.name),
        "SMs": str(properties.multi_processor_count),
        "L2, MB": f"{properties.L2_cache_size / 1e6:.0f}",
        "CUDA of torch": str(torch.version.cuda),
        **clock_facts,
        **versions(),
    }


def _properties() -> Any:
    import torch

    cuda: Any = torch.cuda
    return cuda.get_device_properties(0)
