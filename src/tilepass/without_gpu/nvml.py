"""Whether this machine has a GPU, by NVIDIA's management library and AMD's device."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from tilepass.core.errors import TilepassError

T = TypeVar("T")


def load_nvml() -> Any:
    """The initialised nvidia-ml-py module. Raises TilepassError where there is no NVIDIA driver."""
    nvml: Any = importlib.import_module("pynvml")
    call(nvml, nvml.nvmlInit)
    return nvml


def gpu_count() -> int:
    """NVIDIA GPUs of this machine; 0 where there is no driver."""
    try:
        nvml = load_nvml()
    except TilepassError:
        return 0
    return int(call(nvml, nvml.nvmlDeviceGetCount))


def is_gpu_there() -> bool:
    """Whether there is a GPU of NVIDIA's or AMD's."""
    return gpu_count() > 0 or Path("/dev/kfd").exists()


def call(nvml: Any, function: Callable[[], T]) -> T:
    """What a function of NVML returns. Raises TilepassError for its errors."""
    try:
        return function()
    except nvml.NVMLError as error:
        raise TilepassError(f"NVML: {error}") from error
