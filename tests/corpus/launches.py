"""Time of a warm launch on a GPU: with stock Triton, under a pipeline, and after it has been left.

Processes that never load tilepass stand for stock Triton; two of them, so that what one process
differs from another by is known. All processes live at the same time and measure in turns, one
block of launches each.
"""

from __future__ import annotations

import gc
import importlib
import multiprocessing
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from triton.runtime.driver import driver

from .memory import vector_add

PIPELINE = "flatten-loops"
_WARM_UP = 50
_KINDS = ("stock", "stock again", "enabled", "left")


@dataclass(frozen=True)
class Times:
    """Medians over the blocks of one set of processes, in us per launch.

    The others are differences from the stock block of the same turn; `inside` is that between
    enabled and left, which one process measured.
    """

    stock: float
    enabled: float
    left: float
    duplicate: float
    inside: float


class NoGpuError(Exception):
    """There is no GPU to launch on."""


def measure(turns: int, launches: int, *, stand_in: bool, seed: int) -> Times:
    """Start a set of processes and let each measure `turns` blocks of `launches` launches.

    With `stand_in` the driver launches nothing, for trying this without a GPU. Raises NoGpuError.
    """
    if not stand_in and not _has_gpu():
        raise NoGpuError("torch finds no CUDA GPU")
    order = random.Random(seed)
    blocks: dict[str, list[float]] = {kind: [] for kind in _KINDS}
    with ExitStack() as stack:
        workers = [_start(stack, stand_in, launches) for _ in range(3)]
        by_kind = dict(zip(_KINDS, (*workers, workers[2]), strict=True))
        for _ in range(turns):
            for kind in order.sample(_KINDS, len(_KINDS)):
                blocks[kind].append(_ask(by_kind[kind], kind))
    return Times(
        stock=statistics.median(blocks["stock"]),
        enabled=_difference(blocks["enabled"], blocks["stock"]),
        left=_difference(blocks["left"], blocks["stock"]),
        duplicate=_difference(blocks["stock again"], blocks["stock"]),
        inside=_difference(blocks["enabled"], blocks["left"]),
    )


def _difference(blocks: Sequence[float], others: Sequence[float]) -> float:
    return statistics.median(one - other for one, other in zip(blocks, others, strict=True))


def _start(stack: ExitStack, stand_in: bool, launches: int) -> Connection:
    here, there = multiprocessing.get_context("spawn").Pipe()
    start = multiprocessing.get_context("spawn").Process
    process = start(target=_work, args=(there, stand_in, launches), daemon=True)
    process.start()
    there.close()
    stack.callback(process.join)
    stack.callback(here.send, "")
    return here


def _ask(worker: Connection, kind: str) -> float:
    worker.send(kind)
    return worker.recv()


def _work(orders: Connection, stand_in: bool, launches: int) -> None:
    """What a process does: a block per order, until the order is empty."""
    launch, wait = _stand_in() if stand_in else _on_gpu()
    activation: Any = None
    while kind := orders.recv():
        with ExitStack() as stack:
            if kind == "enabled":
                activation = activation or _activation()
                stack.enter_context(activation)
            elif kind == "left":
                activation = activation or _activation()
                with activation:
                    launch()
            orders.send(_block(launch, wait, launches))
    if activation is None and "tilepass" in sys.modules:
        raise AssertionError("the process that stands for stock Triton has loaded tilepass")


def _activation() -> Any:
    from tilepass.activate import enabled

    return enabled(PIPELINE, remarks="none")


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
