// RUN: %python %S/../../Inputs/spelled.py %s > %t.mlir
// RUN: tilepass-opt %t.mlir -p 'epilogue-warp-specialize{scheme=split-consumer}' --verify-diagnostics

// The last of both is to stay, and pieces do not wait for each other.
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
  tt.func @one_place(%a: !desc, %b: !desc, %c: !desc_c, %tiles: i32, %steps: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
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
      %apart = tt.reshape %d : !acc -> !apart
      %turned = tt.trans %apart {order = array<i32: 0, 2, 1>} : !apart -> !turned
      %left, %right = tt.split %turned : !turned -> !part
      %one = arith.truncf %left : !part to !half
      tt.descriptor_store %c[%tile, %c0], %one : !desc_c, !half
      %two = arith.truncf %right : !part to !half
      // expected-error@+1 {{two pieces of the tile may be stored to the same place}}
      tt.descriptor_store %c[%tile, %c0], %two : !desc_c, !half
    }
    tt.return
  }
}
