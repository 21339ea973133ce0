// RUN: %python %S/../../Inputs/spelled.py %s > %t.mlir
// RUN: tilepass-opt %t.mlir -p 'epilogue-warp-specialize{scheme=cooperative,stages=3,epilogue-subtile=2,c-buffers=1},canonicalize,cse' | %filecheck %s

#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#apart = #ttg.linear<{register = [[0, 0, 1], [8, 0, 0], [0, 0, 8], [0, 0, 16], [0, 1, 0]], lane = [[0, 0, 2], [0, 0, 4], [1, 0, 0], [2, 0, 0], [4, 0, 0]], warp = [[16, 0, 0], [32, 0, 0]], block = []}>
#turned = #ttg.linear<{register = [[0, 1, 0], [8, 0, 0], [0, 8, 0], [0, 16, 0], [0, 0, 1]], lane = [[0, 2, 0], [0, 4, 0], [1, 0, 0], [2, 0, 0], [4, 0, 0]], warp = [[16, 0, 0], [32, 0, 0]], block = []}>
#part = #ttg.linear<{register = [[0, 1], [8, 0], [0, 8], [0, 16]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]], block = []}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#narrow = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!desc = !tt.tensordesc<tensor<64x64xbf16, #shared>>
!desc_c = !tt.tensordesc<tensor<64x32xbf16, #narrow>>
!operand = tensor<64x64xbf16, #blocked>
!buffer = !ttg.memdesc<64x64xbf16, #shared, #smem>
!acc = tensor<64x64xf32, #mma>
!apart = tensor<64x2x32xf32, #apart>
!turned = tensor<64x32x2xf32, #turned>
!part = tensor<64x32xf32, #part>
!half = tensor<64x32xbf16, #part>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // The author's halves are the pieces: both go through one buffer. What is computed before the cut
  // is computed for each, and layouts are those of pieces of the accumulator.
  // CHECK-LABEL: tt.func @halves
  // CHECK:         ttg.local_alloc : () -> !ttg.memdesc<1x64x32xbf16
  // CHECK-NOT:     ttg.local_alloc : () -> !ttg.memdesc<1x64x32xbf16
  // CHECK:       default
  // CHECK:         [[L:%.+]], [[R:%.+]] = tt.split
  // CHECK:         [[LEFT:%.+]] = ttg.convert_layout [[L]]
  // CHECK:         [[RIGHT:%.+]] = ttg.convert_layout [[R]]
  // CHECK:         [[SUM:%.+]] = arith.addf [[LEFT]], [[LEFT]] : tensor<64x32xf32, [[MMA:#mma.*]]>
  // CHECK:         [[OUT:%.+]] = arith.truncf [[SUM]] : tensor<64x32xf32, [[MMA]]> to tensor<64x32xbf16, [[MMA]]>
  // CHECK:         ttg.local_store [[OUT]]
  // CHECK:         ttng.async_tma_copy_local_to_global %{{.+}}{{\[}}%{{.+}}, %c0_i32]
  // CHECK:         [[SUM:%.+]] = arith.addf [[RIGHT]], [[RIGHT]]
  // CHECK:         [[SINE:%.+]] = math.sin [[SUM]]
  // CHECK:         [[OUT:%.+]] = arith.truncf [[SINE]]
  // CHECK:         ttg.local_store [[OUT]]
  // CHECK:         ttng.async_tma_copy_local_to_global %{{.+}}{{\[}}%{{.+}}, %c32_i32]
  // CHECK:       partition0
  tt.func @halves(%a: !desc, %b: !desc, %c: !desc_c, %tiles: i32, %steps: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c32 = arith.constant 32 : i32
    %zero = arith.constant dense<0.0> : !acc
    scf.for %tile = %c0 to %tiles step %c1 : i32 {
      %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (!acc) : i32 {
        %x = tt.descriptor_load %a[%tile, %k] : !desc -> !operand
        %xs = ttg.local_alloc %x : (!operand) -> !buffer
        %y = tt.descriptor_load %b[%tile, %k] : !desc -> !operand
        %ys = ttg.local_alloc %y : (!operand) -> !buffer
        %next = ttng.warp_group_dot %xs, %ys, %acc {inputPrecision = 0 : i32} : !buffer * !buffer -> !acc
        scf.yield %next : !acc
      }
      %sum = arith.addf %d, %d : !acc
      %apart = tt.reshape %sum : !acc -> !apart
      %turned = tt.trans %apart {order = array<i32: 0, 2, 1>} : !apart -> !turned
      %left, %right = tt.split %turned : !turned -> !part
      %one = arith.truncf %left : !part to !half
      tt.descriptor_store %c[%tile, %c0], %one : !desc_c, !half
      %sine = math.sin %right : !part
      %two = arith.truncf %sine : !part to !half
      tt.descriptor_store %c[%tile, %c32], %two : !desc_c, !half
    }
    tt.return
  }
}
