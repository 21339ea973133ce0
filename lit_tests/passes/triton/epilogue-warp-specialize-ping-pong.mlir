// RUN: %python %S/../../Inputs/spelled.py %s > %t.mlir
// RUN: tilepass-opt %t.mlir --split-input-file -p 'epilogue-warp-specialize{scheme=ping-pong,stages=3},canonicalize,cse' | %filecheck %s

// Eight warps become two groups of four, each with every other tile.
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
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @matmul(%a: !desc, %b: !desc, %c: !desc_c, %bias: !tt.ptr<f32>, %tiles: i32, %steps: i32) {
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
      %half = arith.truncf %biased : !acc to !half
      %out = ttg.convert_layout %half : !half -> !tile
      tt.descriptor_store %c[%row, %c0], %out : !desc_c, !tile
    }
    tt.return
  }
}

// CHECK:         "ttg.num-warps" = 4 : i32
// CHECK-LABEL:   tt.func @matmul
// CHECK:         [[PROGRAM:%.+]] = tt.get_program_id
// CHECK:         [[PROGRAMS:%.+]] = tt.get_num_programs
// One ring for both groups: each slot is read by one of them.
// CHECK:         [[A:%.+]] = ttg.local_alloc : () -> !ttg.memdesc<3x128x64xbf16
// CHECK:         ttg.local_alloc : () -> !ttg.memdesc<3x128x64xbf16
// CHECK:         [[FULL:%.+]] = ttg.local_alloc : () -> !ttg.memdesc<3x1xi64
// CHECK-COUNT-3: ttng.init_barrier {{.+}}, 1
// CHECK:         ttg.local_alloc : () -> !ttg.memdesc<3x1xi64
// CHECK-COUNT-3: ttng.init_barrier {{.+}}, 1
// CHECK:         [[TURNS:%.+]] = ttg.local_alloc : () -> !ttg.memdesc<2x1xi64
// CHECK-NEXT:    [[OWN:%.+]] = ttg.memdesc_index [[TURNS]]{{\[}}%c0_i32]
// CHECK-NEXT:    ttng.init_barrier [[OWN]], 1
// CHECK-NEXT:    [[OTHER:%.+]] = ttg.memdesc_index [[TURNS]]{{\[}}%c1_i32]
// CHECK-NEXT:    ttng.init_barrier [[OTHER]], 1
// CHECK:         [[ROW:%.+]] = ttg.local_alloc : () -> !ttg.memdesc<128xf32
// CHECK:         [[C:%.+]] = ttg.local_alloc : () -> !ttg.memdesc<2x128x64xbf16
// CHECK:         ttg.warp_specialize{{.*}} attributes {requestedRegisters = array<i32: 240, 24>}

// Where a group stands in the ring follows from the number of steps before. Its turn ends when its
// last dot is issued.
// CHECK:         default
// CHECK:           [[TWICE:%.+]] = arith.muli [[PROGRAMS]], %c2_i32
// CHECK-NEXT:      scf.for {{.+}} = [[PROGRAM]] to {{.+}} step [[TWICE]] iter_args([[INDEX:%.+]] = %c0_i32, [[TURN:%.+]] = %c1_i32, {{.+}} = %c0_i32)
// CHECK:             [[BIAS:%.+]] = tt.load
// CHECK:             ttng.wait_barrier [[OWN]], [[TURN]]
// CHECK:             [[SLOT:%.+]] = arith.remsi [[INDEX]], %c3_i32
// CHECK:             [[SUM:%.+]] = scf.if {{.+}} -> (tensor<128x128xf32, #mma>)
// CHECK:               ttg.memdesc_index [[FULL]]{{\[}}[[SLOT]]]
// CHECK:               ttng.wait_barrier
// CHECK:               ttng.warp_group_dot {{.+}}isAsync = true} : {{.+}} -> tensor<128x128xf32,
// CHECK-NEXT:          ttg.local_store [[BIAS]], [[ROW]]
// CHECK:               scf.for
// CHECK:               } {tt.num_stages = 0 : i32}
// CHECK-NEXT:          ttng.arrive_barrier [[OTHER]], 1
// CHECK-NEXT:          ttng.warp_group_dot_wait {{.+}} {pendings = 0 : i32}
// CHECK:             } else {
// CHECK-NEXT:          ttg.local_store [[BIAS]], [[ROW]]
// CHECK-NEXT:          ttng.arrive_barrier [[OTHER]], 1
// CHECK:             tt.reshape [[SUM]]
// CHECK:             ttg.memdesc_subslice [[ROW]][0]
// CHECK:             ttng.async_tma_store_wait {pendings = 1 : i32
// CHECK:             ttng.async_tma_copy_local_to_global {{.+}}, %c0_i32]
// CHECK:             ttg.memdesc_subslice [[ROW]][64]
// CHECK:             ttng.async_tma_copy_local_to_global {{.+}}, %c64_i32]
// CHECK:           ttng.async_tma_store_wait {pendings = 0 : i32
// CHECK:           ttg.warp_yield

// The other group starts one tile later.
// CHECK:         partition0({{.+}}) num_warps(4)
// CHECK:           [[SECOND:%.+]] = arith.addi
// CHECK:           scf.for {{%.+}} = [[SECOND]] to
// CHECK:             ttng.warp_group_dot {{.+}}isAsync = true
// CHECK:           ttg.warp_return
// CHECK:         partition1({{.+}}) num_warps(1)
// CHECK:           ttng.barrier_expect {{.+}}, 32768
// CHECK-COUNT-2:   ttng.async_tma_copy_global_to_local
// CHECK:           ttg.warp_return

// -----

// A row's maximum cannot be computed for a part of the row: the source's four warps compute it as it
// stands.
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#rows = #ttg.slice<{dim = 1, parent = #mma}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!desc = !tt.tensordesc<tensor<64x64xbf16, #shared>>
!operand = tensor<64x64xbf16, #blocked>
!buffer = !ttg.memdesc<64x64xbf16, #shared, #smem>
!acc = tensor<64x64xf32, #mma>
!half = tensor<64x64xbf16, #mma>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @normalized(%a: !desc, %b: !desc, %c: !desc, %tiles: i32, %steps: i32) {
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
      %most = "tt.reduce"(%d) <{axis = 1 : i32}> ({
      ^bb0(%one: f32, %other: f32):
        %larger = arith.maxnumf %one, %other : f32
        tt.reduce.return %larger : f32
      }) : (!acc) -> tensor<64xf32, #rows>
      %line = tt.expand_dims %most {axis = 1 : i32} : tensor<64xf32, #rows> -> tensor<64x1xf32, #mma>
      %block = tt.broadcast %line : tensor<64x1xf32, #mma> -> !acc
      %scaled = arith.divf %d, %block : !acc
      %half = arith.truncf %scaled : !acc to !half
      tt.descriptor_store %c[%tile, %c0], %half : !desc, !half
    }
    tt.return
  }
}
// CHECK-LABEL:   tt.func @normalized
// CHECK:         [[STAGED:%.+]] = ttg.local_alloc : () -> !ttg.memdesc<2x64x64xbf16
// CHECK:         default
// CHECK:           scf.for {{.+}} step %c2_i32 iter_args
// CHECK:             ttng.wait_barrier
// CHECK:             scf.for {{.+}} iter_args([[ACC:%.+]] = %cst,
// CHECK:               ttng.warp_group_dot {{.+}}, [[ACC]] {inputPrecision = 0 : i32, isAsync = true}
// CHECK:             } {tt.num_stages = 0 : i32}
// CHECK-NEXT:        ttng.arrive_barrier
// CHECK-NEXT:        ttng.warp_group_dot_wait {{.+}} {pendings = 0 : i32}
// CHECK:             tt.reduce
// CHECK:             ttng.async_tma_store_wait {pendings = 0 : i32
// CHECK-NEXT:        [[MINE:%.+]] = ttg.memdesc_index [[STAGED]]{{\[}}%c0_i32]
// CHECK-NEXT:        ttg.local_store {{.+}}, [[MINE]]
// CHECK:             ttng.async_tma_copy_local_to_global {{.+}} [[MINE]]
// CHECK:           ttng.async_tma_store_wait {pendings = 0 : i32
// CHECK:           ttg.warp_yield
// CHECK:         partition0({{.+}}) num_warps(4)
// CHECK:           scf.for {{%.+}} = %c1_i32{{.*}} to
