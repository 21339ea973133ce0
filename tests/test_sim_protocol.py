"""The asynchronous protocol: correct kernels, all kinds of mistakes, what cannot be followed."""

from __future__ import annotations

import pytest

from tests.protocol_explore import explore
from tests.protocol_support import INPUTS, SCHEMES, STAGES, TILES, load, module_of, problem
from tilepass.core.versions import triton_version
from tilepass.ir import engine
from tilepass.ir.loops import defining_operation
from tilepass.kernels.emit_ir import emit
from tilepass.sim.faults import UnsupportedOperationsError
from tilepass.sim.inputs import Shapes
from tilepass.sim.protocol.check import find
from tilepass.sim.protocol.compiler import ProtocolProgram, record
from tilepass.sim.protocol.problems import Problem
from tilepass.sim.protocol.recorder import CannotFollow
from tilepass.sim.protocol_check import ProtocolError, check_protocol

_HEADER = """
#barrier = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
!mbar = !ttg.memdesc<1xi64, #barrier, #smem, mutable>
!ring = !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>
!buffer = !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
!part = !ttg.memdesc<64x16xf16, #shared, #smem, mutable, 64x64>
!tile = tensor<64x64xf16, #blocked>
!strip = tensor<64x16xf16, #blocked>
!pointers = tensor<64x64x!tt.ptr<f16>, #blocked>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @kernel(%p: !tt.ptr<f16>, %n: i32) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %tile = arith.constant dense<0.0> : !tile
    %strip = arith.constant dense<0.0> : !strip
    %where = tt.splat %p : !tt.ptr<f16> -> !pointers
"""  # noqa: E501
_FOOTER = """
    tt.return
  }
}
"""


def _kernel(body: str) -> ProtocolProgram:
    return ProtocolProgram(module_of(_HEADER + body + _FOOTER))


def _fault(body: str, seeds: int = 20) -> str:
    """The first line of what is found, empty for nothing."""
    finding = find(_kernel(body), Problem(Shapes(64)), range(seeds))
    return str(finding.fault).splitlines()[0].partition(": error: ")[2] if finding else ""


def _specialized(default: str, partition: str, count: int = 1) -> str:
    """Two partitions that share a buffer and a barrier that takes `count` arrivals."""
    return f"""
    %buffer = ttg.local_alloc : () -> !buffer
    %full = ttg.local_alloc : () -> !mbar
    ttng.init_barrier %full, {count} : !mbar
    ttg.warp_specialize(%buffer, %full)
    default {{
      {default}
      ttg.warp_yield
    }}
    partition0(%to: !buffer, %filled: !mbar) num_warps(4) {{
      %zero_p = arith.constant 0 : i32
      %one_p = arith.constant 1 : i32
      %tile_p = arith.constant dense<0.0> : !tile
      {partition}
      ttg.warp_return
    }} : (!buffer, !mbar) -> ()
"""


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("trips", [0, 1, 2, STAGES, STAGES + 1, 5])
def test_correct_kernels_have_no_findings(scheme: str, trips: int) -> None:
    program = ProtocolProgram(load(scheme))
    for tiles in (1, TILES):
        assert find(program, problem(trips, tiles), range(30)) is None


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_schedule_of_a_small_problem_is_correct(scheme: str) -> None:
    program = ProtocolProgram(load(scheme))
    exploration = explore(record(program, problem(2, 2)), 50_000)
    assert exploration.complete
    assert exploration.problem is None
    assert exploration.states > 500


@pytest.mark.parametrize("flatten", ["on", "off"])
def test_pipelined_persistent_matmul_has_no_findings(flatten: str) -> None:
    text = emit("persistent_matmul_triton", None, f"flatten={flatten}", "cuda:90", "ttgir")
    program = ProtocolProgram(module_of(text))
    for trips in (1, 2, 3, 4, 5):
        for tiles in (1, 3):
            shapes = Shapes(64, {"M": 128 * tiles, "N": 256, "K": 64 * trips})
            assert find(program, Problem(shapes), range(10)) is None


def test_ping_pong_needs_its_order_barriers() -> None:
    """Without them a group can be a full ring behind, and the parity says otherwise."""
    module = load("B")
    for operation in engine.operations(module):
        if operation.name not in ("ttng.wait_barrier", "ttng.arrive_barrier"):
            continue
        index = defining_operation(operation.operands[0])
        if index is not None and "2x1xi64" in str(index.operands[0].type):
            operation.erase()
    program = ProtocolProgram(module)
    found = {
        type(finding.fault).__name__
        for seed in range(20)
        if (finding := find(program, problem(STAGES, TILES), [seed]))
    }
    assert "ParityAliasing" in found


def test_handing_over_a_buffer_is_no_race() -> None:
    default = """
      ttng.wait_barrier %full, %zero : !mbar
      %a = ttg.local_load %buffer : !buffer -> !tile"""
    partition = """
      ttg.local_store %tile_p, %to : !tile -> !buffer
      ttng.arrive_barrier %filled, 1 : !mbar"""
    assert _fault(_specialized(default, partition)) == ""


def test_reading_before_the_wait_is_a_race() -> None:
    default = """
      %a = ttg.local_load %buffer : !buffer -> !tile
      ttng.wait_barrier %full, %zero : !mbar"""
    partition = """
      ttg.local_store %tile_p, %to : !tile -> !buffer
      ttng.arrive_barrier %filled, 1 : !mbar"""
    assert "ttg.local_load: race: reads" in _fault(_specialized(default, partition))


def test_arriving_before_the_store_is_a_race() -> None:
    default = """
      ttng.wait_barrier %full, %zero : !mbar
      %a = ttg.local_load %buffer : !buffer -> !tile"""
    partition = """
      ttg.local_store %tile_p, %to : !tile -> !buffer
      ttng.arrive_barrier %filled, 1 : !mbar
      ttg.local_store %tile_p, %to : !tile -> !buffer"""
    found = _fault(_specialized(default, partition))
    assert "race: " in found
    assert "nothing orders that with" in found


def test_an_arrival_that_may_count_for_the_phase_before() -> None:
    """Two partitions arrive at a barrier that takes two: one of them twice, before the other."""
    default = "ttng.arrive_barrier %full, 1 : !mbar"
    partition = """
      ttng.arrive_barrier %filled, 1 : !mbar
      ttng.arrive_barrier %filled, 1 : !mbar
      ttng.arrive_barrier %filled, 1 : !mbar"""
    assert "too many arrivals" in _fault(_specialized(default, partition, count=2))


def test_a_barrier_left_within_a_phase() -> None:
    default = "ttng.arrive_barrier %full, 1 : !mbar"
    found = _fault(_specialized(default, "", count=2))
    assert "work left pending: the last phase of" in found
    assert "1 of 2 arrivals to come" in found


def test_bytes_that_never_arrive() -> None:
    default = "ttng.wait_barrier %full, %zero : !mbar"
    partition = """
      %yes = arith.constant true
      ttng.barrier_expect %filled, 512, %yes : !mbar"""
    assert "wrong byte count: 512 bytes" in _fault(_specialized(default, partition))


def test_a_barrier_that_nobody_initialized() -> None:
    body = """
    %full = ttg.local_alloc : () -> !mbar
    ttng.arrive_barrier %full, 1 : !mbar
"""
    assert "barrier misuse" in _fault(body)


def test_invalidating_while_another_partition_arrives() -> None:
    default = "ttng.inval_barrier %full : !mbar"
    partition = "ttng.arrive_barrier %filled, 1 : !mbar"
    assert "barrier misuse" in _fault(_specialized(default, partition))


def test_a_barrier_may_be_initialized_again_after_it_was_invalidated() -> None:
    body = """
    %full = ttg.local_alloc : () -> !mbar
    scf.for %i = %zero to %n step %one : i32 {
      ttng.init_barrier %full, 1 : !mbar
      ttng.arrive_barrier %full, 1 : !mbar
      ttng.wait_barrier %full, %zero : !mbar
      ttng.inval_barrier %full : !mbar
    }
"""
    assert _fault(body) == ""


_COPY = """
    %ring = ttg.local_alloc : () -> !ring
    %first = ttg.memdesc_index %ring[%zero] : !ring -> !buffer
    %second = ttg.memdesc_index %ring[%one] : !ring -> !buffer
    %t0 = ttg.async_copy_global_to_local %where, %first : !pointers -> !buffer
    %g0 = ttg.async_commit_group tokens %t0
    %t1 = ttg.async_copy_global_to_local %where, %second : !pointers -> !buffer
    %g1 = ttg.async_commit_group tokens %t1
"""


@pytest.mark.parametrize(
    ("pending", "read", "found"),
    [
        (1, "first", ""),
        (1, "second", "race: reads"),
        (0, "second", ""),
        (2, "first", "race: reads"),
    ],
)
def test_groups_of_copies(pending: int, read: str, found: str) -> None:
    body = f"""{_COPY}
    %w = ttg.async_wait %g0 {{num = {pending} : i32}}
    %a = ttg.local_load %{read} : !buffer -> !tile
    %v = ttg.async_wait %g1 {{num = 0 : i32}}
"""
    fault = _fault(body)
    assert found in fault
    assert bool(fault) == bool(found)


def test_copies_that_nobody_waits_for() -> None:
    assert "work left pending: default partition ends and does not wait for this async copy" in (
        _fault(_COPY)
    )


def test_parts_of_a_buffer_are_apart() -> None:
    parts = """
    %buffer = ttg.local_alloc : () -> !buffer
    %left = ttg.memdesc_subslice %buffer [0, 0] : !buffer -> !part
    %right = ttg.memdesc_subslice %buffer [0, 16] : !buffer -> !part
    ttg.local_store %strip, %left : !strip -> !part
"""
    assert _fault(parts + "%a = ttg.local_load %left : !part -> !strip") == ""
    assert "which nobody wrote" in _fault(parts + "%a = ttg.local_load %right : !part -> !strip")
    assert "which nobody wrote" in _fault(parts + "%a = ttg.local_load %buffer : !buffer -> !tile")


def test_a_slot_outside_of_the_ring_is_reported_where_it_is_used() -> None:
    index = """
    %ring = ttg.local_alloc : () -> !ring
    %outside = ttg.memdesc_index %ring[%n] : !ring -> !buffer
"""
    assert _fault(index) == ""
    store = "ttg.local_store %tile, %outside : !tile -> !buffer"
    assert "position 64 of" in _fault(index + store)


def test_use_after_free() -> None:
    body = """
    %buffer = ttg.local_alloc %tile : (!tile) -> !buffer
    ttg.local_dealloc %buffer : !buffer
    %a = ttg.local_load %buffer : !buffer -> !tile
"""
    assert "was freed at" in _fault(body)


_REGISTERS = """
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!words = !ttg.memdesc<64x16xi16, #flat, #smem>
!b = !ttg.memdesc<16x64xbf16, #shared, #smem>
!sum = tensor<64x64xf32, #mma>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @dequantised(%given: tensor<64x16xi16, #a>, %right: tensor<16x64xbf16, #mma>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !sum
    %words = ttg.local_alloc %given : (tensor<64x16xi16, #a>) -> !words
    %b = ttg.local_alloc %right : (tensor<16x64xbf16, #mma>) -> !b
    ttng.fence_async_shared {bCluster = false}
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!sum) : i32 {
      %w = ttg.local_load %words : !words -> tensor<64x16xi16, #a>
      %x = arith.sitofp %w : tensor<64x16xi16, #a> to tensor<64x16xbf16, #a>
      %d = ttng.warp_group_dot %x, %b, %acc {inputPrecision = 0 : i32, isAsync = true} : tensor<64x16xbf16, #a> * !b -> !sum
      %w0 = ttng.warp_group_dot_wait %d {pendings = PENDINGS : i32} : !sum
      scf.yield %w0 : !sum
    }
    %done = ttng.warp_group_dot_wait %r {pendings = 0 : i32} : !sum
    tt.return
  }
}
"""  # noqa: E501


@pytest.mark.parametrize(
    ("pendings", "registers", "found"), [(1, True, True), (0, True, False), (1, False, False)]
)
def test_registers_of_unfinished_dots(pendings: int, registers: bool, found: bool) -> None:
    module = module_of(_REGISTERS.replace("PENDINGS", str(pendings)))
    program = ProtocolProgram(module, registers=registers)
    finding = find(program, Problem(Shapes(4)), range(3))
    assert bool(finding) == found
    if finding:
        assert "arith.sitofp: race: writes registers that ttng.warp_group_dot" in str(finding)


def test_clusters_cannot_be_followed() -> None:
    text = """
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32} {
  tt.func public @kernel() {
    tt.return
  }
}
"""
    with pytest.raises(CannotFollow, match="clusters of 2 CTAs"):
        ProtocolProgram(module_of(text))


@pytest.mark.skipif(triton_version().version >= (3, 8), reason="spelled for Triton 3.6")
def test_boxes_that_do_not_fit_their_buffer() -> None:
    """Triton 3.6 splits buffers between its consumers and leaves the host's descriptors as is."""
    text = (INPUTS / "ws-load-warp.ttgir").read_text()
    text = text.replace("tensor<128x64xbf16, #shared>", "tensor<256x64xbf16, #shared>")
    finding = find(ProtocolProgram(module_of(text)), problem(1), range(1))
    assert finding is not None
    assert "a box of 256x64 does not fit a buffer of 128x64" in str(finding)


def test_control_flow_that_depends_on_a_tensor_cannot_be_followed() -> None:
    body = """
    %last = "tt.reduce"(%tile) <{axis = 1 : i32}> ({
    ^bb0(%a: f16, %b: f16):
      %m = arith.maxnumf %a, %b : f16
      tt.reduce.return %m : f16
    }) : (!tile) -> tensor<64xf16, #ttg.slice<{dim = 1, parent = #blocked}>>
    %all = "tt.reduce"(%last) <{axis = 0 : i32}> ({
    ^bb0(%a: f16, %b: f16):
      %m = arith.maxnumf %a, %b : f16
      tt.reduce.return %m : f16
    }) : (tensor<64xf16, #ttg.slice<{dim = 1, parent = #blocked}>>) -> f16
    %bound = arith.fptosi %all : f16 to i32
    scf.for %i = %zero to %bound step %one : i32 {
    }
"""
    with pytest.raises(CannotFollow, match="depends on what memory or a tensor holds"):
        _fault(body)


def test_unknown_operations_are_listed() -> None:
    body = """
    %a = "test.one"() : () -> i32
    %b = "test.two"() : () -> i32
"""
    with pytest.raises(UnsupportedOperationsError) as caught:
        _kernel_generic(body)
    assert [each.message.split()[0] for each in caught.value.found] == ["test.one", "test.two"]


def _kernel_generic(body: str) -> ProtocolProgram:
    text = (
        f'"tt.func"() <{{sym_name = "kernel", function_type = () -> ()}}> ({{{body}'
        '"tt.return"() : () -> () }) : () -> ()'
    )
    return ProtocolProgram(engine.parse(text))


def test_the_error_of_the_command_holds_one_schedule() -> None:
    default = "ttng.wait_barrier %full, %zero : !mbar"
    module = module_of(_HEADER + _specialized(default, "") + _FOOTER)
    with pytest.raises(ProtocolError) as caught:
        check_protocol(module)
    message = str(caught.value)
    assert "deadlock: all partitions wait" in message
    assert message.count("its last steps") == 1


def test_kernels_without_asynchronous_work_say_nothing() -> None:
    module = module_of(_HEADER + _FOOTER)
    assert check_protocol(module) is None
