// RUN: %python %S/../../Inputs/spelled.py %s > %t.mlir
// RUN: tilepass-opt %t.mlir -p 'epilogue-warp-specialize{scheme=cooperative,stages=3},canonicalize,cse' | %filecheck %s
// RUN: tilepass-opt %t.mlir -p 'epilogue-warp-specialize{scheme=none}' | %filecheck %s --check-prefix=NONE
// RUN: tilepass-opt %t.mlir -p 'epilogue-warp-specialize' -Rpass=. 2>&1 >/dev/null | %filecheck %s --check-prefix=AUTO

// The plain kernel of the schemes in which all of the source's warps compute.
// AUTO: epilogue-warp-specialize.mlir.tmp.mlir:[[#]]:5: remark: [epilogue-warp-specialize] passed: split-consumer, {{[0-9]+}} stages, {{.*}}warp-specialize = split-consumer (cost-model: {{.*}}arch=90, dot=shared, tile_m=64, tile_n=64, tile_k=64
// NONE-NOT: ttg.warp_specialize
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#transposed = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!desc = !tt.tensordesc<tensor<64x64xbf16, #shared>>
!operand = tensor<64x64xbf16, #blocked>
!buffer = !ttg.memdesc<64x64xbf16, #shared, #smem>
!turned = !ttg.memdesc<64x64xbf16, #transposed, #smem>
!acc = tensor<64x64xf32, #mma>
!half = tensor<64x64xbf16, #mma>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: tt.func @matmul
  tt.func @matmul(%a: !desc, %b: !desc, %c: !desc, %columns: i32, %tiles: i32, %steps: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : !acc
    %program = tt.get_program_id x : i32
    %programs = tt.get_num_programs x : i32
    // A slot for A and one for B in each of three stages; full and empty barriers.
    // CHECK:       [[A:%.+]] = ttg.local_alloc : () -> !ttg.memdesc<3x64x64xbf16
    // CHECK:       [[B:%.+]] = ttg.local_alloc : () -> !ttg.memdesc<3x64x64xbf16
    // CHECK:       [[FULL:%.+]] = ttg.local_alloc : () -> !ttg.memdesc<3x1xi64
    // CHECK-COUNT-3: ttng.init_barrier {{.+}}, 1
    // CHECK:       [[EMPTY:%.+]] = ttg.local_alloc : () -> !ttg.memdesc<3x1xi64
    // CHECK-COUNT-3: ttng.init_barrier {{.+}}, 1
    // CHECK:       ttg.local_alloc : () -> !ttg.memdesc<1x64x64xbf16
    // CHECK:       ttg.warp_specialize{{.*}} attributes {requestedRegisters = array<i32: 24>}

    // The consumer: a slot goes back when the next dot has been issued, the last one after the loop.
    // CHECK:       default
    // CHECK:         scf.for
    // CHECK:           scf.for {{.+}} iter_args([[ACC:%.+]] = %cst, [[PREVIOUS:%.+]] = {{.+}}, [[SLOT:%.+]] = {{.+}}, [[PARITY:%.+]] = {{.+}}) ->
    // CHECK:             [[READY:%.+]] = ttg.memdesc_index [[FULL]]{{\[}}[[SLOT]]]
    // CHECK:             ttng.wait_barrier [[READY]], [[PARITY]]
    // CHECK:             [[X:%.+]] = ttg.memdesc_index [[A]]{{\[}}[[SLOT]]]
    // CHECK:             [[Y:%.+]] = ttg.memdesc_index [[B]]{{\[}}[[SLOT]]]
    // CHECK:             [[Z:%.+]] = ttg.memdesc_trans [[Y]]
    // CHECK:             [[DOT:%.+]] = ttng.warp_group_dot [[X]], [[Z]], [[ACC]] {inputPrecision = 0 : i32, isAsync = true}
    // CHECK:             ttng.warp_group_dot_wait [[DOT]] {pendings = 1 : i32}
    // CHECK:             [[FREE:%.+]] = ttg.memdesc_index [[EMPTY]]{{\[}}[[PREVIOUS]]]
    // CHECK:             ttng.arrive_barrier [[FREE]], 1, %{{.+}}
    // CHECK:           } {tt.num_stages = 0 : i32}
    // CHECK:           ttng.warp_group_dot_wait {{.+}} {pendings = 0 : i32}
    // CHECK:           ttng.arrive_barrier {{.+}}, 1, %{{.+}}
    // The epilogue: from the accumulator's layout straight into the C buffer.
    // CHECK:           [[HALF:%.+]] = arith.truncf
    // CHECK-NOT:       ttg.convert_layout
    // CHECK:           ttng.async_tma_store_wait {pendings = 0 : i32
    // CHECK:           ttg.local_store [[HALF]], [[OUT:%.+]] :
    // CHECK:           ttng.fence_async_shared {bCluster = false}
    // CHECK:           ttng.async_tma_copy_local_to_global {{.+}} [[OUT]]
    // CHECK:         ttng.async_tma_store_wait {pendings = 0 : i32
    // CHECK:         ttg.warp_yield

    // The producer carries slot and parity through both loops.
    // CHECK:       partition0({{.+}}) num_warps(1)
    // CHECK:         scf.for {{.+}} iter_args({{.+}} = %c0_i32{{.*}}, {{.+}} = %c1_i32{{.*}}) -> (i32, i32)
    // CHECK:           scf.for {{.+}} iter_args
    // CHECK:             ttng.wait_barrier
    // CHECK:             ttng.barrier_expect {{.+}}, 16384
    // CHECK-COUNT-2:     ttng.async_tma_copy_global_to_local
    // CHECK:         ttg.warp_return

    scf.for %tile = %program to %tiles step %programs : i32 {
      %row = arith.divsi %tile, %columns : i32
      %m = arith.muli %row, %c64 : i32
      %column = arith.remsi %tile, %columns : i32
      %n = arith.muli %column, %c64 : i32
      %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (!acc) : i32 {
        %depth = arith.muli %k, %c64 : i32
        %x = tt.descriptor_load %a[%m, %depth] : !desc -> !operand
        %xs = ttg.local_alloc %x : (!operand) -> !buffer
        %y = tt.descriptor_load %b[%n, %depth] : !desc -> !operand
        %ys = ttg.local_alloc %y : (!operand) -> !buffer
        %yt = ttg.memdesc_trans %ys {order = array<i32: 1, 0>} : !buffer -> !turned
        %next = ttng.warp_group_dot %xs, %yt, %acc {inputPrecision = 0 : i32} : !buffer * !turned -> !acc
        scf.yield %next : !acc
      }
      %half = arith.truncf %d : !acc to !half
      %out = ttg.convert_layout %half : !half -> !operand
      tt.descriptor_store %c[%m, %n], %out : !desc, !operand
    }
    tt.return
  }
}
