"""Persistent matmuls C = A B^T as people write them: one kernel for each idiom."""

# Kernels are written in the language of Triton, which the type checker does not know.
# pyright: basic, reportAssignmentType=false, reportArgumentType=false

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _corner(tile, N, BM: tl.constexpr, BN: tl.constexpr):
    across = tl.cdiv(N, BN)
    return tile // across * BM, tile % across * BN


@triton.jit
def _product(a, b, m, n, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    total = tl.zeros((BM, BN), tl.float32)
    for step in range(tl.cdiv(K, BK)):
        total = tl.dot(a.load([m, step * BK]), b.load([n, step * BK]).T, total)
    return total


@triton.jit
def plain(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Nothing besides."""
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * tl.cdiv(N, BN), tl.num_programs(0)):
        m, n = _corner(tile, N, BM, BN)
        c.store([m, n], _product(a, b, m, n, K, BM, BN, BK).to(tl.float16))


@triton.jit
def carried_tile(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """The epilogue counts the tiles for itself."""
    stored = tl.program_id(0)
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * tl.cdiv(N, BN), tl.num_programs(0)):
        m, n = _corner(tile, N, BM, BN)
        total = _product(a, b, m, n, K, BM, BN, BK)
        m, n = _corner(stored, N, BM, BN)
        c.store([m, n], total.to(tl.float16))
        stored += tl.num_programs(0)


@triton.jit
def author_subtile(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Two halves of the columns, one after the other."""
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * tl.cdiv(N, BN), tl.num_programs(0)):
        m, n = _corner(tile, N, BM, BN)
        total = _product(a, b, m, n, K, BM, BN, BK)
        left, right = tl.split(tl.permute(tl.reshape(total, (BM, 2, BN // 2)), (0, 2, 1)))
        c.store([m, n], left.to(tl.float16))
        c.store([m, n + BN // 2], right.to(tl.float16))


@triton.jit
def _halves(x, BM: tl.constexpr, BN: tl.constexpr):
    return tl.split(tl.permute(tl.reshape(x, (BM, 2, BN // 2)), (0, 2, 1)))


@triton.jit
def author_quarters(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Four quarters of the columns, counted apart from the loads' tiles as in Triton's tutorial."""
    stored = tl.program_id(0) - tl.num_programs(0)
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * tl.cdiv(N, BN), tl.num_programs(0)):
        m, n = _corner(tile, N, BM, BN)
        left, right = _halves(_product(a, b, m, n, K, BM, BN, BK) * 0.5, BM, BN)
        one, two = _halves(left, BM, BN // 2)
        three, four = _halves(right, BM, BN // 2)
        stored += tl.num_programs(0)
        m, n = _corner(stored, N, BM, BN)
        c.store([m, n], one.to(tl.float16))
        c.store([m, n + BN // 4], two.to(tl.float16))
        c.store([m, n + BN // 2], three.to(tl.float16))
        c.store([m, n + 3 * (BN // 4)], four.to(tl.float16))


@triton.jit
def author_residual(a, b, c, r, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Two halves of the columns, each with its part of another matrix."""
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * tl.cdiv(N, BN), tl.num_programs(0)):
        m, n = _corner(tile, N, BM, BN)
        left, right = _halves(_product(a, b, m, n, K, BM, BN, BK), BM, BN)
        left += r.load([m, n]).to(tl.float32)
        c.store([m, n], left.to(tl.float16))
        right += r.load([m, n + BN // 2]).to(tl.float32)
        c.store([m, n + BN // 2], right.to(tl.float16))


@triton.jit
def author_pointers(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Two halves of the columns, stored through pointers."""
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * tl.cdiv(N, BN), tl.num_programs(0)):
        m, n = _corner(tile, N, BM, BN)
        left, right = _halves(_product(a, b, m, n, K, BM, BN, BK), BM, BN)
        rows, columns = m + tl.arange(0, BM), n + tl.arange(0, BN // 2)
        places = c + rows[:, None] * N + columns[None, :]
        mask = (rows < M)[:, None] & (columns < N)[None, :]
        tl.store(places, left.to(tl.float16), mask=mask)
        mask = (rows < M)[:, None] & (columns + BN // 2 < N)[None, :]
        tl.store(places + BN // 2, right.to(tl.float16), mask=mask)


@triton.jit
def rank_3(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Operands of one matrix in a batch."""
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * tl.cdiv(N, BN), tl.num_programs(0)):
        m, n = _corner(tile, N, BM, BN)
        total = tl.zeros((BM, BN), tl.float32)
        for step in range(tl.cdiv(K, BK)):
            x = a.load([0, m, step * BK]).reshape(BM, BK)
            y = b.load([0, n, step * BK]).reshape(BN, BK)
            total = tl.dot(x, y.T, total)
        c.store([m, n], total.to(tl.float16))


@triton.jit
def experts(a, b, c, r, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Weights [2, N, K] of two experts, one for even and one for odd tiles of rows; everything else
    of three dimensions as well, a residual among it."""
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * tl.cdiv(N, BN), tl.num_programs(0)):
        m, n = _corner(tile, N, BM, BN)
        expert = m // BM % 2
        total = tl.zeros((BM, BN), tl.float32)
        for step in range(tl.cdiv(K, BK)):
            x = a.load([0, m, step * BK]).reshape(BM, BK)
            y = b.load([expert, n, step * BK]).reshape(BN, BK)
            total = tl.dot(x, y.T, total)
        total += r.load([0, m, n]).reshape(BM, BN).to(tl.float32)
        c.store([0, m, n], total.to(tl.float16).reshape(1, BM, BN))


@triton.jit
def grouped(a, b, c, sizes, G, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A has the rows of all groups, `sizes` of each (multiples of BM); B has N rows for each."""
    tile = tl.program_id(0)
    first_tile, first_row = 0, 0
    for group in range(G):
        rows = tl.load(sizes + group)
        tiles = tl.cdiv(rows, BM) * tl.cdiv(N, BN)
        while tile < first_tile + tiles:
            m, n = _corner(tile - first_tile, N, BM, BN)
            total = _product(a, b, first_row + m, group * N + n, K, BM, BN, BK)
            c.store([first_row + m, n], total.to(tl.float16))
            tile += tl.num_programs(0)
        first_tile += tiles
        first_row += rows


@triton.jit
def guarded(a, b, c, sizes, G, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Groups have room for two tiles of rows each; tiles without a row are left out."""
    across = tl.cdiv(N, BN)
    for tile in range(tl.program_id(0), G * 2 * across, tl.num_programs(0)):
        block, n = tile // across, tile % across * BN
        if block % 2 * BM < tl.load(sizes + block // 2):
            total = _product(a, b, block * BM, block // 2 * N + n, K, BM, BN, BK)
            c.store([block * BM, n], total.to(tl.float16))


@triton.jit
def slow_accumulation(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Each step's product is added by itself."""
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * tl.cdiv(N, BN), tl.num_programs(0)):
        m, n = _corner(tile, N, BM, BN)
        total = tl.zeros((BM, BN), tl.float32)
        for step in range(tl.cdiv(K, BK)):
            total += tl.dot(a.load([m, step * BK]), b.load([n, step * BK]).T)
        c.store([m, n], total.to(tl.float16))


@triton.jit
def row_bias(a, b, c, bias, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A row is loaded by TMA and added."""
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * tl.cdiv(N, BN), tl.num_programs(0)):
        m, n = _corner(tile, N, BM, BN)
        total = _product(a, b, m, n, K, BM, BN, BK)
        row = tl.broadcast_to(bias.load([0, n]).to(tl.float32), (BM, BN))
        c.store([m, n], (total + row).to(tl.float16))


@triton.jit
def fused(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """One loop over the steps of all tiles."""
    tiles, steps = tl.cdiv(M, BM) * tl.cdiv(N, BN), tl.cdiv(K, BK)
    own = tl.cdiv(tiles - tl.program_id(0), tl.num_programs(0))
    tile, step = tl.program_id(0), 0
    total = tl.zeros((BM, BN), tl.float32)
    for _ in range(own * steps):
        m, n = _corner(tile, N, BM, BN)
        total = tl.dot(a.load([m, step * BK]), b.load([n, step * BK]).T, total)
        step += 1
        if step == steps:
            c.store([m, n], total.to(tl.float16))
            total = tl.zeros((BM, BN), tl.float32)
            tile += tl.num_programs(0)
            step = 0


@triton.jit
def dequantized(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A holds int8, and goes through registers."""
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * tl.cdiv(N, BN), tl.num_programs(0)):
        m, n = _corner(tile, N, BM, BN)
        total = tl.zeros((BM, BN), tl.float32)
        for step in range(tl.cdiv(K, BK)):
            x = a.load([m, step * BK]).to(tl.float16)
            total = tl.dot(x, b.load([n, step * BK]).T, total)
        c.store([m, n], total.to(tl.float16))
