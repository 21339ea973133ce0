"""The GPU as NVML describes it: its SM clock, and what the driver is."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, TypeVar

from tilepass.core.errors import TilepassError

T = TypeVar("T")


def load_nvml() -> Any:
    """The initialised nvidia-ml-py module. Raises TilepassError where there is no NVIDIA driver."""
    nvml: Any = importlib.import_module("pynvml")
    _call(nvml, nvml.nvmlInit)
    return nvml


def gpu_count() -> int:
    """NVIDIA GPUs of this machine; 0 where there is no driver."""
    try:
        nvml = load_nvml()
    except TilepassError:
        return 0
    return int(_call(nvml, nvml.nvmlDeviceGetCount))


class NvmlClock:
    """SM clock of the GPU with this UUID (as torch spells it, with or without `GPU-`)."""

    def __init__(self, uuid: str) -> None:
        self._nvml = load_nvml()
        full = uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"
        self._handle = _call(self._nvml, lambda: self._nvml.nvmlDeviceGetHandleByUUID(full))

    def read_mhz(self) -> float:
        """Implements `clocks.ClockSource`. Raises TilepassError when NVML fails."""
        kind = self._nvml.NVML_CLOCK_SM
        return float(
            _call(self._nvml, lambda: self._nvml.nvmlDeviceGetClockInfo(self._handle, kind))
        )

    def facts(self) -> dict[str, str]:
        """Driver version, the highest SM clock in MHz, and the power limit in W."""
        nvml, handle = self._nvml, self._handle
        driver = _call(nvml, nvml.nvmlSystemGetDriverVersion)
        most = _call(nvml, lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM))
        limit = _call(nvml, lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle))
        return {
            "driver": str(driver),
            "highest SM clock, MHz": str(most),
            "power limit, W": f"{limit / 1000:.0f}",
        }


def _call(nvml: Any, function: Callable[[], T]) -> T:
    try:
        return function()
    except nvml.NVMLError as error:
        raise TilepassError(f"NVML: {error}") from error
