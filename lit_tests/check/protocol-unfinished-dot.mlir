// RUN: not tilepass check %s 2>&1 | %filecheck %s

// The accumulator is read before its dot is waited for.

// CHECK: error: arith.truncf: it reads the result of a dot that was not waited for

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
    %sum = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %tile = arith.constant dense<0.0> : !tile
    %tiles = ttg.local_alloc : () -> !buffer
    ttg.local_store %tile, %tiles : !tile -> !buffer
    ttng.fence_async_shared {bCluster = false}
    %product = ttng.warp_group_dot %tiles, %tiles, %sum {inputPrecision = 0 : i32, isAsync = true} : !buffer * !buffer -> tensor<64x64xf32, #mma>
    %c = arith.truncf %product : tensor<64x64xf32, #mma> to tensor<64x64xf16, #mma>
    %done = ttng.warp_group_dot_wait %product {pendings = 0 : i32} : tensor<64x64xf32, #mma>
    tt.return
  }
}
