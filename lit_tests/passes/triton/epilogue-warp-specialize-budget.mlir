// RUN: %python %S/../../Inputs/spelled.py %s > %t.mlir
// RUN: tilepass-opt %t.mlir --split-input-file --verify-diagnostics -p 'epilogue-warp-specialize{scheme=cooperative,stages=14,late-subtiles=0}'

// Shared memory: what the smallest plan takes, and what there is.
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
  tt.func @shared_memory(%a: !desc, %b: !desc, %c: !desc, %tiles: i32, %steps: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !acc
    // expected-error@+1 {{scheme=cooperative, but this loop cannot be specialized so: cooperative, 14 stages, 1 C buffers, 4 subtiles takes 232680 bytes of shared memory of 232448; take a smaller tile or fewer stages}}
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

// -----

// Registers: 4 warps would hold 256 of the accumulator in each thread.
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 256, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#transposed = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!desc_b = !tt.tensordesc<tensor<256x64xbf16, #shared>>
!desc_c = !tt.tensordesc<tensor<128x256xbf16, #shared>>
!desc = !tt.tensordesc<tensor<128x64xbf16, #shared>>
!operand = tensor<128x64xbf16, #blocked>
!operand_b = tensor<256x64xbf16, #blocked>
!buffer_b = !ttg.memdesc<256x64xbf16, #shared, #smem>
!turned = !ttg.memdesc<64x256xbf16, #transposed, #smem>
!buffer = !ttg.memdesc<128x64xbf16, #shared, #smem>
!acc = tensor<128x256xf32, #mma>
!half = tensor<128x256xbf16, #mma>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @registers(%a: !desc, %b: !desc_b, %c: !desc_c, %tiles: i32, %steps: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !acc
    scf.for %tile = %c0 to %tiles step %c1 : i32 {
      %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (!acc) : i32 {
        %x = tt.descriptor_load %a[%tile, %k] : !desc -> !operand
        %xs = ttg.local_alloc %x : (!operand) -> !buffer
        %y = tt.descriptor_load %b[%tile, %k] : !desc_b -> !operand_b
        %ys = ttg.local_alloc %y : (!operand_b) -> !buffer_b
        %yt = ttg.memdesc_trans %ys {order = array<i32: 1, 0>} : !buffer_b -> !turned
        // expected-error@+1 {{the accumulator takes 256 registers a thread and the rest 40: a consumer has 240; take a smaller tile}}
        %next = ttng.warp_group_dot %xs, %yt, %acc {inputPrecision = 0 : i32} : !buffer * !turned -> !acc
        scf.yield %next : !acc
      }
      %half = arith.truncf %d : !acc to !half
      tt.descriptor_store %c[%tile, %c0], %half : !desc_c, !half
    }
    tt.return
  }
}
