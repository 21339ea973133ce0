// RUN: %python %S/../Inputs/spelled.py %s > %t.mlir
// RUN: not tilepass check %t.mlir 2>&1 | %filecheck %s

// Rows of 64 bytes one behind the other: TMA takes multiples of 128 bytes.

// CHECK: error: ttng.async_tma_copy_local_to_global: misaligned TMA place: %rows[1] begins 64 bytes into its allocation, and TMA needs a multiple of 128
#blocked = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 0, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!ring = !ttg.memdesc<2x1x32xf16, #shared, #smem, mutable>
!row = !ttg.memdesc<1x32xf16, #shared, #smem, mutable>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @kernel(%out: !tt.ptr<f16>) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %size = arith.constant 32 : i64
    %stride = arith.constant 1 : i64
    %to = tt.make_tensor_descriptor %out, [%one, %one], [%size, %stride] : <f16>, <tensor<1x32xf16, #shared>>
    %some = arith.constant dense<0.0> : tensor<1x32xf16, #blocked>
    %rows = ttg.local_alloc : () -> !ring
    %first = ttg.memdesc_index %rows[%zero] : !ring -> !row
    %second = ttg.memdesc_index %rows[%one] : !ring -> !row
    ttg.local_store %some, %second : tensor<1x32xf16, #blocked> -> !row
    ttng.fence_async_shared {bCluster = false}
    ttng.async_tma_copy_local_to_global %to[%zero, %zero] %second : !tt.tensordesc<tensor<1x32xf16, #shared>>, !row
    ttng.async_tma_store_wait {pendings = 0 : i32}
    tt.return
  }
}
