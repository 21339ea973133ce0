// RUN: %python %S/../../Inputs/spelled.py %s > %t.mlir
// RUN: tilepass-opt %t.mlir -p 'epilogue-warp-specialize{scheme=cooperative,stages=3}' | %filecheck %s
// RUN: tilepass-opt %t.mlir -p 'epilogue-warp-specialize{scheme=split-consumer,stages=3}' | %filecheck %s --check-prefix=OTHERS
// RUN: tilepass-opt %t.mlir -p 'epilogue-warp-specialize{scheme=ping-pong,stages=3}' | %filecheck %s --check-prefix=OTHERS

// A tile loop behind early returns: what the partitions use from the blocks before it is
// captured or computed again as what its own block holds.
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!desc = !tt.tensordesc<tensor<64x64xbf16, #shared>>
!operand = tensor<64x64xbf16, #blocked>
!buffer = !ttg.memdesc<64x64xbf16, #shared, #smem>
!acc = tensor<64x64xf32, #mma>
!half = tensor<64x64xbf16, #mma>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: tt.func @returns_twice
  // OTHERS-LABEL: tt.func @returns_twice
  tt.func @returns_twice(%a: !desc, %b: !desc, %c: !desc, %counts: !tt.ptr<i32>, %first: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !acc
    // CHECK:        [[TILES:%.+]] = tt.load
    // CHECK:        cf.cond_br {{%.+}}, [[OUT:\^bb[0-9]+]], [[ON:\^bb[0-9]+]]
    %tiles = tt.load %counts : !tt.ptr<i32>
    %next_row = arith.addi %first, %c1 : i32
    %none = arith.cmpi eq, %tiles, %c0 : i32
    cf.cond_br %none, ^out, ^more
    // CHECK-NEXT:   [[OUT]]:
    // CHECK-NEXT:     tt.return
    // CHECK-NEXT:   [[ON]]:
  ^out:
    tt.return
    // OTHERS:     cf.cond_br
    // OTHERS:     cf.cond_br
    // OTHERS-NOT: cf.cond_br
    // OTHERS:     ttg.warp_specialize
    // OTHERS:     tt.return
    // CHECK:          [[STEPS:%.+]] = tt.load
    // CHECK:          cf.cond_br {{%.+}}, [[LOOP:\^bb[0-9]+]], [[OUT]]
  ^more:
    %steps = tt.load %counts : !tt.ptr<i32>
    %some = arith.cmpi sgt, %steps, %c0 : i32
    cf.cond_br %some, ^loop, ^out
    // CHECK-NEXT:   [[LOOP]]:
    // CHECK:          ttg.warp_specialize(
    // CHECK:          default
    // CHECK:            scf.for {{.+}} = {{.+}} to [[TILES]]
    // CHECK:              scf.for {{.+}} = {{.+}} to [[STEPS]]
    // CHECK:          partition0({{.*}}[[FIRST:%[^ :]+]]: i32, [[HERE:%[^ :]+]]: i32, [[DEEP:%[^ :]+]]: i32, {{.+}}) num_warps(1)
    // CHECK:            [[ROW:%.+]] = arith.addi [[FIRST]],
    // CHECK:            scf.for {{.+}} to [[HERE]]
    // CHECK:              scf.for {{.+}} to [[DEEP]]
    // CHECK:                ttng.async_tma_copy_global_to_local {{.+}}{{\[}}[[ROW]],
    // CHECK:          tt.return
  ^loop:
    scf.for %tile = %c0 to %tiles step %c1 : i32 {
      %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (!acc) : i32 {
        %x = tt.descriptor_load %a[%next_row, %k] : !desc -> !operand
        %xs = ttg.local_alloc %x : (!operand) -> !buffer
        %y = tt.descriptor_load %b[%tile, %k] : !desc -> !operand
        %ys = ttg.local_alloc %y : (!operand) -> !buffer
        %next = ttng.warp_group_dot %xs, %ys, %acc {inputPrecision = 0 : i32} : !buffer * !buffer -> !acc
        scf.yield %next : !acc
      }
      %half = arith.truncf %d : !acc to !half
      tt.descriptor_store %c[%tile, %c0], %half : !desc, !half
    }
    tt.return
  }
}
