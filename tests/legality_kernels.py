"""Kernels that ask for warp specialization, with operands in either order."""

# Kernels are written in the language of Triton, which the type checker does not know.
# pyright: basic, reportAssignmentType=false, reportArgumentType=false

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _steps(
    a, b, c, m, n, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, A_K: tl.constexpr,
    B_K: tl.constexpr, SUM: tl.constexpr, MARKED: tl.constexpr,
):  # fmt: skip
    acc = tl.zeros((BM, BN), SUM)
    for k in tl.range(0, tl.cdiv(K, BK), warp_specialize=MARKED):
        x = a.load([m, k * BK]) if A_K else a.load([k * BK, m]).T
        y = b.load([n, k * BK]).T if B_K else b.load([k * BK, n])
        acc = tl.dot(x, y, acc, out_dtype=SUM)
    c.store([m, n], acc)


@triton.jit
def by_host(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, A_K: tl.constexpr,
    B_K: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    """Descriptors are arguments."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    _steps(a, b, c, m, n, K, BM, BN, BK, A_K, B_K, SUM, True)


@triton.jit
def in_kernel(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, A_K: tl.constexpr,
    B_K: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    """Descriptors are made in the kernel."""
    if A_K:
        x = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    else:
        x = tl.make_tensor_descriptor(a, [K, M], [M, 1], [BK, BM])
    if B_K:
        y = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    else:
        y = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
    z = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    _steps(x, y, z, m, n, K, BM, BN, BK, A_K, B_K, SUM, True)


@triton.jit
def persistent(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, A_K: tl.constexpr,
    B_K: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    """The tile loop is marked; descriptors are made in the kernel."""
    if A_K:
        x = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    else:
        x = tl.make_tensor_descriptor(a, [K, M], [M, 1], [BK, BM])
    if B_K:
        y = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    else:
        y = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
    z = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    columns = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * columns, 132, warp_specialize=True):
        m, n = tile // columns * BM, tile % columns * BN
        _steps(x, y, z, m, n, K, BM, BN, BK, A_K, B_K, SUM, False)
