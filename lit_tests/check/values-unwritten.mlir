// RUN: not tilepass check %s --no-protocol 2>&1 | %filecheck %s

// Half of the buffer is written; a kernel that stores the other half is told so.

// CHECK: unwritten.mlir:{{[0-9]+}}:5: error: tt.store: a stored value is poison at [32] (read of shared memory allocated at {{[0-9]+}} at [32], which nobody wrote)

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @kernel(%out: !tt.ptr<f32> loc("out")) {
    %half = arith.constant dense<1.0> : tensor<32xf32, #blocked>
    %buffer = ttg.local_alloc : () -> !ttg.memdesc<64xf32, #shared, #smem, mutable>
    %first = ttg.memdesc_subslice %buffer[0] : !ttg.memdesc<64xf32, #shared, #smem, mutable> -> !ttg.memdesc<32xf32, #shared, #smem, mutable, 64>
    ttg.local_store %half, %first : tensor<32xf32, #blocked> -> !ttg.memdesc<32xf32, #shared, #smem, mutable, 64>
    %all = ttg.local_load %buffer : !ttg.memdesc<64xf32, #shared, #smem, mutable> -> tensor<64xf32, #blocked>
    %index = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #blocked>
    %base = tt.splat %out : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #blocked>
    %at = tt.addptr %base, %index : tensor<64x!tt.ptr<f32>, #blocked>, tensor<64xi32, #blocked>
    tt.store %at, %all : tensor<64x!tt.ptr<f32>, #blocked>
    tt.return
  }
}
