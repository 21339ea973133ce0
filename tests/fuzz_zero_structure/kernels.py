# The DSL ships no types, and its decorators return what they like.
# pyright: basic, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportPrivateImportUsage=false, reportGeneralTypeIssues=false, reportArgumentType=false
"""The kernel of a recipe, in the CuTe DSL."""

from __future__ import annotations

from typing import Any

import cutlass
from cutlass import cute, utils
from cutlass.cute.nvgpu import warp
from cutlass.cute.runtime import make_fake_compact_tensor

from tests.fuzz_zero_structure.kernel_data import shapes
from tests.fuzz_zero_structure.recipe import Recipe

HALVES = {"bf16": cutlass.BFloat16, "f16": cutlass.Float16}


class FuzzKernel:
    """Two products with a mask and shared memory between them; the recipe decides while tracing."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.half = HALVES[recipe.half]

    @cute.jit
    def __call__(
        self,
        q: cute.Tensor,
        k: cute.Tensor,
        v: cute.Tensor,
        o: cute.Tensor,
        bound: cutlass.Int32,
        scale: cutlass.Float32,
    ):
        operation = warp.MmaF16BF16Op(self.half, cutlass.Float32, (16, 8, 16))
        warps = self.recipe.warps
        tiled_mma = cute.make_tiled_mma(
            operation, (warps, 1, 1), permutation_mnk=(16 * warps, 16, 16)
        )
        self.kernel(q, k, v, o, bound, scale, tiled_mma).launch(
            grid=(1, 1, 1), block=(self.recipe.threads, 1, 1)
        )

    def layout(self):
        rows, columns = self.recipe.rows, self.recipe.columns
        if self.recipe.layout == "padded":
            return cute.make_layout((rows, columns), stride=(columns + 8, 1))
        if self.recipe.layout == "swizzled":
            atom = cute.make_composed_layout(
                cute.make_swizzle(1, 3, 3), 0, cute.make_layout((8, 16), stride=(16, 1))
            )
            return cute.tile_to_shape(atom, (rows, columns), order=(0, 1))
        return cute.make_layout((rows, columns), stride=(columns, 1))

    @cute.jit
    def keeps(self, s, t, bound: cutlass.Int32, value):
        """Whether the mask leaves the element at (s, t)."""
        recipe = self.recipe
        result = s >= 0
        if cutlass.const_expr(recipe.mask in ("lower", "bounded")):
            result = s >= t
        if cutlass.const_expr(recipe.mask == "upper"):
            result = t >= s
        if cutlass.const_expr(recipe.mask == "shifted"):
            result = s + recipe.shift >= t
        if cutlass.const_expr(recipe.mask == "band"):
            result = (s - t <= abs(recipe.shift)) and (t - s <= abs(recipe.shift))
        if cutlass.const_expr(recipe.mask == "blocks"):
            result = s // 16 == t // 16
        if cutlass.const_expr(recipe.mask == "columns"):
            result = t < 16
        if cutlass.const_expr(recipe.mask == "bounded"):
            result = result and (s < bound)
        if cutlass.const_expr(recipe.mask == "by-data"):
            result = value > cutlass.Float32(0.25)
        return result

    @cute.jit
    def masked(self, fragment: cute.Tensor, places: cute.Tensor, bound: cutlass.Int32):
        """Set what the mask does not keep to 0."""
        for i in cutlass.range_constexpr(cute.size(fragment)):
            s, t = places[i]
            keep = self.keeps(s, t, bound, fragment[i])
            if cutlass.const_expr(self.recipe.select):
                fragment[i] = cutlass.select_(keep, fragment[i], cutlass.Float32(0.0))
            else:
                if not keep:
                    fragment[i] = cutlass.Float32(0.0)

    @cute.jit
    def produce(self, accumulator, places, staged, tiled_mma, bound, scale, thread):
        """Scale and mask the product, convert it and put it into shared memory."""
        recipe = self.recipe
        for i in cutlass.range_constexpr(cute.size(accumulator)):
            accumulator[i] = accumulator[i] * scale
        if cutlass.const_expr(recipe.trouble == "optional-mask"):
            if bound > 5:
                self.masked(accumulator, places, bound)
        elif cutlass.const_expr(recipe.trouble == "warp-mask"):
            if thread < 32:
                self.masked(accumulator, places, bound)
        else:
            self.masked(accumulator, places, bound)
        if cutlass.const_expr(recipe.trouble == "added-constant"):
            for i in cutlass.range_constexpr(cute.size(accumulator)):
                accumulator[i] = accumulator[i] + cutlass.Float32(0.5)
        halves = cute.make_fragment_like(accumulator, self.half)
        for i in cutlass.range_constexpr(cute.size(accumulator)):
            halves[i] = self.half(accumulator[i])
        if cutlass.const_expr(recipe.staged == "matrix"):
            atom = cute.make_copy_atom(
                warp.StMatrix8x8x16bOp(transpose=False, num_matrices=2), self.half
            )
            copy = cute.make_tiled_copy_C(atom, tiled_mma)
            slice_ = copy.get_slice(thread)
            cute.copy(copy, slice_.retile(halves), slice_.partition_D(staged))
        else:
            target = tiled_mma.get_slice(thread).partition_C(staged)
            for i in cutlass.range_constexpr(cute.size(halves)):
                if cutlass.const_expr(recipe.trouble == "half-stored"):
                    s, _ = places[i]
                    if s < recipe.rows // 2:
                        target[i] = halves[i]
                else:
                    target[i] = halves[i]

    @cute.kernel
    def kernel(
        self,
        q: cute.Tensor,
        k: cute.Tensor,
        v: cute.Tensor,
        o: cute.Tensor,
        bound: cutlass.Int32,
        scale: cutlass.Float32,
        tiled_mma: cute.TiledMma,
    ):
        recipe = self.recipe
        thread, _, _ = cute.arch.thread_idx()
        allocator = utils.SmemAllocator()
        staged = allocator.allocate_tensor(self.half, self.layout(), byte_alignment=1024)
        slice_ = tiled_mma.get_slice(thread)
        global_q, global_k = slice_.partition_A(q), slice_.partition_B(k)
        registers_q = tiled_mma.make_fragment_A(global_q)
        registers_k = tiled_mma.make_fragment_B(global_k)
        cute.autovec_copy(global_q, registers_q)
        cute.autovec_copy(global_k, registers_k)
        shape = tiled_mma.partition_shape_C((recipe.rows, recipe.columns))
        accumulator = cute.make_rmem_tensor(shape, cutlass.Float32)
        places = slice_.partition_C(cute.make_identity_tensor((recipe.rows, recipe.columns)))
        if cutlass.const_expr(recipe.trouble == "stale"):
            everything = slice_.partition_C(staged)
            for i in cutlass.range_constexpr(cute.size(everything)):
                everything[i] = self.half(1.0)
            cute.arch.sync_threads()
        trips = 1
        if cutlass.const_expr(recipe.trouble in ("repeated", "repeated-late")):
            trips = bound
        global_p = slice_.partition_A(v) if recipe.operand == "b" else slice_.partition_B(v)
        if cutlass.const_expr(recipe.operand == "b"):
            out = slice_.partition_C(o)
        else:
            out = slice_.partition_C(o)
        result = tiled_mma.make_fragment_C(out)
        result.fill(0.0)
        for _trip in cutlass.range(trips, unroll=1):
            accumulator.fill(0.0)
            cute.gemm(tiled_mma, accumulator, registers_q, registers_k, accumulator)
            self.produce(accumulator, places, staged, tiled_mma, bound, scale, thread)
            cute.arch.sync_threads()
            if cutlass.const_expr(recipe.trouble in ("late-store", "repeated-late")):
                if thread == 3:
                    staged[0, recipe.columns - 1] = self.half(2.0)
                cute.arch.sync_threads()
            if cutlass.const_expr(recipe.trouble == "rescaled"):
                again = slice_.partition_C(staged)
                for i in cutlass.range_constexpr(cute.size(again)):
                    again[i] = self.half(cutlass.Float32(again[i]) * scale)
                cute.arch.sync_threads()
            self.consume(staged, global_p, result, tiled_mma, thread)
            cute.arch.sync_threads()
        cute.autovec_copy(result, out)

    @cute.jit
    def consume(self, staged, global_v, result, tiled_mma, thread):
        """The second product, P loaded from shared memory."""
        recipe = self.recipe
        slice_ = tiled_mma.get_slice(thread)
        atom = cute.make_copy_atom(
            warp.LdMatrix8x8x16bOp(transpose=False, num_matrices=2), self.half
        )
        if cutlass.const_expr(recipe.operand == "b"):
            registers_v = tiled_mma.make_fragment_A(global_v)
            part = slice_.partition_B(staged)
            registers_p = tiled_mma.make_fragment_B(part)
            copy = cute.make_tiled_copy_B(atom, tiled_mma)
        else:
            registers_v = tiled_mma.make_fragment_B(global_v)
            part = slice_.partition_A(staged)
            registers_p = tiled_mma.make_fragment_A(part)
            copy = cute.make_tiled_copy_A(atom, tiled_mma)
        cute.autovec_copy(global_v, registers_v)
        if cutlass.const_expr(recipe.staged == "matrix"):
            mine = copy.get_slice(thread)
            cute.copy(copy, mine.partition_S(staged), mine.retile(registers_p))
        else:
            cute.autovec_copy(part, registers_p)
        if cutlass.const_expr(recipe.operand == "b"):
            cute.gemm(tiled_mma, result, registers_v, registers_p, result)
        else:
            cute.gemm(tiled_mma, result, registers_p, registers_v, result)


def fake_arguments(recipe: Recipe) -> list[Any]:
    """Arguments without memory behind them, to trace with."""
    half = HALVES[recipe.half]
    kinds = (half, half, half, cutlass.Float32)
    tensors = [
        make_fake_compact_tensor(kind, shape, stride_order=(1, 0), assumed_align=16)
        for kind, shape in zip(kinds, shapes(recipe), strict=True)
    ]
    return [*tensors, cutlass.Int32(1), cutlass.Float32(1.0)]
