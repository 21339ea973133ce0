// RUN: %python %S/../../Inputs/spelled.py %s > %t.mlir
// RUN: tilepass-opt %t.mlir --split-input-file -p 'epilogue-warp-specialize{scheme=cooperative,stages=3,epilogue-subtile=2,late-subtiles=0},canonicalize,cse' -Rpass-missed=epilogue-warp-specialize --verify-diagnostics | %filecheck %s

#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#flat = #ttg.blocked<{sizePerThread = [1, 1, 8], threadsPerWarp = [1, 4, 8], warpsPerCTA = [1, 4, 1], order = [2, 1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#ranked = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16, rank = 3}>
#smem = #ttg.shared_memory
!desc = !tt.tensordesc<tensor<1x64x64xbf16, #ranked>>
!operand = tensor<64x64xbf16, #blocked>
!buffer = !ttg.memdesc<64x64xbf16, #shared, #smem>
!acc = tensor<64x64xf32, #mma>
!half = tensor<64x64xbf16, #mma>
!flat = tensor<1x64x64xbf16, #flat>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.maxnreg = 255 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // Weights of experts, tiles of batches: buffers are of matrices, boxes keep their dimension of
  // size 1. A limit of 255 registers is none: that of the kernel's start is for Triton to find.
  // CHECK-NOT:     ttg.maxnreg
  // CHECK-LABEL: tt.func @experts
  // CHECK-SAME:    %{{.+}}: !tt.tensordesc<{{.*}}1x64x64xbf16, [[RANKED:#shared[0-9]*]]>{{.*}}, %{{.+}}: !tt.tensordesc<{{.*}}1x64x32xbf16
  // CHECK:         ttg.local_alloc : () -> !ttg.memdesc<3x64x64xbf16
  // CHECK:         ttg.local_alloc : () -> !ttg.memdesc<2x64x32xbf16
  // CHECK:       default
  // CHECK:         ttng.async_tma_copy_local_to_global [[C:%.+]][%c1_i32, [[TILE:%.+]], %c0_i32] %{{.+}} : {{.+}}, !ttg.memdesc<64x32xbf16
  // CHECK:         ttng.async_tma_copy_local_to_global [[C]][%c1_i32, [[TILE]], %c32_i32] %{{.+}} : {{.+}}, !ttg.memdesc<64x32xbf16
  // CHECK:       partition0
  // CHECK:         [[EXPERT:%.+]] = tt.load
  // CHECK:         ttng.async_tma_copy_global_to_local %{{.+}}{{\[}}[[EXPERT]], {{.+}} -> !ttg.memdesc<64x64xbf16
  tt.func @experts(%a: !desc, %b: !desc, %c: !desc, %experts: !tt.ptr<i32>, %tiles: i32, %steps: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !acc
    scf.for %tile = %c0 to %tiles step %c1 : i32 {
      %entry = tt.addptr %experts, %tile : !tt.ptr<i32>, i32
      %expert = tt.load %entry : !tt.ptr<i32>
      %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (!acc) : i32 {
        %x = tt.descriptor_load %a[%c0, %tile, %k] : !desc -> !operand
        %xs = ttg.local_alloc %x : (!operand) -> !buffer
        %y = tt.descriptor_load %b[%expert, %c0, %k] : !desc -> !operand
        %ys = ttg.local_alloc %y : (!operand) -> !buffer
        %next = ttng.warp_group_dot %xs, %ys, %acc {inputPrecision = 0 : i32} : !buffer * !buffer -> !acc
        scf.yield %next : !acc
      }
      %half = arith.truncf %d : !acc to !half
      %wide = ttg.convert_layout %half : !half -> !operand
      %flat = tt.reshape %wide : !operand -> !flat
      tt.descriptor_store %c[%c1, %tile, %c0], %flat : !desc, !flat
    }
    tt.return
  }
}

// -----

#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!desc = !tt.tensordesc<tensor<64x64xbf16, #shared>>
!operand = tensor<64x64xbf16, #blocked>
!buffer = !ttg.memdesc<64x64xbf16, #shared, #smem>
!acc = tensor<64x64xf32, #mma>
!half = tensor<64x64xbf16, #mma>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.maxnreg = 254 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @limited(%a: !desc, %b: !desc, %c: !desc, %tiles: i32, %steps: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !acc
    // expected-error@+1 {{maxnreg = 254: consumers take the registers that the producer leaves, up to 240 a thread; compile without maxnreg, or with 255}}
    scf.for %tile = %c0 to %tiles step %c1 : i32 {
      %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (!acc) : i32 {
        %x = tt.descriptor_load %a[%tile, %k] : !desc -> !operand
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
