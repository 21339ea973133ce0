// RUN: %python %S/../Inputs/spelled.py %s > %t.mlir
// RUN: not tilepass check %t.mlir 2>&1 | %filecheck %s
// RUN: sed 's/.*no fence$/ttng.fence_async_shared {bCluster = false}/' %t.mlir > %t.fenced && tilepass check %t.fenced | %filecheck %s --check-prefix=FENCED

// A barrier does not order a TMA load behind what threads of another partition read.

// CHECK: error: ttng.async_tma_copy_global_to_local: missing fence: no fence_async_shared between this write of %tiles and the read by ttg.local_load at {{.*}} (default partition)
// FENCED: nothing undefined

#barrier = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!mbar = !ttg.memdesc<1xi64, #barrier, #smem, mutable>
!buffer = !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
!tile = tensor<64x64xf16, #blocked>
!source = !tt.tensordesc<tensor<64x64xf16, #shared>>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @kernel(%source: !source) {
    %zero = arith.constant 0 : i32
    %tiles = ttg.local_alloc : () -> !buffer
    %full = ttg.local_alloc : () -> !mbar
    %empty = ttg.local_alloc : () -> !mbar
    ttng.init_barrier %full, 1 : !mbar
    ttng.init_barrier %empty, 1 : !mbar
    ttg.warp_specialize(%source, %tiles, %full, %empty)
    default {
      ttng.wait_barrier %full, %zero : !mbar
      %tile = ttg.local_load %tiles : !buffer -> !tile
      // no fence
      ttng.arrive_barrier %empty, 1 : !mbar
      %one = arith.constant 1 : i32
      ttng.wait_barrier %full, %one : !mbar
      ttg.warp_yield
    }
    partition0(%from: !source, %to: !buffer, %filled: !mbar, %free: !mbar) num_warps(1) {
      %zero_p = arith.constant 0 : i32
      %true = arith.constant true
      ttng.barrier_expect %filled, 8192, %true : !mbar
      ttng.async_tma_copy_global_to_local %from[%zero_p, %zero_p] %to, %filled, %true : !source, !mbar -> !buffer
      ttng.wait_barrier %free, %zero_p : !mbar
      ttng.barrier_expect %filled, 8192, %true : !mbar
      ttng.async_tma_copy_global_to_local %from[%zero_p, %zero_p] %to, %filled, %true : !source, !mbar -> !buffer
      ttg.warp_return
    } : (!source, !buffer, !mbar, !mbar) -> ()
    tt.return
  }
}
