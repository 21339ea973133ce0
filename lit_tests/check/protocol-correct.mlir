// RUN: tilepass check %s | %filecheck %s
// RUN: tilepass check %s --no-protocol | %filecheck %s --check-prefix=ALONE

// A buffer handed over and back, once; nothing to report.

// CHECK: protocol: 3 schedules of 1 problem (each a program and its shapes, 64)
// ALONE-NOT: protocol:

#barrier = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!mbar = !ttg.memdesc<1xi64, #barrier, #smem, mutable>
!buffer = !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
!tile = tensor<64x64xf16, #blocked>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @kernel() {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %tile = arith.constant dense<0.0> : !tile
    %tiles = ttg.local_alloc : () -> !buffer
    %full = ttg.local_alloc : () -> !mbar
    %empty = ttg.local_alloc : () -> !mbar
    ttng.init_barrier %full, 1 : !mbar
    ttng.init_barrier %empty, 1 : !mbar
    ttg.warp_specialize(%tiles, %full, %empty)
    default {
      ttng.wait_barrier %full, %zero : !mbar
      %first = ttg.local_load %tiles : !buffer -> !tile
      ttng.arrive_barrier %empty, 1 : !mbar
      ttng.wait_barrier %full, %one : !mbar
      %second = ttg.local_load %tiles : !buffer -> !tile
      ttg.warp_yield
    }
    partition0(%to: !buffer, %filled: !mbar, %free: !mbar) num_warps(4) {
      %zero_p = arith.constant 0 : i32
      %one_p = arith.constant 1 : i32
      %some = arith.constant dense<0.0> : !tile

      ttg.local_store %some, %to : !tile -> !buffer
      ttng.arrive_barrier %filled, 1 : !mbar
      ttng.wait_barrier %free, %zero_p : !mbar
      ttg.local_store %some, %to : !tile -> !buffer
      ttng.arrive_barrier %filled, 1 : !mbar
      ttg.warp_return
    } : (!buffer, !mbar, !mbar) -> ()
    tt.return
  }
}
