// RUN: sh -c 'tilepass check %s > %t 2>&1; echo "status $?" >> %t'
// RUN: %filecheck %s < %t
// RUN: tilepass check %s --no-protocol | %filecheck %s --check-prefix=VALUES

// What the protocol check does not know of Blackwell it lists; the values are executed.

// CHECK:      memory.mlir:22:23: error: ttng.tmem_alloc cannot be followed: the protocol of this operation is not known
// CHECK-NEXT: memory.mlir:23:23: error: ttng.tmem_load cannot be followed
// CHECK-NEXT: note: --no-protocol executes the kernel all the same
// CHECK-NEXT: status 2
// VALUES: memory.mlir: kernel: nothing undefined

#blocked = #ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
!buffer = !ttg.memdesc<128x64xf32, #shared, #smem, mutable>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @kernel(%out: !tt.ptr<i32>) {
    %zero = arith.constant dense<0.0> : tensor<128x64xf32, #blocked>
    %buffer = ttg.local_alloc %zero : (tensor<128x64xf32, #blocked>) -> !buffer
    %result, %token = ttng.tmem_alloc %zero : (tensor<128x64xf32, #blocked>) -> (!ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, !ttg.async.token)
    %loaded, %after = ttng.tmem_load %result[%token] : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> tensor<128x64xf32, #blocked>
    tt.return
  }
}
