"""The CPU that executes PTX: what it must not let pass, on kernels of a few instructions."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from ptx_arithmetic import evaluate
from ptx_machine import run_grid
from ptx_matrix import matrix_elements, matrix_rows, multiply
from ptx_memory import GlobalMemory, KernelFault
from ptx_text import constant, parse_kernel

HEAD = """
.visible .entry k(.param .b64 k_param_0)
.reqntid 64, 1, 1
{
	.reg .b32 	%r<9>;
	ld.param.b64 	%rd1, [k_param_0];
	mov.u32 	%r1, %tid.x;
	shl.b32 	%r2, %r1, 2;
	cvt.u64.u32 	%rd2, %r2;
	add.s64 	%rd3, %rd1, %rd2;
"""
# Each thread stores its number and reads that of thread 63 - t.
EXCHANGE = """
	st.shared.b32 	[%r2], %r1;
	{barrier}
	mov.b32 	%r3, 252;
	sub.s32 	%r4, %r3, %r2;
	ld.shared.b32 	%r5, [%r4];
	st.global.b32 	[%rd3], %r5;
	ret;
}}
"""


def run(body: str) -> list[int]:
    """The 64 words that a kernel leaves behind."""
    result = np.zeros(64, np.int32)
    memory = GlobalMemory()
    address = memory.place(result)
    run_grid(HEAD + body, memory, [struct.pack("<q", address)], (1,))
    memory.read_back()
    return result.tolist()


def test_an_exchange_through_shared_memory() -> None:
    assert run(EXCHANGE.format(barrier="bar.sync 	0;")) == list(range(63, -1, -1))


@pytest.mark.parametrize("barrier", ["", "bar.warp.sync 	-1;"])
def test_an_exchange_between_warps_needs_a_barrier(barrier: str) -> None:
    with pytest.raises(KernelFault, match=r"no barrier between.*\n.*ld\.shared"):
        run(EXCHANGE.format(barrier=barrier))


def test_a_barrier_that_not_all_reach() -> None:
    body = "setp.lt.u32 %p1, %r1, 32; @%p1 bra $L__END; bar.sync 0; $L__END: ret; }"
    with pytest.raises(KernelFault, match=r"deadlock: .* \[0\]"):
        run(body)


def test_two_threads_store_to_one_place() -> None:
    with pytest.raises(KernelFault, match="two threads store to the same place"):
        run("mov.b32 %r3, 8; st.shared.b32 [%r3], %r1; ret; }")


def test_an_address_behind_an_array() -> None:
    with pytest.raises(KernelFault, match="outside of every array"):
        run("st.global.b32 [%rd3+4], %r1; ret; }")


def test_an_address_that_is_not_aligned() -> None:
    with pytest.raises(KernelFault, match="not a multiple of 16"):
        run("ld.shared.v4.b32 {%r3, %r4, %r5, %r6}, [%r2]; ret; }")


def test_shared_memory_that_nobody_wrote_is_nan() -> None:
    body = "ld.shared.b32 %r3, [%r2]; st.global.b32 [%rd3], %r3; ret; }"
    assert np.isnan(np.array(run(body), np.int32).view(np.float32)).all()


def test_a_matrix_instruction_of_half_a_warp() -> None:
    body = "setp.lt.u32 %p1, %r1, 16; @%p1 shfl.sync.idx.b32 %r3, %r1, 0, 31, -1; ret; }"
    with pytest.raises(KernelFault, match="part of a warp"):
        run(body)


def test_an_instruction_that_is_not_known() -> None:
    with pytest.raises(NotImplementedError, match="popc"):
        run("popc.b32 %r3, %r1; ret; }")


def test_a_copy_that_is_not_waited_for_is_nan() -> None:
    start = "cvt.u64.u32 %rd4, %r2; shl.b32 %r3, %r1, 4; setp.lt.u32 %p1, %r1, 16; "
    start += "shl.b64 %rd5, %rd4, 2; add.s64 %rd6, %rd1, %rd5; "
    start += "@%p1 cp.async.ca.shared.global [%r3], [%rd6], 16, 16; cp.async.commit_group; "
    end = "bar.sync 0; ld.shared.b32 %r4, [%r2]; st.global.b32 [%rd3], %r4; ret; }"
    waited = run(start + "cp.async.wait_group 0; " + end)
    assert waited == [0] * 64
    early = run(start + end)
    assert np.isnan(np.array(early, np.int32).view(np.float32)).all()


def test_mma_against_numpy() -> None:
    generator = np.random.default_rng(0)
    a, b = (generator.integers(-4, 5, size).astype(np.float16) for size in ((16, 16), (8, 16)))
    c = generator.integers(-4, 5, (16, 8)).astype(np.float32)
    # ldmatrix.x4 of A's four 8x8 parts, .x2 of B's two; C by its definition in the PTX ISA.
    parts = [a[r : r + 8, k : k + 8] for k in (0, 8) for r in (0, 8)]
    left = np.stack([matrix_elements(p.view(np.uint16)[None], False) for p in parts], -1)
    right = [matrix_elements(b[:, k : k + 8].copy().view(np.uint16)[None], False) for k in (0, 8)]
    lane = np.arange(32)
    start = np.stack([c[lane // 4 + i // 2 * 8, lane % 4 * 2 + i % 2] for i in range(4)], -1)
    result = multiply(left, np.stack(right, -1), start[None], "f16")
    expected = a.astype(np.float32) @ b.astype(np.float32).T + c
    for i in range(4):
        want = expected[lane // 4 + i // 2 * 8, lane % 4 * 2 + i % 2]
        assert np.array_equal(result[0, :, i], want)


@pytest.mark.parametrize("transpose", [False, True])
def test_stmatrix_undoes_ldmatrix(transpose: bool) -> None:
    matrix = np.arange(64, dtype=np.uint16).reshape(1, 8, 8)
    registers = matrix_elements(matrix, transpose)
    assert np.array_equal(matrix_rows(registers, transpose), matrix)
    # Lane 1 holds columns 2 and 3 of row 0, or, transposed, rows 2 and 3 of column 0.
    assert registers[0, 1] == (16 | 24 << 16 if transpose else 2 | 3 << 16)


@pytest.mark.parametrize(
    ("code", "operands", "result"),
    [
        ("add.s32", (2**31 - 1, 1), 2**31),
        ("shr.s32", (2**32 - 8, 1), 2**32 - 4),
        ("shr.u32", (2**32 - 8, 1), 2**31 - 4),
        ("min.s32", (2**32 - 1, 3), 2**32 - 1),
        ("mul.wide.s32", (2**32 - 1, 2), 2**64 - 2),
        ("cvt.s64.s32", (2**32 - 1,), 2**64 - 1),
        ("cvt.u64.u32", (2**32 - 1,), 2**32 - 1),
        ("cvt.rn.bf16x2.f32", (0x3F800000, 0x40000000), 0x3F804000),
        ("max.f32", (0x7FC00000, 0x3F800000), 0x3F800000),
    ],
)
def test_arithmetic(code: str, operands: tuple[int, ...], result: int) -> None:
    names = ", ".join(f"%r{index}" for index in range(1, len(operands) + 1))
    (instruction,) = parse_kernel(
        f".entry k() .reqntid 32\n{{ {code} %r0, {names}; }}"
    ).instructions
    sources = [np.array([operand], np.uint32) for operand in operands]
    assert int(evaluate(instruction, sources)[0]) == result


def test_literals() -> None:
    assert [constant(text) for text in ("-1", "0x10", "0f3F800000", "%r1")] == [
        -1,
        16,
        0x3F800000,
        None,
    ]
