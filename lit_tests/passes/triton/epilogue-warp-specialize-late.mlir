// RUN: %python %S/../../Inputs/spelled.py %s > %t.mlir
// RUN: tilepass-opt %t.mlir -p 'epilogue-warp-specialize{scheme=split-consumer,stages=3,epilogue-subtile=2,c-buffers=2,late-subtiles=1},canonicalize,cse' | %filecheck %s

// Of two pieces the second waits for the next tile's first dot.
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
// CHECK-LABEL: tt.func @matmul
// CHECK:         [[OUTSIDE:%.+]] = arith.constant 1073741824 : i32
// CHECK:         [[ROW:%.+]] = ttg.local_alloc : () -> !ttg.memdesc<128xf32
// CHECK:         [[C:%.+]] = ttg.local_alloc : () -> !ttg.memdesc<2x64x64xbf16
// CHECK:         default
// The tile loop carries the second half of the columns and the tile that they are of. Late pieces of
// no tile read a row of zeros.
// CHECK-NEXT:      ttg.local_store {{.+}}, [[ROW]]
// CHECK-NEXT:      [[END:%.+]]:5 = scf.for [[TILE:%.+]] = [[FIRST:%.+]] to {{.+}} iter_args({{.+}}, {{.+}}, [[SLOT:%.+]] = %c0_i32, [[LATE:%.+]] = {{.+}}, [[BEFORE:%.+]] = [[FIRST]]) -> (i32, i32, i32, tensor<64x64xf32, {{.+}}>, i32)
// CHECK:             [[LOADED:%.+]] = tt.load
// CHECK:             [[REAL:%.+]] = arith.cmpi ne, [[TILE]], [[FIRST]]
// CHECK:             [[SUM:%.+]]:3 = scf.if
// CHECK:               ttng.warp_group_dot {{.+}}isAsync = true
// CHECK-NEXT:          [[AT:%.+]] = arith.muli [[BEFORE]],
// CHECK-NEXT:          [[HALF:%.+]] = ttg.memdesc_subslice [[ROW]][64]
// CHECK-NEXT:          ttg.local_load [[HALF]] : {{.+}} -> tensor<64xf32, #ttg.slice<{dim = 0, parent = #mma{{.*}}}>>
// CHECK:               arith.addf [[LATE]],
// CHECK:               ttng.async_tma_store_wait {pendings = 1 : i32
// CHECK-NEXT:          [[BUFFER:%.+]] = ttg.memdesc_index [[C]]{{\[}}[[SLOT]]]
// CHECK-NEXT:          ttg.local_store {{.+}}, [[BUFFER]]
// CHECK-NEXT:          ttng.fence_async_shared
// Before the first tile the copy goes outside of the array.
// CHECK-NEXT:          [[M:%.+]] = arith.select [[REAL]], [[AT]], [[OUTSIDE]]
// CHECK-NEXT:          [[N:%.+]] = arith.select [[REAL]], %c64_i32, [[OUTSIDE]]
// CHECK-NEXT:          ttng.async_tma_copy_local_to_global {{.+}}{{\[}}[[M]], [[N]]] [[BUFFER]]
// CHECK-NEXT:          ttg.local_store [[LOADED]], [[ROW]]
// CHECK:               scf.for
// A tile without steps has late pieces to store, too.
// CHECK:             } else {
// CHECK:               ttng.async_tma_copy_local_to_global
// CHECK-NEXT:          ttg.local_store [[LOADED]], [[ROW]]
// CHECK:             {{%.+}}, [[RIGHT:%.+]] = tt.split
// CHECK:             [[NEXT:%.+]] = ttg.convert_layout [[RIGHT]]
// CHECK:             ttg.memdesc_subslice [[ROW]][0]
// CHECK:             ttng.async_tma_copy_local_to_global
// CHECK-NOT:         ttng.async_tma_copy_local_to_global
// CHECK:             scf.yield {{.+}}, [[NEXT]], [[TILE]] : i32, i32, i32, tensor<64x64xf32,
// What is late of the last tile.
// CHECK:           [[ANY:%.+]] = arith.cmpi slt, [[FIRST]],
// CHECK-NEXT:      scf.if [[ANY]] {
// CHECK-NEXT:        arith.muli [[END]]#4,
// CHECK:             ttng.async_tma_copy_local_to_global
// CHECK-NEXT:      }
// CHECK-NEXT:      ttng.async_tma_store_wait {pendings = 0 : i32
// CHECK:           ttg.warp_yield
