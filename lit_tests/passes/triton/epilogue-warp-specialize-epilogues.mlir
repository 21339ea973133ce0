// RUN: %python %S/../../Inputs/spelled.py %s > %t.mlir
// RUN: tilepass-opt %t.mlir -p 'epilogue-warp-specialize{scheme=cooperative,stages=4},canonicalize,cse' | %filecheck %s

// What a user's tile loop may hold besides the two loads, the dot and a store.
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#row = #ttg.slice<{dim = 0, parent = #blocked}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#shared32 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#transposed = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!desc = !tt.tensordesc<tensor<64x64xbf16, #shared>>
!desc32 = !tt.tensordesc<tensor<64x64xf32, #shared32>>
!operand = tensor<64x64xbf16, #blocked>
!buffer = !ttg.memdesc<64x64xbf16, #shared, #smem>
!turned = !ttg.memdesc<64x64xbf16, #transposed, #smem>
!acc = tensor<64x64xf32, #mma>
!half = tensor<64x64xbf16, #mma>
!full = tensor<64x64xf32, #blocked>
!pointers = tensor<64x64x!tt.ptr<bf16>, #blocked>
!mask = tensor<64x64xi1, #blocked>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // A residual tile has its own ring. The producer loads it behind the operands; the consumer
  // reads it in the accumulator's layout and hands the slot back.
  // CHECK-LABEL: tt.func @residual
  // CHECK:         [[OPERANDS:%.+]] = ttg.local_alloc : () -> !ttg.memdesc<4x1xi64
  // CHECK:         [[TILE:%.+]] = ttg.local_alloc : () -> !ttg.memdesc<1x64x64xbf16
  // CHECK:       default
  // CHECK:         ttng.warp_group_dot_wait {{.+}} {pendings = 0 : i32}
  // CHECK:         ttng.wait_barrier
  // CHECK:         [[SLOT:%.+]] = ttg.memdesc_index [[TILE]]
  // CHECK:         [[VALUE:%.+]] = ttg.local_load [[SLOT]] : {{.+}} -> tensor<64x64xbf16, #mma>
  // CHECK:         ttng.fence_async_shared
  // CHECK:         ttng.arrive_barrier
  // CHECK:         arith.extf [[VALUE]]
  // CHECK:       partition0
  // CHECK:         ttng.barrier_expect {{.+}}, 16384
  // CHECK-COUNT-2: ttng.async_tma_copy_global_to_local
  // CHECK:         scf.yield
  // CHECK:         ttng.wait_barrier
  // CHECK:         ttng.barrier_expect {{.+}}, 8192
  // CHECK:         ttng.async_tma_copy_global_to_local
  // CHECK:         ttg.warp_return
  tt.func @residual(%a: !desc, %b: !desc, %tiles: i32, %steps: i32, %c: !desc, %r: !desc) {
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : !acc
    scf.for %tile = %c0 to %tiles step %c64 : i32 {
      %d = scf.for %k = %c0 to %steps step %c64 iter_args(%acc = %zero) -> (!acc) : i32 {
        %x = tt.descriptor_load %a[%tile, %k] : !desc -> !operand
        %xs = ttg.local_alloc %x : (!operand) -> !buffer
        %y = tt.descriptor_load %b[%tile, %k] : !desc -> !operand
        %ys = ttg.local_alloc %y : (!operand) -> !buffer
        %yt = ttg.memdesc_trans %ys {order = array<i32: 1, 0>} : !buffer -> !turned
        %next = ttng.warp_group_dot %xs, %yt, %acc {inputPrecision = 0 : i32} : !buffer * !turned -> !acc
        scf.yield %next : !acc
      }
      %residual = tt.descriptor_load %r[%tile, %c0] : !desc -> !operand
      %converted = ttg.convert_layout %residual : !operand -> !half
      %wide = arith.extf %converted : !half to !acc
      %sum = arith.addf %d, %wide : !acc
      %half = arith.truncf %sum : !acc to !half
      %out = ttg.convert_layout %half : !half -> !operand
      tt.descriptor_store %c[%tile, %c0], %out : !desc, !operand
    }
    tt.return
  }

  // A residual that is also the output stays with the consumer: the tile may not be loaded early.
  // CHECK-LABEL: tt.func @in_place
  // CHECK:       default
  // CHECK:         tt.descriptor_load
  // CHECK:         ttng.async_tma_copy_local_to_global
  // CHECK:       partition0
  // CHECK-COUNT-2: ttng.async_tma_copy_global_to_local
  // CHECK-NOT:     ttng.async_tma_copy_global_to_local
  // CHECK:         ttg.warp_return
  tt.func @in_place(%a: !desc, %b: !desc, %tiles: i32, %steps: i32, %c: !desc) {
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : !acc
    scf.for %tile = %c0 to %tiles step %c64 : i32 {
      %d = scf.for %k = %c0 to %steps step %c64 iter_args(%acc = %zero) -> (!acc) : i32 {
        %x = tt.descriptor_load %a[%tile, %k] : !desc -> !operand
        %xs = ttg.local_alloc %x : (!operand) -> !buffer
        %y = tt.descriptor_load %b[%tile, %k] : !desc -> !operand
        %ys = ttg.local_alloc %y : (!operand) -> !buffer
        %yt = ttg.memdesc_trans %ys {order = array<i32: 1, 0>} : !buffer -> !turned
        %next = ttng.warp_group_dot %xs, %yt, %acc {inputPrecision = 0 : i32} : !buffer * !turned -> !acc
        scf.yield %next : !acc
      }
      %residual = tt.descriptor_load %c[%tile, %c0] : !desc -> !operand
      %converted = ttg.convert_layout %residual : !operand -> !half
      %half = arith.truncf %d : !acc to !half
      %sum = arith.addf %half, %converted : !half
      %out = ttg.convert_layout %sum : !half -> !operand
      tt.descriptor_store %c[%tile, %c0], %out : !desc, !operand
    }
    tt.return
  }

  // Two outputs, one fp32: a buffer for each, one wait for the stores of the tile before.
  // CHECK-LABEL: tt.func @two_stores
  // CHECK:         [[C:%.+]] = ttg.local_alloc : () -> !ttg.memdesc<1x64x64xf32
  // CHECK:         [[E:%.+]] = ttg.local_alloc : () -> !ttg.memdesc<1x64x64xbf16
  // CHECK:       default
  // CHECK:         ttng.async_tma_store_wait
  // CHECK:         ttg.local_store {{.+}} : tensor<64x64xf32, #mma>
  // CHECK:         ttng.async_tma_copy_local_to_global
  // CHECK-NOT:     ttng.async_tma_store_wait
  // CHECK:         ttg.local_store {{.+}} : tensor<64x64xbf16, #mma>
  // CHECK:         ttng.async_tma_copy_local_to_global
  tt.func @two_stores(%a: !desc, %b: !desc, %tiles: i32, %steps: i32, %c: !desc, %e: !desc32) {
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : !acc
    scf.for %tile = %c0 to %tiles step %c64 : i32 {
      %d = scf.for %k = %c0 to %steps step %c64 iter_args(%acc = %zero) -> (!acc) : i32 {
        %x = tt.descriptor_load %a[%tile, %k] : !desc -> !operand
        %xs = ttg.local_alloc %x : (!operand) -> !buffer
        %y = tt.descriptor_load %b[%tile, %k] : !desc -> !operand
        %ys = ttg.local_alloc %y : (!operand) -> !buffer
        %yt = ttg.memdesc_trans %ys {order = array<i32: 1, 0>} : !buffer -> !turned
        %next = ttng.warp_group_dot %xs, %yt, %acc {inputPrecision = 0 : i32} : !buffer * !turned -> !acc
        scf.yield %next : !acc
      }
      %whole = ttg.convert_layout %d : !acc -> !full
      tt.descriptor_store %e[%tile, %c0], %whole : !desc32, !full
      %half = arith.truncf %d : !acc to !half
      %out = ttg.convert_layout %half : !half -> !operand
      tt.descriptor_store %c[%tile, %c0], %out : !desc, !operand
    }
    tt.return
  }

  // Stores through pointers, and what they and a bias need, are the consumer's as they are.
  // CHECK-LABEL: tt.func @through_pointers
  // CHECK:       default
  // CHECK:         tt.load
  // CHECK:         tt.broadcast
  // CHECK:         math.exp
  // CHECK:         ttg.convert_layout
  // CHECK:         tt.store {{.+}}, {{.+}}, %arg5
  // CHECK-NOT:     ttng.async_tma_store_wait
  // CHECK:       partition0
  // CHECK-NOT:     tt.load
  // CHECK:         ttg.warp_return
  tt.func @through_pointers(%a: !desc, %b: !desc, %tiles: i32, %steps: i32, %p: !pointers, %m: !mask, %bias: tensor<64x!tt.ptr<f32>, #row>) {
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : !acc
    scf.for %tile = %c0 to %tiles step %c64 : i32 {
      %d = scf.for %k = %c0 to %steps step %c64 iter_args(%acc = %zero) -> (!acc) : i32 {
        %x = tt.descriptor_load %a[%tile, %k] : !desc -> !operand
        %xs = ttg.local_alloc %x : (!operand) -> !buffer
        %y = tt.descriptor_load %b[%tile, %k] : !desc -> !operand
        %ys = ttg.local_alloc %y : (!operand) -> !buffer
        %yt = ttg.memdesc_trans %ys {order = array<i32: 1, 0>} : !buffer -> !turned
        %next = ttng.warp_group_dot %xs, %yt, %acc {inputPrecision = 0 : i32} : !buffer * !turned -> !acc
        scf.yield %next : !acc
      }
      %values = tt.load %bias : tensor<64x!tt.ptr<f32>, #row>
      %line = tt.expand_dims %values {axis = 0 : i32} : tensor<64xf32, #row> -> tensor<1x64xf32, #blocked>
      %block = tt.broadcast %line : tensor<1x64xf32, #blocked> -> !full
      %same = ttg.convert_layout %block : !full -> !acc
      %sum = arith.addf %d, %same : !acc
      %power = math.exp %sum : !acc
      %half = arith.truncf %power : !acc to !half
      %out = ttg.convert_layout %half : !half -> !operand
      tt.store %p, %out, %m : !pointers
    }
    tt.return
  }

  // What the loops carry beside the accumulator each partition carries for itself; a number that
  // is loaded for each tile is loaded by each that needs it. The number of steps may vary.
  // CHECK-LABEL: tt.func @carried
  // CHECK:       default
  // CHECK:         scf.for {{.+}} iter_args({{.+}}, [[MINE:%.+]] = %c0_i32)
  // CHECK-NOT:     tt.load
  // CHECK:         ttng.async_tma_copy_local_to_global {{.+}}{{\[}}[[MINE]], %c0_i32]
  // CHECK:       partition0
  // CHECK:         scf.for
  // CHECK:           [[ROW:%.+]] = tt.load
  // CHECK:           scf.for {{.+}} iter_args({{.+}}, [[DEPTH:%.+]] = %c0_i32{{.*}}) -> (i32, i32, i32)
  // CHECK:             ttng.async_tma_copy_global_to_local {{.+}}{{\[}}[[ROW]], [[DEPTH]]]
  // CHECK:         ttg.warp_return
  tt.func @carried(%a: !desc, %b: !desc, %tiles: i32, %steps: i32, %c: !desc, %offsets: !tt.ptr<i32>) {
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : !acc
    %last = scf.for %tile = %c0 to %tiles step %c64 iter_args(%done = %c0) -> (i32) : i32 {
      %entry = tt.addptr %offsets, %tile : !tt.ptr<i32>, i32
      %row = tt.load %entry : !tt.ptr<i32>
      %limit = arith.minsi %steps, %tile : i32
      %d:2 = scf.for %k = %c0 to %limit step %c64 iter_args(%acc = %zero, %depth = %c0) -> (!acc, i32) : i32 {
        %deeper = arith.addi %depth, %c64 : i32
        %x = tt.descriptor_load %a[%row, %depth] : !desc -> !operand
        %xs = ttg.local_alloc %x : (!operand) -> !buffer
        %y = tt.descriptor_load %b[%row, %depth] : !desc -> !operand
        %ys = ttg.local_alloc %y : (!operand) -> !buffer
        %yt = ttg.memdesc_trans %ys {order = array<i32: 1, 0>} : !buffer -> !turned
        %next = ttng.warp_group_dot %xs, %yt, %acc {inputPrecision = 0 : i32} : !buffer * !turned -> !acc
        scf.yield %next, %deeper : !acc, i32
      }
      %half = arith.truncf %d#0 : !acc to !half
      %out = ttg.convert_layout %half : !half -> !operand
      tt.descriptor_store %c[%done, %c0], %out : !desc, !operand
      %least = arith.maxsi %done, %c0 : i32
      %more = arith.addi %least, %c64 : i32
      scf.yield %more : i32
    }
    tt.return
  }

  // Descriptors that the kernel makes are made once, before the loop, and captured.
  // CHECK-LABEL: tt.func @made_here
  // CHECK-COUNT-3: tt.make_tensor_descriptor
  // CHECK:       ttg.warp_specialize(
  // CHECK-NOT:     tt.make_tensor_descriptor
  tt.func @made_here(%pa: !tt.ptr<bf16>, %pb: !tt.ptr<bf16>, %pc: !tt.ptr<bf16>, %tiles: i32, %steps: i32, %stride: i64) {
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    %one = arith.constant 1 : i64
    %zero = arith.constant dense<0.0> : !acc
    %a = tt.make_tensor_descriptor %pa, [%tiles, %steps], [%stride, %one] : <bf16>, <tensor<64x64xbf16, #shared>>
    %b = tt.make_tensor_descriptor %pb, [%tiles, %steps], [%stride, %one] : <bf16>, <tensor<64x64xbf16, #shared>>
    %c = tt.make_tensor_descriptor %pc, [%tiles, %steps], [%stride, %one] : <bf16>, <tensor<64x64xbf16, #shared>>
    scf.for %tile = %c0 to %tiles step %c64 : i32 {
      %d = scf.for %k = %c0 to %steps step %c64 iter_args(%acc = %zero) -> (!acc) : i32 {
        %x = tt.descriptor_load %a[%tile, %k] : !desc -> !operand
        %xs = ttg.local_alloc %x : (!operand) -> !buffer
        %y = tt.descriptor_load %b[%tile, %k] : !desc -> !operand
        %ys = ttg.local_alloc %y : (!operand) -> !buffer
        %next = ttng.warp_group_dot %xs, %ys, %acc {inputPrecision = 0 : i32} : !buffer * !buffer -> !acc
        scf.yield %next : !acc
      }
      %half = arith.truncf %d : !acc to !half
      %out = ttg.convert_layout %half : !half -> !operand
      tt.descriptor_store %c[%tile, %c0], %out : !desc, !operand
    }
    tt.return
  }
}
