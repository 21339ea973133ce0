// RUN: tilepass-opt %s > %t.before
// RUN: tilepass-opt %s -p test-round-trip > %t.after
// RUN: diff %t.before %t.after
// RUN: %filecheck %s --input-file %t.after

// Layouts inside layouts and inside types that the engine does not know; names that begin alike; a
// string that looks like IR.
// CHECK-DAG: #[[MMA:.+]] = #ttg.nvidia_mma<
// CHECK-DAG: #[[SHARED:.+]] = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false
// CHECK-DAG: #[[SHARED1:.+]] = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  // CHECK: @f(
  // CHECK-SAME: !ttg.memdesc<64x64xf16, #[[SHARED]], #smem, mutable>
  // CHECK-SAME: !ttg.memdesc<64x64xf16, #[[SHARED1]], #smem, mutable, 3x64x64>
  // CHECK-SAME: tensor<64xf32, #ttg.slice<{dim = 1, parent = #[[MMA]]}>>
  // CHECK-SAME: tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #[[MMA]], kWidth = 2}>>
  tt.func @f(%a: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>,
             %b: !ttg.memdesc<64x64xf16, #shared1, #smem, mutable, 3x64x64>,
             %c: tensor<64xf32, #ttg.slice<{dim = 1, parent = #mma}>>,
             %d: tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>, %x: i32) {
    // CHECK: "// #shared1 { #mma !x \22"
    %0 = tt.elementwise_inline_asm "// #shared1 { #mma !x \"" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %x : i32 -> i32
    tt.return
  }
}
