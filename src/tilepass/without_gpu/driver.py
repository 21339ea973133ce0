"""A driver for Triton that compiles for a named GPU and launches nothing.

With it a program's own launch code runs on a machine without a GPU, as far as the launch: each
kernel is specialised on the real arguments and compiled to a binary.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from tilepass.binary.elf import code_hash, registers
from tilepass.core.pass_base import Target
from tilepass.frontends.triton.targets import gpu_target
from tilepass.without_gpu.devices import device_of

UNLIMITED = 1 << 30
"""Bytes of shared memory for who wants to see figures of kernels that do not fit, too."""


@contextmanager
def compile_only(target: Target) -> Generator[None]:
    """In the block, Triton launches compile for the target and do nothing else.

    Kernels may have any amount of shared memory: whether one fits is for its figures to tell.
    """
    driver: Any = importlib.import_module("triton.runtime.driver").driver
    compiler: Any = importlib.import_module("triton.compiler.compiler")
    before = driver._active
    compiler.max_shared_mem.cache_clear()
    driver.set_active(Driver(target, UNLIMITED))
    try:
        yield
    finally:
        driver._active = before
        compiler.max_shared_mem.cache_clear()


class _Utils:
    """What Triton asks of a driver's native module, without one."""

    def __init__(self, target: Target, shared_bytes: int, loaded: dict[str, str]) -> None:
        self._device = device_of(target)
        self._warp_size = target.warp_size
        self._shared_bytes = shared_bytes
        self._loaded = loaded
        self._handles = itertools.count(1)

    def get_device_properties(self, device: int) -> dict[str, int]:
        return {
            "max_shared_mem": self._shared_bytes,
            "max_num_regs": self._device.registers,
            "multiprocessor_count": self._device.processors,
            "warpSize": self._warp_size,
        }

    def load_binary(
        self, name: str, binary: bytes, shared: int, device: int
    ) -> tuple[None, int, int, int, int]:
        """Module, function, registers, spills, threads per CTA at most.

        No module: Triton then has none to unload when the kernel is collected, which it would do
        through whatever driver is active by then. The function's handle is unique.
        """
        self._loaded[code_hash(binary)] = name
        return None, next(self._handles), registers(binary), 0, 1024


class Driver:
    """The parts of Triton's driver interface that compiling and launching use.

    `loaded` has the names of kernels by the hash of their code; `launches` counts.
    """

    def __init__(self, target: Target, shared_bytes: int) -> None:
        self.target = target
        self.loaded: dict[str, str] = {}
        self.launches = 0
        self.utils = _Utils(target, shared_bytes, self.loaded)

    def launcher_cls(self, source: object, metadata: object) -> Callable[..., None]:
        """A launcher that calls the hooks that a launch calls, and returns."""

        def launch(*arguments: Any) -> None:
            # grid x, y, z, stream, function, packed metadata, launch metadata, enter and exit hook.
            self.launches += 1
            launch_metadata, enter = arguments[6], arguments[7]
            if enter is not None and launch_metadata is not None:
                enter(launch_metadata)

        return launch

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        return None

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        arch = self.target.arch
        return divmod(arch, 10) if isinstance(arch, int) else (9, 4)

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_current_target(self) -> Any:
        return gpu_target(self.target)

    def get_active_torch_device(self) -> Any:
        return importlib.import_module("torch").device("cuda", 0)

    def get_device_interface(self) -> Any:
        return importlib.import_module("torch").cuda

    def get_empty_cache_for_benchmark(self) -> Any:
        return importlib.import_module("torch").empty(1)

    def clear_cache(self, cache: Any) -> None:
        return None

    def map_python_to_cpp_type(self, kind: str) -> str:
        backend = "nvidia" if self.target.backend == "cuda" else "amd"
        module: Any = importlib.import_module(f"triton.backends.{backend}.driver")
        return module.ty_to_cpp(kind)

    def get_benchmarker(self) -> Callable[..., list[float]]:
        """An autotuner's candidates all take as long here: it keeps the first."""

        def benchmark(
            kernel_call: Callable[[], object], *, quantiles: list[float] | None = None, **_: object
        ) -> list[float]:
            kernel_call()
            return [1.0] * len(quantiles or [0.5])

        return benchmark
