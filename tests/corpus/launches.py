"""Time of a warm launch on a GPU, under a pipeline and after it has been left, in one process.

Two processes of the same program differ by more than a pipeline may add (1 us was seen), so stock
Triton is measured in the process itself: after a pipeline was left, when every function that a
launch runs through is the one that was there before tilepass was loaded. That is checked.
"""

from __future__ import annotations

import gc
import importlib
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from triton.runtime.driver import driver

from .memory import vector_add

PIPELINE = "flatten-loops"
_WARM_UP = 50
_LAUNCH_PATH = (
    "triton.compiler.compiler",
    "triton.runtime.autotuner",
    "triton.runtime.driver",
    "triton.runtime.jit",
)


@dataclass(frozen=True)
class Times:
    """Medians over the blocks, in us per launch.

    `stock` is a launch after the pipeline was left; `enabled` and `duplicate` are differences
    from it within a turn, of a block under the pipeline and of a second stock block.
    `left_over` names what differs from Triton's own functions after the pipeline was left.
    """

    stock: float
    enabled: float
    duplicate: float
    left_over: tuple[str, ...]


class NoGpuError(Exception):
    """There is no GPU to launch on."""


def measure(turns: int, launches: int, *, stand_in: bool, seed: int) -> Times:
    """Time `turns` blocks of `launches` launches of each kind, in random order within a turn.

    With `stand_in` the driver launches nothing, for trying this without a GPU. Raises NoGpuError.
    """
    if "tilepass.activate" in sys.modules:
        raise AssertionError("tilepass is loaded already: what is stock cannot be told")
    if not stand_in and not _has_gpu():
        raise NoGpuError("torch finds no CUDA GPU")
    launch, wait = _stand_in() if stand_in else _on_gpu()
    launch()
    before = _launch_path()
    enabled: Any = importlib.import_module("tilepass.activate").enabled
    activation = enabled(PIPELINE, remarks="none")
    order = random.Random(seed)
    blocks: dict[str, list[float]] = {"stock": [], "stock again": [], "enabled": []}
    for _ in range(turns):
        for kind in order.sample(list(blocks), len(blocks)):
            with ExitStack() as stack:
                if kind == "enabled":
                    stack.enter_context(activation)
                blocks[kind].append(_block(launch, wait, launches))
    after = _launch_path()
    return Times(
        stock=statistics.median(blocks["stock"]),
        enabled=_difference(blocks["enabled"], blocks["stock"]),
        duplicate=_difference(blocks["stock again"], blocks["stock"]),
        left_over=tuple(name for name in before if after.get(name) is not before[name]),
    )


def _difference(blocks: Sequence[float], others: Sequence[float]) -> float:
    return statistics.median(one - other for one, other in zip(blocks, others, strict=True))


def _launch_path() -> dict[str, object]:
    """All functions and classes of the modules that a launch runs through, methods included."""
    found: dict[str, object] = {}
    for module_name in _LAUNCH_PATH:
        module = importlib.import_module(module_name)
        for name, value in vars(module).items():
            if isinstance(value, type):
                members = {f"{module_name}.{name}.{key}": item for key, item in vars(value).items()}
                found |= {key: item for key, item in members.items() if callable(item)}
            if callable(value):
                found[f"{module_name}.{name}"] = value
    return found


def _block(launch: Callable[[], object], wait: Callable[[], object], launches: int) -> float:
    """Time of a launch in us: of the call alone, the GPU is waited for before and after."""
    for _ in range(_WARM_UP):
        launch()
    wait()
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter_ns()
        for _ in range(launches):
            launch()
        return (time.perf_counter_ns() - start) / launches / 1e3
    finally:
        gc.enable()
        wait()


def _on_gpu() -> tuple[Callable[[], object], Callable[[], object]]:
    """A launch of a kernel on a few elements, and a wait for all launches."""
    torch: Any = importlib.import_module("torch")
    kernel: Any = vector_add
    x, y, out = (torch.ones(1024, device="cuda") for _ in range(3))
    return lambda: kernel[(1,)](x, y, out, 1024, BLOCK=256), torch.cuda.synchronize


def _stand_in() -> tuple[Callable[[], object], Callable[[], object]]:
    from .stand_in import Driver, Pointer

    active: Any = driver
    active.set_active(Driver())
    kernel: Any = vector_add
    x = Pointer()
    return lambda: kernel[(1,)](x, x, x, 1024, BLOCK=256), lambda: None


def _has_gpu() -> bool:
    torch: Any = importlib.import_module("torch")
    return bool(torch.cuda.is_available())
