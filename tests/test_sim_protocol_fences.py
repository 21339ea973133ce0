"""Fences before dots: asked for where Triton has inserted what it inserts, not before."""

from __future__ import annotations

import pytest

from tests.protocol_support import module_of
from tests.sim_kernels import simulated
from tilepass.frontends.triton import bridge
from tilepass.sim.protocol_check import ProtocolError, check_protocol

NOTE = "in IR from before triton-nvidia-gpu-fence-insertion this is not a mistake"
TO_COME = "which triton-nvidia-gpu-fence-insertion has yet to insert"

# What a register holds goes through shared memory into a dot.
KERNEL = """
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!buffer = !ttg.memdesc<64x64xf16, #shared, #smem>
!tile = tensor<64x64xf16, #blocked>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @kernel(%p: !tt.ptr<f16>, %n: i32) {
    %one = arith.constant 1 : i32
    %step = arith.constant 1 : i64
    %sum = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %tile = arith.constant dense<0.0> : !tile
    %buffer = ttg.local_alloc %tile : (!tile) -> !buffer
    FENCE
    %product = ttng.warp_group_dot %buffer, %buffer, %sum {inputPrecision = 0 : i32} : !buffer * !buffer -> tensor<64x64xf32, #mma>
    tt.return
  }
}
"""  # noqa: E501


def test_a_fence_in_its_place() -> None:
    fence = "ttng.fence_async_shared {bCluster = false}"
    said = check_protocol(module_of(KERNEL.replace("FENCE", fence)))
    assert said is not None
    assert TO_COME not in said


def test_a_missing_fence_is_reported_with_what_may_be_the_reason() -> None:
    with pytest.raises(ProtocolError, match="missing fence") as caught:
        check_protocol(module_of(KERNEL.replace("FENCE", "")))
    assert NOTE in str(caught.value)


def test_no_form_of_a_kernel_is_blamed_for_fences_to_come() -> None:
    kernel = simulated("matmul", (144, 272, 80), 90, every_pass=True)
    saids = [
        check_protocol(bridge.to_engine(bridge.load(text, "kernel.mlir")), shapes=["128"])
        for text in kernel.texts.values()
    ]
    checked = [said for said in saids if said]
    without_fences = [TO_COME in said for said in checked]
    assert without_fences[0]
    assert not without_fences[-1]
    assert without_fences == sorted(without_fences, reverse=True)
