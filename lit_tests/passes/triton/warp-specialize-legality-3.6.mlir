// REQUIRES: triton-3.6
// RUN: %python %S/../../Inputs/spelled.py %s > %t.mlir
// RUN: tilepass-opt %t.mlir --verify-diagnostics -p warp-specialize-legality
// RUN: tilepass-opt %t.mlir -p 'warp-specialize-legality{mode=guard}' | %filecheck %s

// Triton 3.6 does not compare the box of a TMA load with the buffer that it fills.
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 128, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#transposed = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!desc = !tt.tensordesc<tensor<128x64xbf16, #shared>>
!c_desc = !tt.tensordesc<tensor<128x128xbf16, #shared>>
!operand = tensor<128x64xbf16, #blocked>
!buffer = !ttg.memdesc<128x64xbf16, #shared, #smem>
!turned = !ttg.memdesc<64x128xbf16, #transposed, #smem>
!acc = tensor<128x128xf32, #mma>
!half = tensor<128x128xbf16, #mma>
!out = tensor<128x128xbf16, #blocked>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: tt.func @a_by_host
  // CHECK:         scf.for
  // CHECK-NOT:     tt.warp_specialize
  tt.func @a_by_host(%p: !tt.ptr<bf16>, %n: i32, %s: i64, %a: !desc) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c128 = arith.constant 128 : i32
    %zero = arith.constant dense<0.0> : !acc
    %b = "tt.make_tensor_descriptor"(%p, %n, %n, %s, %s) <{operandSegmentSizes = array<i32: 1, 2, 2>, padding = 1 : i32}> : (!tt.ptr<bf16>, i32, i32, i64, i64) -> !desc
    %c = "tt.make_tensor_descriptor"(%p, %n, %n, %s, %s) <{operandSegmentSizes = array<i32: 1, 2, 2>, padding = 1 : i32}> : (!tt.ptr<bf16>, i32, i32, i64, i64) -> !c_desc
    // expected-remark@+1 {{upstream miscompiles this loop: a descriptor that is an argument of the function keeps its box when the tile is cut along M, and overflows a buffer of half its size}}
    scf.for %tile = %c0 to %n step %c1 : i32 {
      %row = arith.muli %tile, %c128 : i32
      %acc = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (!acc) : i32 {
        %a_tile = tt.descriptor_load %a[%row, %i] : !desc -> !operand
        %a_slot = ttg.local_alloc %a_tile : (!operand) -> !buffer
        %b_tile = tt.descriptor_load %b[%c0, %i] : !desc -> !operand
        %b_slot = ttg.local_alloc %b_tile : (!operand) -> !buffer
        %b_turned = ttg.memdesc_trans %b_slot {order = array<i32: 1, 0>} : !buffer -> !turned
        %next = ttng.warp_group_dot %a_slot, %b_turned, %sum {inputPrecision = 0 : i32} : !buffer * !turned -> !acc
        scf.yield %next : !acc
      }
      %half = arith.truncf %acc : !acc to !half
      %c_tile = ttg.convert_layout %half : !half -> !out
      tt.descriptor_store %c[%row, %c0], %c_tile : !c_desc, !out
    } {tt.warp_specialize}
    tt.return
  }
}
