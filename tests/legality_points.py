"""Kernels that ask for warp specialization, over element types, orders of operands and tiles: what
`warp-specialize-legality` says of each, and what Triton makes of it."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import triton
from triton import language
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from tests import legality_kernels
from tilepass.activate import enabled

_SHARED_MEMORY = 232448
TYPES = ("bf16", "fp16", "i8", "fp8e4nv", "fp8e5", "fp32")
_TILES = (
    (64, 64, 32), (128, 128, 64), (128, 64, 128), (64, 256, 64), (128, 256, 32), (256, 128, 64),
    (128, 32, 64), (64, 128, 128),
)  # fmt: skip

_KERNELS: dict[str, Any] = {
    "kernel": legality_kernels.in_kernel,
    "host": legality_kernels.by_host,
    "persistent": legality_kernels.persistent,
}


@dataclass(frozen=True)
class Point:
    """A kernel, the element type of A and B, whether each is K-major, tile, warps."""

    kernel: str = "kernel"
    element: str = "fp8e4nv"
    a_k_major: bool = True
    b_k_major: bool = True
    tile: tuple[int, int, int] = (128, 128, 64)
    warps: int = 4

    def source(self) -> Any:
        """What Triton compiles."""
        m, n, k = self.tile
        total = "i32" if self.element == "i8" else "fp32"
        if self.kernel == "host":
            a = (m, k) if self.a_k_major else (k, m)
            b = (n, k) if self.b_k_major else (k, n)
            types = [_descriptor(self.element, *a), _descriptor(self.element, *b)]
            types.append(_descriptor(total, m, n))
        else:
            types = [f"*{self.element}", f"*{self.element}", f"*{total}"]
        names = dict(zip("abc", types, strict=True))
        values: dict[str, Any] = {"BM": m, "BN": n, "BK": k}
        values |= {"A_K": self.a_k_major, "B_K": self.b_k_major}
        values["SUM"] = getattr(language, "int32" if self.element == "i8" else "float32")
        signature = names | dict.fromkeys("MNK", "i32") | dict.fromkeys(values, "constexpr")
        divisible = range(3, 6) if self.kernel == "host" else range(6)
        attributes = {(index,): [["tt.divisibility", 16]] for index in divisible}
        return ASTSource(_KERNELS[self.kernel], signature, values, attributes)


def _descriptor(element: str, rows: int, columns: int) -> str:
    return f"tensordesc<{element}[{rows},{columns}]>"


def points() -> Iterator[Point]:
    """All of the sweep."""
    orders = list(itertools.product((True, False), repeat=2))
    for kernel, element, (a, b), tile in itertools.product(_KERNELS, TYPES, orders, _TILES):
        yield Point(kernel, element, a, b, tile)
        if tile == (128, 64, 128) and a:
            yield Point(kernel, element, a, b, tile, 8)


@dataclass
class Judged:
    """What the pass says of a point, and what Triton makes of it: `works on`, `ignores`,
    `fails on`."""

    said: str = ""
    outcome: str = "fails on"

    @property
    def agrees(self) -> bool:
        return f"upstream {self.outcome} this loop" in self.said


def judge(point: Point, hear: Any = None) -> Judged:
    """Compile a point to the end of llir; `hear` is given what the pass says at once, for points
    at which Triton ends the process."""
    judged = Judged()
    with enabled("warp-specialize-legality", remarks="none") as session:
        keep = session.hear

        def heard(remark: Any) -> None:
            keep(remark)
            judged.said = remark.message
            if hear is not None:
                hear(judged)

        session.hear = heard
        try:
            kernel = triton.compile(
                point.source(),
                target=GPUTarget("cuda", 90, 32),
                options={"num_warps": point.warps, "num_stages": 3},
            )
        except Exception:
            return judged
    if "ttg.warp_specialize(" not in kernel.asm["ttgir"]:
        judged.outcome = "ignores"
    elif kernel.metadata.shared <= _SHARED_MEMORY:
        judged.outcome = "works on"
    return judged


def judge_apart(point: Point) -> Judged:
    """The same in its own process, without a word."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)

            def tell(judged: Judged) -> None:
                os.write(write, f"{json.dumps(asdict(judged))}\n".encode())

            tell(judge(point, tell))
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as lines:
        told = lines.read().splitlines()
    os.waitpid(child, 0)
    return Judged(**json.loads(told[-1])) if told else Judged()
