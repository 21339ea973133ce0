// RUN: %python %S/../../Inputs/spelled.py %s > %t.mlir
// RUN: tilepass-opt %t.mlir -p 'epilogue-warp-specialize{scheme=ping-pong,stages=3},canonicalize,cse' | %filecheck %s
// RUN: tilepass-opt %t.mlir -p 'epilogue-warp-specialize{scheme=cooperative,late-subtiles=1},canonicalize,cse' | %filecheck %s --check-prefix=LATE

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
  // The epilogue counts the tiles for itself, from a trip before on, as Triton's tutorial does: its
  // number is the tile's. No consumer carries it.
  // CHECK-LABEL: tt.func @counts
  // CHECK:       default
  // CHECK:         scf.for [[TILE:%.+]] = %{{.+}} iter_args({{.+}}) -> (i32, i32, i32) : i32 {
  // CHECK:         ttng.async_tma_copy_local_to_global %{{.+}}{{\[}}[[TILE]], %c0_i32]
  // LATE-LABEL:  tt.func @counts
  // LATE:        scf.for {{.+}} iter_args({{.+}}, [[BEFORE:%.+]] = %{{.+}}) -> ({{.+}}, i32) : i32 {
  // LATE:          arith.select %{{.+}}, [[BEFORE]], %c1073741824_i32
  tt.func @counts(%a: !desc, %b: !desc, %c: !desc, %tiles: i32, %steps: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !acc
    %program = tt.get_program_id x : i32
    %programs = tt.get_num_programs x : i32
    %before = arith.subi %program, %programs : i32
    %last = scf.for %tile = %program to %tiles step %programs iter_args(%n = %before) -> (i32) : i32 {
      %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (!acc) : i32 {
        %x = tt.descriptor_load %a[%tile, %k] : !desc -> !operand
        %xs = ttg.local_alloc %x : (!operand) -> !buffer
        %y = tt.descriptor_load %b[%tile, %k] : !desc -> !operand
        %ys = ttg.local_alloc %y : (!operand) -> !buffer
        %next = ttng.warp_group_dot %xs, %ys, %acc {inputPrecision = 0 : i32} : !buffer * !buffer -> !acc
        scf.yield %next : !acc
      }
      %stored = arith.addi %n, %programs : i32
      %half = arith.truncf %d : !acc to !half
      tt.descriptor_store %c[%stored, %c0], %half : !desc, !half
      scf.yield %stored : i32
    }
    tt.return
  }
}
