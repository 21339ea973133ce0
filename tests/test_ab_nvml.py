"""Reading clocks through NVML, with a stand-in for the driver."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from tilepass.ab.gpu import NvmlClock
from tilepass.core.errors import TilepassError
from tilepass.without_gpu.nvml import gpu_count


class NVMLError(Exception):
    """What nvidia-ml-py raises."""


def driver(**changes: Any) -> SimpleNamespace:
    """A module with the functions used here, of a machine with one GPU."""

    def handle(uuid: str) -> str:
        if uuid != "GPU-1234":
            raise NVMLError("Not Found")
        return uuid

    def clock(handle: str, kind: int) -> int:
        return 1755 if kind == 1 else 0

    def highest(handle: str, kind: int) -> int:
        return 1980

    def power(handle: str) -> int:
        return 700_000

    functions: dict[str, Any] = {
        "NVMLError": NVMLError,
        "NVML_CLOCK_SM": 1,
        "nvmlInit": lambda: None,
        "nvmlDeviceGetCount": lambda: 1,
        "nvmlDeviceGetHandleByUUID": handle,
        "nvmlDeviceGetClockInfo": clock,
        "nvmlDeviceGetMaxClockInfo": highest,
        "nvmlDeviceGetEnforcedPowerLimit": power,
        "nvmlSystemGetDriverVersion": lambda: "580.159.03",
    }
    return SimpleNamespace(**(functions | changes))


def fail(*_: Any) -> None:
    raise NVMLError("GPU is lost")


def test_clock_and_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", driver())
    clock = NvmlClock("1234")  # torch leaves the prefix out
    assert clock.read_mhz() == 1755
    assert clock.facts() == {
        "driver": "580.159.03",
        "highest SM clock, MHz": "1980",
        "power limit, W": "700",
    }
    assert gpu_count() == 1


def test_failures_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", driver(nvmlDeviceGetClockInfo=fail))
    with pytest.raises(TilepassError, match="NVML: GPU is lost"):
        NvmlClock("GPU-1234").read_mhz()
    with pytest.raises(TilepassError, match="NVML: Not Found"):
        NvmlClock("5678")


def test_no_driver_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", driver(nvmlInit=fail))
    assert gpu_count() == 0
