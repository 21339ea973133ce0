"""`warp-specialize-legality` against what upstream does: compiled, and executed on the CPU."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Literal

import pytest
from sim_kernels import Simulated, simulated
from triton.backends.compiler import GPUTarget

from tests.legality_points import Point, judge_apart
from tilepass.activate import enabled
from tilepass.core.errors import TilepassError
from tilepass.core.versions import triton_version
from tilepass.kernels import get_workload

Outcome = Literal["ignores", "fails on", "miscompiles", "works on"]

KERNEL, SHAPE, HOPPER = "persistent_matmul", (128, 128, 64), GPUTarget("cuda", 90, 32)
TRITON = triton_version().version
TILE: dict[str, Any] = {
    "flatten": False,
    "specialize": True,
    "block_n": 128,
    "num_warps": 4,
    "programs": 1,
}
DEVICE = {"descriptors": "device"}
POINTER = {"store": "pointer"}
SHARED_MEMORY = 232448

CASES: list[tuple[dict[str, Any], Outcome]] = [
    (DEVICE, "works on"),
    ({**DEVICE, "block_m": 64}, "works on"),
    ({**DEVICE, **POINTER}, "miscompiles"),
    ({**DEVICE, "num_warps": 8}, "ignores"),
    ({**DEVICE, "flatten": True}, "ignores"),
    ({**DEVICE, "num_stages": 1}, "works on" if TRITON < (3, 7) else "ignores"),
    ({**DEVICE, "block_m": 64, "block_n": 256}, "fails on"),
    ({**DEVICE, "block_n": 256, "num_stages": 4}, "fails on"),
    ({}, "fails on"),
    (POINTER, "miscompiles" if TRITON < (3, 7) else "fails on"),
]


def compiled(fields: dict[str, Any], mode: str) -> tuple[Any, str]:
    """The kernel, None where it does not compile; and what the pass says."""
    workload = get_workload(KERNEL)
    config = workload.config_for(SHAPE, **{**TILE, **fields})
    kernel = None
    pipeline = f"warp-specialize-legality{{mode={mode}}}"
    with enabled(pipeline, remarks="none") as session, suppress(TilepassError):
        kernel = workload.compile(config, HOPPER)
    return kernel, "; ".join(remark.message for remark in session.remarks)


def what_happens(kernel: Any, fields: dict[str, Any]) -> Outcome:
    """What a compilation came to; values are computed by the simulator."""
    if kernel is None or kernel.metadata.shared > SHARED_MEMORY:
        return "fails on"
    if "ttg.warp_specialize(" not in kernel.asm["ttgir"]:
        return "ignores"
    plain = simulated(KERNEL, SHAPE, **{**TILE, **fields, "specialize": False})
    run = Simulated(plain.workload, plain.inputs, plain.launch, {"ttgir": kernel.asm["ttgir"]})
    try:
        run.run("ttgir")
    except TilepassError:  # a box that does not fit its buffer
        return "miscompiles"
    return "works on" if run.problem() is None else "miscompiles"


@pytest.mark.parametrize(("fields", "outcome"), CASES)
def test_the_verdict_is_what_happens(fields: dict[str, Any], outcome: Outcome) -> None:
    kernel, said = compiled(fields, "report")
    assert what_happens(kernel, fields) == outcome
    assert f"upstream {outcome} this loop" in said


POINTS: list[tuple[Point, Outcome]] = [
    (Point("kernel", "fp8e4nv"), "works on"),
    (Point("kernel", "fp8e4nv", b_k_major=False), "fails on"),
    (Point("persistent", "i8", a_k_major=False), "fails on"),
    (Point("kernel", "fp32", a_k_major=False, tile=(64, 64, 32)), "fails on"),
    # There is nothing to cut, and so nothing against a descriptor of the host but this.
    (Point("host", "i8", b_k_major=False, tile=(64, 64, 32)), "fails on"),
    (Point("kernel", "bf16", a_k_major=False, b_k_major=False), "works on"),
    # Cut along N: the instruction for integers has 128 columns, that for others all 256.
    (Point("kernel", "i8", tile=(64, 256, 64)), "works on"),
    (Point("kernel", "fp8e5", tile=(64, 256, 64)), "fails on"),
]


@pytest.mark.parametrize(("point", "outcome"), POINTS, ids=str)
def test_element_types_and_orders_of_operands(point: Point, outcome: Outcome) -> None:
    """All of them: scripts/legality_sweep.py."""
    judged = judge_apart(point)
    assert judged.outcome == outcome
    assert judged.agrees, judged.said


@pytest.mark.parametrize(
    "fields", [each for each, kind in CASES if kind in ("fails on", "miscompiles")]
)
def test_the_guard_keeps_upstream_from_it(fields: dict[str, Any]) -> None:
    kernel, said = compiled(fields, "guard")
    assert "removed tt.warp_specialize: the loop is compiled without" in said
    assert kernel is not None
    assert "ttg.warp_specialize(" not in kernel.asm["ttgir"]
