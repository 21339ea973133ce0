"""What a result on a GPU depends on: the GPU, its driver and clocks, and the versions used."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from typing import Any

import tilepass
from tilepass.core.errors import TilepassError
from tilepass.without_gpu.nvml import call, load_nvml


class NvmlClock:
    """SM clock of the GPU with this UUID (as torch spells it, with or without `GPU-`)."""

    def __init__(self, uuid: str) -> None:
        self._nvml = load_nvml()
        full = uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"
        self._handle = call(self._nvml, lambda: self._nvml.nvmlDeviceGetHandleByUUID(full))

    def read_mhz(self) -> float:
        """Implements `clocks.ClockSource`. Raises TilepassError when NVML fails."""
        kind = self._nvml.NVML_CLOCK_SM
        return float(
            call(self._nvml, lambda: self._nvml.nvmlDeviceGetClockInfo(self._handle, kind))
        )

    def facts(self) -> dict[str, str]:
        """Driver version, the highest SM clock in MHz, and the power limit in W."""
        nvml, handle = self._nvml, self._handle
        driver = call(nvml, nvml.nvmlSystemGetDriverVersion)
        most = call(nvml, lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM))
        limit = call(nvml, lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle))
        return {
            "driver": str(driver),
            "highest SM clock, MHz": str(most),
            "power limit, W": f"{limit / 1000:.0f}",
        }


_PACKAGES = ("triton", "torch", "nvidia-cutlass-dsl", "numpy")
_VARIABLES = ("TRITON_DEFAULT_FP_FUSION", "TRITON_PTXAS_PATH", "CUDA_VISIBLE_DEVICES")


def versions() -> dict[str, str]:
    """Versions of Python and of the packages involved, and the variables that change a binary."""
    found = {"Python": platform.python_version(), "tilepass": tilepass.__version__}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    found.update({name: os.environ[name] for name in _VARIABLES if name in os.environ})
    return found


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
