// RUN: tilepass check %s 2>&1 | %filecheck %s

// How often the loop runs is in memory that the kernel writes.

// CHECK: warning: the protocol is not checked: scf.for at {{.*}}protocol-not-followed.mlir:{{[0-9:]+}} depends on what memory or a tensor holds, which is not followed
// CHECK: protocol: not checked

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @kernel(%counter: !tt.ptr<i32>) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %yes = arith.constant true
    %tile = arith.constant dense<0> : tensor<128xi32, #blocked>
    %buffer = ttg.local_alloc : () -> !ttg.memdesc<128xi32, #shared, #smem, mutable>
    %trips = tt.atomic_rmw add, acq_rel, gpu, %counter, %one, %yes : (!tt.ptr<i32>, i32, i1) -> i32
    scf.for %trip = %zero to %trips step %one : i32 {
      ttg.local_store %tile, %buffer : tensor<128xi32, #blocked> -> !ttg.memdesc<128xi32, #shared, #smem, mutable>
    }
    tt.return
  }
}
