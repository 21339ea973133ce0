// RUN: not tilepass check %s 2>&1 | %filecheck %s

// The producer fills the buffer again while a wgmma may still read it: the consumer gives it back
// before it has waited for the dot.

// CHECK: error: ttg.local_store: race: writes %tiles, and nothing orders that with ttng.warp_group_dot at {{.*}} (default partition)
// CHECK: ttng.arrive_barrier of %empty (count 1)

#barrier = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!mbar = !ttg.memdesc<1xi64, #barrier, #smem, mutable>
!buffer = !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
!tile = tensor<64x64xf16, #blocked>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @kernel() {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %sum = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %tile = arith.constant dense<0.0> : !tile
    %tiles = ttg.local_alloc : () -> !buffer
    %full = ttg.local_alloc : () -> !mbar
    %empty = ttg.local_alloc : () -> !mbar
    ttng.init_barrier %full, 1 : !mbar
    ttng.init_barrier %empty, 1 : !mbar
    ttg.warp_specialize(%tiles, %full, %empty)
    default {
      ttng.wait_barrier %full, %zero : !mbar
      %product = ttng.warp_group_dot %tiles, %tiles, %sum {inputPrecision = 0 : i32, isAsync = true} : !buffer * !buffer -> tensor<64x64xf32, #mma>
      ttng.arrive_barrier %empty, 1 : !mbar
      %done = ttng.warp_group_dot_wait %product {pendings = 0 : i32} : tensor<64x64xf32, #mma>
      ttg.warp_yield
    }
    partition0(%to: !buffer, %filled: !mbar, %free: !mbar) num_warps(4) {
      %zero_p = arith.constant 0 : i32
      %one_p = arith.constant 1 : i32
      %some = arith.constant dense<0.0> : !tile

      ttg.local_store %some, %to : !tile -> !buffer
      ttng.fence_async_shared {bCluster = false}
      ttng.arrive_barrier %filled, 1 : !mbar
      ttng.wait_barrier %free, %zero_p : !mbar
      ttg.local_store %some, %to : !tile -> !buffer
      ttg.warp_return
    } : (!buffer, !mbar, !mbar) -> ()
    tt.return
  }
}
