// RUN: %python %S/../../Inputs/spelled.py %s > %t.mlir
// RUN: tilepass-opt %t.mlir -p 'epilogue-warp-specialize{scheme=split-consumer,stages=3,epilogue-subtile=2,c-buffers=2,late-subtiles=0,alternate-epilogues=true},canonicalize,cse' | %filecheck %s
// RUN: tilepass-opt %t.mlir -p 'epilogue-warp-specialize{scheme=split-consumer,stages=3,epilogue-subtile=1,c-buffers=1,late-subtiles=0,alternate-epilogues=false},canonicalize,cse' | %filecheck %s --check-prefix=FREE

// Eight warps become two consumers of four, each with 64 rows of 128.
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [8, 1], order = [1, 0]}>
#plane = #ttg.blocked<{sizePerThread = [4, 4], threadsPerWarp = [1, 32], warpsPerCTA = [8, 1], order = [1, 0]}>
#line = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [8], order = [0]}>
#row = #ttg.slice<{dim = 0, parent = #plane}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [8, 1], instrShape = [16, 128, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#transposed = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!desc = !tt.tensordesc<tensor<128x64xbf16, #shared>>
!desc_c = !tt.tensordesc<tensor<128x128xbf16, #shared>>
!operand = tensor<128x64xbf16, #blocked>
!buffer = !ttg.memdesc<128x64xbf16, #shared, #smem>
!turned = !ttg.memdesc<64x128xbf16, #transposed, #smem>
!acc = tensor<128x128xf32, #mma>
!half = tensor<128x128xbf16, #mma>
!tile = tensor<128x128xbf16, #blocked>
// The module's number of warps is that of the default region.
// CHECK:       "ttg.num-warps" = 4 : i32
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // The descriptors of C and of the residual move pieces of 64x64; those of A and B stay.
  // CHECK-LABEL: tt.func @matmul
  // CHECK-SAME:  !tt.tensordesc<{{(tensor<)?}}128x64xbf16
  // CHECK-SAME:  !tt.tensordesc<{{(tensor<)?}}128x64xbf16
  // CHECK-SAME:  !tt.tensordesc<{{(tensor<)?}}64x64xbf16
  // CHECK-SAME:  !tt.tensordesc<{{(tensor<)?}}64x64xbf16
  tt.func @matmul(%a: !desc, %b: !desc, %c: !desc_c, %r: !desc_c, %bias: !tt.ptr<f32>, %tiles: i32, %steps: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c128 = arith.constant 128 : i32
    %zero = arith.constant dense<0.0> : !acc
    %program = tt.get_program_id x : i32
    %programs = tt.get_num_programs x : i32
    scf.for %t = %program to %tiles step %programs : i32 {
      %row = arith.muli %t, %c128 : i32
      %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (!acc) : i32 {
        %x = tt.descriptor_load %a[%row, %k] : !desc -> !operand
        %xs = ttg.local_alloc %x : (!operand) -> !buffer
        %y = tt.descriptor_load %b[%c0, %k] : !desc -> !operand
        %ys = ttg.local_alloc %y : (!operand) -> !buffer
        %yt = ttg.memdesc_trans %ys {order = array<i32: 1, 0>} : !buffer -> !turned
        %next = ttng.warp_group_dot %xs, %yt, %acc {inputPrecision = 0 : i32} : !buffer * !turned -> !acc
        scf.yield %next : !acc
      }
      %range = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #line>
      %base = tt.splat %bias : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #line>
      %at = tt.addptr %base, %range : tensor<128x!tt.ptr<f32>, #line>, tensor<128xi32, #line>
      %loaded = tt.load %at : tensor<128x!tt.ptr<f32>, #line>
      %values = ttg.convert_layout %loaded : tensor<128xf32, #line> -> tensor<128xf32, #row>
      %flat = tt.expand_dims %values {axis = 0 : i32} : tensor<128xf32, #row> -> tensor<1x128xf32, #plane>
      %block = tt.broadcast %flat : tensor<1x128xf32, #plane> -> tensor<128x128xf32, #plane>
      %same = ttg.convert_layout %block : tensor<128x128xf32, #plane> -> !acc
      %biased = arith.addf %d, %same : !acc
      %residual = tt.descriptor_load %r[%row, %c0] : !desc_c -> !tile
      %converted = ttg.convert_layout %residual : !tile -> !half
      %wide = arith.extf %converted : !half to !acc
      %sum = arith.addf %biased, %wide : !acc
      %half = arith.truncf %sum : !acc to !half
      %out = ttg.convert_layout %half : !half -> !tile
      tt.descriptor_store %c[%row, %c0], %out : !desc_c, !tile
    }
    tt.return
  }
}
// One ring for both consumers: a slot is empty after two arrivals.
// CHECK:       [[A:%.+]] = ttg.local_alloc : () -> !ttg.memdesc<3x128x64xbf16
// CHECK:       [[B:%.+]] = ttg.local_alloc : () -> !ttg.memdesc<3x128x64xbf16
// CHECK:       [[FULL:%.+]] = ttg.local_alloc : () -> !ttg.memdesc<3x1xi64
// CHECK-COUNT-3: ttng.init_barrier {{.+}}, 1
// CHECK:       [[EMPTY:%.+]] = ttg.local_alloc : () -> !ttg.memdesc<3x1xi64
// CHECK-COUNT-3: ttng.init_barrier {{.+}}, 2
// CHECK:       [[TURNS:%.+]] = ttg.local_alloc : () -> !ttg.memdesc<2x1xi64
// CHECK:       [[OTHER:%.+]] = ttg.memdesc_index [[TURNS]]{{\[}}%c1_i32]
// CHECK:       ttng.init_barrier [[OTHER]], 1
// Each has its own buffers: for the row of the bias, and for pieces of the residual, in whose place
// pieces of C go.
// CHECK:       [[ROW:%.+]] = ttg.local_alloc : () -> !ttg.memdesc<128xf32
// CHECK:       [[C:%.+]] = ttg.local_alloc : () -> !ttg.memdesc<2x64x64xbf16
// CHECK:       [[EMPTIED:%.+]] = ttg.local_alloc : () -> !ttg.memdesc<1x1xi64
// CHECK-NEXT:  [[BACK:%.+]] = ttg.memdesc_index [[EMPTIED]]
// CHECK:       ttg.local_alloc : () -> !ttg.memdesc<2x64x64xbf16
// CHECK-NOT:   ttg.local_alloc : () -> !ttg.memdesc<2x64x64xbf16
// CHECK:       ttg.warp_specialize{{.*}} attributes {requestedRegisters = array<i32: 240, 24, 24, 24>}

// Consumer 0 loads the bias, multiplies the upper half of A with all of B, hands the turn over once
// the first dot is issued, and waits for its own before the epilogue.
// CHECK:       default
// CHECK:         scf.for
// CHECK:           [[BIAS:%.+]] = tt.load {{.+}} : tensor<128x!tt.ptr<f32>
// CHECK:           [[DONE:%.+]]:3 = scf.if
// CHECK:             ttng.wait_barrier
// CHECK:             [[X:%.+]] = ttg.memdesc_index [[A]]
// CHECK:             [[UPPER:%.+]] = ttg.memdesc_subslice [[X]]{{\[}}0, 0] : {{.+}} -> !ttg.memdesc<64x64xbf16, {{.+}}, 128x64>
// CHECK:             [[FIRST:%.+]] = ttng.warp_group_dot [[UPPER]], {{.+}} {inputPrecision = 0 : i32, isAsync = true} : {{.+}} -> tensor<64x128xf32,
// CHECK:             ttng.arrive_barrier [[OTHER]], 1, [[LATER:%.+]] :
// CHECK-NEXT:        ttng.async_tma_store_wait {pendings = 0
// CHECK-NEXT:        ttng.arrive_barrier [[BACK]], 1, [[LATER]] :
// CHECK-NEXT:        ttg.local_store [[BIAS]], [[ROW]]
// CHECK:             scf.for {{.+}} iter_args({{.+}} = [[FIRST]],
// CHECK:               ttng.warp_group_dot_wait {{.+}} {pendings = 1 : i32}
// CHECK-NEXT:          [[BEFORE:%.+]] = ttg.memdesc_index [[EMPTY]]
// CHECK-NEXT:          ttng.arrive_barrier [[BEFORE]], 1
// CHECK:             ttng.warp_group_dot_wait {{.+}} {pendings = 0 : i32}
// CHECK:             ttng.arrive_barrier
// CHECK:           } else {
// CHECK:             ttng.arrive_barrier
// CHECK:           ttng.wait_barrier
// Pieces are halves of the columns; the bias is read in the accumulator's layout.
// CHECK:           tt.reshape [[DONE]]#0 : tensor<64x128xf32, {{.+}}> -> tensor<64x2x64xf32,
// CHECK:           tt.split
// CHECK:           [[LEFT:%.+]] = ttg.memdesc_subslice [[ROW]][0]
// CHECK:           ttg.local_load [[LEFT]] : {{.+}} -> tensor<64xf32, #ttg.slice<{dim = 0, parent = #mma{{.*}}}>>
// CHECK:           ttng.wait_barrier
// CHECK:           [[PIECE:%.+]] = ttg.memdesc_index [[C]]
// CHECK:           ttg.local_load [[PIECE]] : {{.+}} -> tensor<64x64xbf16, #mma
// CHECK-NOT:       ttng.async_tma_store_wait
// CHECK:           ttg.local_store {{.+}}, [[PIECE]] :
// CHECK:           ttng.fence_async_shared
// CHECK:           ttng.async_tma_copy_local_to_global {{.+}}, %c0_i32]
// CHECK:           ttg.memdesc_subslice [[ROW]][64]
// CHECK:           ttng.async_tma_copy_local_to_global {{.+}}, %c64_i32]
// CHECK:         ttng.arrive_barrier
// CHECK:         ttng.async_tma_store_wait {pendings = 0 : i32
// CHECK:         ttg.warp_yield

// Consumer 1 has the lower half.
// CHECK:       partition0({{.+}}) num_warps(4)
// CHECK:         ttg.memdesc_subslice {{.+}}[64, 0] :
// CHECK:         ttg.warp_return
// The producer brings A and B whole.
// CHECK:       partition1({{.+}}) num_warps(1)
// CHECK:         ttng.barrier_expect {{.+}}, 32768
// CHECK-COUNT-2: ttng.async_tma_copy_global_to_local
// CHECK-NOT:     ttng.async_tma_copy_global_to_local
// CHECK:         ttg.warp_return
// A warp for each consumer brings the pieces of its residual.
// CHECK:       partition2({{.+}}) num_warps(1)
// CHECK:         ttng.barrier_expect {{.+}}, 8192
// CHECK:         ttng.async_tma_copy_global_to_local
// CHECK:         ttng.async_tma_copy_global_to_local
// CHECK:         ttg.warp_return
// CHECK:       partition3({{.+}}) num_warps(1)
// CHECK-COUNT-2: ttng.async_tma_copy_global_to_local
// CHECK:         ttg.warp_return

// Consumers that do not take turns: no barrier but those of the rings.
// FREE-NOT:    !ttg.memdesc<2x1xi64
