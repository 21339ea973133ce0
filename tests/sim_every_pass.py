"""Kernels to be executed after every pass of Triton: the cases, and those that it specializes.

`check` runs the cases marked as quick; `scripts/simulate_kernels.py` all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from tests.sim_kernels import simulated, texts_of_passes
from tests.specialized_kernels import source_of
from tilepass.frontends.triton import bridge
from tilepass.kernels import workload_names
from tilepass.sim.compiler import Program
from tilepass.sim.values import run

PERSISTENT, SHAPE = "persistent_matmul_triton", (144, 272, 80)
SMALL: dict[str, Any] = {"block_n": 128, "programs": 3}
ARCHITECTURES = (80, 90, 100)


@dataclass(frozen=True)
class Case:
    """A kernel of tilepass on a target."""

    kernel: str
    shape: tuple[int, ...]
    arch: int = 90
    fields: dict[str, Any] = field(default_factory=dict[str, Any])

    def __str__(self) -> str:
        fields = [f"{name}={value}" for name, value in self.fields.items()]
        return "-".join([self.kernel, "x".join(map(str, self.shape)), f"sm{self.arch}", *fields])

    def run(self) -> tuple[int, str | None]:
        """(the forms executed, what is wrong with the first wrong one)."""
        kernel = simulated(self.kernel, self.shape, self.arch, every_pass=True, **self.fields)
        return len(kernel.texts), kernel.disagreement()


QUICK = (
    Case(PERSISTENT, SHAPE, 90, SMALL),
    Case(PERSISTENT, SHAPE, 80, SMALL),
    Case(PERSISTENT, SHAPE, 90, {**SMALL, "descriptors": "device", "epilogue": "residual"}),
    Case("attention_triton", (1, 1, 256, 64), 90),
    Case("mxfp4_matmul_triton", (64, 256, 256), 90),
    Case("grouped_matmul_triton", (2, 128, 128, 128), 90),
    Case("matmul_triton", (144, 272, 80), 100),
    Case("softmax_triton", (17, 512), 80),
    Case(
        "persistent_matmul_epilogues_triton", (144, 144, 80), 90,
        {"block_n": 64, "programs": 2, "keep_product": True, "epilogue": "bias_gelu"},
    ),
)  # fmt: skip


def all_cases() -> Iterator[Case]:
    """Every kernel of tilepass and every variant of the persistent matmul, on every target."""
    variants: list[dict[str, Any]] = [
        SMALL,
        {**SMALL, "flatten": False, "epilogue": "bias"},
        {**SMALL, "epilogue": "bias_gelu"},
        {**SMALL, "epilogue": "residual", "descriptors": "device"},
        {**SMALL, "store": "pointer", "dtype": "fp16"},
        {**SMALL, "dtype": "fp8e4m3"},
    ]
    for arch in ARCHITECTURES:
        shown = {case.kernel: case for case in QUICK}
        yield Case(PERSISTENT, (160, 272, 0), arch, SMALL)
        yield from (
            Case(PERSISTENT, (160, 272, 112), arch, fields)
            for fields in variants
            # fp8 e4m3 is a type of sm_89 and later.
            if fields.get("dtype") != "fp8e4m3" or arch > 80
        )
        for name in workload_names():
            if name != PERSISTENT:
                case = shown[name]
                yield Case(name, case.shape, arch, case.fields)


@dataclass(frozen=True)
class Specialized:
    """A persistent matmul that Triton specializes."""

    arch: int
    pointer_store: bool = False

    def __str__(self) -> str:
        return f"specialized-{'pointer' if self.pointer_store else 'tma'}-sm{self.arch}"

    def run(self) -> tuple[list[str], list[str]]:
        """(the names of the forms executed, those of the wrong ones)."""
        source = source_of(pointer_store=self.pointer_store, flatten=self.arch >= 100)
        texts = texts_of_passes(source, {"num_warps": 4}, self.arch)
        wrong = [name for name, text in texts.items() if not self._is_right(text)]
        assert any("ttg.warp_specialize" in text for text in texts.values())
        return list(texts), wrong

    def _is_right(self, text: str) -> bool:
        rows, columns, depth = 256, 256, 192
        random = np.random.default_rng(0)
        a = random.uniform(-1, 1, (rows, depth)).astype(ml_dtypes.bfloat16)
        b = random.uniform(-1, 1, (columns, depth)).astype(ml_dtypes.bfloat16)
        c = np.zeros((rows, columns), ml_dtypes.bfloat16)
        arguments = {"a_ptr": a, "b_ptr": b, "c_ptr": c, "M": rows, "N": columns, "K": depth}
        run(Program(bridge.to_engine(bridge.load(text, "kernel.mlir"))), arguments, (2,))
        expected = a.astype(np.float32) @ b.astype(np.float32).T
        # Half a unit in the last place of bf16, and the order of the sum.
        return bool(np.allclose(c.astype(np.float32), expected, rtol=2**-8, atol=1e-4))
