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

from tilepass.core.pass_base import Target
from tilepass.frontends.triton.targets import gpu_target

SHARED_BYTES = 1 << 30
"""What the driver says a CTA may have: whether a kernel fits is for the figures to tell."""


@contextmanager
def compile_only(arch: int) -> Generator[None]:
    """In the block, Triton launches compile for sm_`arch` and do nothing else."""
    driver: Any = importlib.import_module("triton.runtime.driver").driver
    compiler: Any = importlib.import_module("triton.compiler.compiler")
    before = driver._active
    compiler.max_shared_mem.cache_clear()
    driver.set_active(_Driver(arch))
    try:
        yield
    finally:
        driver._active = before
        compiler.max_shared_mem.cache_clear()


class _Utils:
    """What Triton asks of a driver's native module, without one."""

    def __init__(self) -> None:
        self._handles = itertools.count(1)

    def get_device_properties(self, device: int) -> dict[str, int]:
        return {"max_shared_mem": SHARED_BYTES, "multiprocessor_count": 1, "warpSize": 32}

    def load_binary(
        self, name: str, binary: bytes, shared: int, device: int
    ) -> tuple[None, int, int, int, int]:
        """Module, function, registers, spills, threads per CTA at most.

        No module: Triton then has none to unload when the kernel is collected, which it would do
        through whatever driver is active by then. The function's handle is unique.
        """
        return None, next(self._handles), 0, 0, 1024


class _Launcher:
    """Calls the hooks that a launch calls, and returns."""

    def __init__(self, source: object, metadata: object) -> None:
        pass

    def __call__(self, *arguments: Any) -> None:
        # grid x, y, z, stream, function, packed metadata, launch metadata, enter and exit hook.
        launch_metadata, enter = arguments[6], arguments[7]
        if enter is not None and launch_metadata is not None:
            enter(launch_metadata)


class _Driver:
    """The parts of Triton's driver interface that compiling and launching use."""

    launcher_cls = _Launcher

    def __init__(self, arch: int) -> None:
        self._arch = arch
        self.utils = _Utils()

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        return None

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_current_target(self) -> Any:
        return gpu_target(Target("cuda", self._arch))

    def get_benchmarker(self) -> Callable[..., list[float]]:
        """An autotuner's candidates all take as long here: it keeps the first."""

        def benchmark(
            kernel_call: Callable[[], object], *, quantiles: list[float] | None = None, **_: object
        ) -> list[float]:
            kernel_call()
            return [1.0] * len(quantiles or [0.5])

        return benchmark
