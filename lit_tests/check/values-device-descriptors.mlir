// A descriptor that the kernel made is a map in memory at the end of ttgir: the array that it
// describes is as large as the map says, its innermost dimension first and its strides in bytes.
// REQUIRES: triton-3.6
// RUN: tilepass check %s | %filecheck %s
// RUN: sed 's/\[%N, %M\], \[%row\]/[%N, %M], [%wide]/' %s > %t.mlir
// RUN: tilepass check %t.mlir | %filecheck %s
// CHECK: fill: nothing undefined
// CHECK-NOT: error

#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @fill(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %M: i32, %N: i32 {tt.divisibility = 16 : i32}) {
    %zero = arith.constant dense<0.000000e+00> : tensor<64x64xf16, #blocked>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %c2 = arith.constant 2 : i64
    %c6 = arith.constant 6 : i64
    %pid = tt.get_program_id x : i32
    %m = arith.muli %pid, %c64 : i32
    %long = arith.extsi %N : i32 to i64
    %row = arith.muli %long, %c2 : i64
    %wide = arith.muli %long, %c6 : i64
    %place = ttg.global_scratch_alloc {alignment = 128 : i32, nbytes = 128 : i32} : !tt.ptr<i8>
    ttng.tensormap_create %place, %p, [%c64, %c64], [%N, %M], [%row], [%c1, %c1] {elem_type = 6 : i32, fill_mode = 0 : i32, interleave_layout = 0 : i32, swizzle_mode = 3 : i32} : (!tt.ptr<i8>, !tt.ptr<f16>, i32, i32, i32, i32, i64, i32, i32) -> ()
    ttng.tensormap_fenceproxy_acquire %place : !tt.ptr<i8>
    %d = ttng.reinterpret_tensor_descriptor %place : !tt.ptr<i8> to !tt.tensordesc<tensor<64x64xf16, #shared>>
    %buffer = ttg.local_alloc %zero : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    ttng.fence_async_shared {bCluster = false}
    ttng.async_tma_copy_local_to_global %d[%m, %c0] %buffer : !tt.tensordesc<tensor<64x64xf16, #shared>>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    ttng.async_tma_store_wait {pendings = 0 : i32}
    tt.return
  }
}
