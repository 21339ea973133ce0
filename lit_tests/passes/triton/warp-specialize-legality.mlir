// RUN: %python %S/../../Inputs/spelled.py %s > %t.mlir
// RUN: tilepass-opt %t.mlir --split-input-file --verify-diagnostics -p warp-specialize-legality
// RUN: tilepass-opt %t.mlir --split-input-file -p 'warp-specialize-legality{mode=guard}' | %filecheck %s

// What upstream does with a marked loop is the same in Triton 3.6 to 3.9 for all of these.
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 128, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#transposed = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!desc = !tt.tensordesc<tensor<128x64xbf16, #shared>>
!c_desc = !tt.tensordesc<tensor<128x128xbf16, #shared>>
!operand = tensor<128x64xbf16, #blocked>
!buffer = !ttg.memdesc<128x64xbf16, #shared, #smem>
!turned = !ttg.memdesc<64x128xbf16, #transposed, #smem>
!acc = tensor<128x128xf32, #mma>
!half = tensor<128x128xbf16, #mma>
!out = tensor<128x128xbf16, #blocked>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: tt.func @in_the_kernel
  // CHECK:         } {tt.warp_specialize}
  tt.func @in_the_kernel(%p: !tt.ptr<bf16>, %n: i32, %s: i64) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c128 = arith.constant 128 : i32
    %zero = arith.constant dense<0.0> : !acc
    %a = "tt.make_tensor_descriptor"(%p, %n, %n, %s, %s) <{operandSegmentSizes = array<i32: 1, 2, 2>, padding = 1 : i32}> : (!tt.ptr<bf16>, i32, i32, i64, i64) -> !desc
    %b = "tt.make_tensor_descriptor"(%p, %n, %n, %s, %s) <{operandSegmentSizes = array<i32: 1, 2, 2>, padding = 1 : i32}> : (!tt.ptr<bf16>, i32, i32, i64, i64) -> !desc
    %c = "tt.make_tensor_descriptor"(%p, %n, %n, %s, %s) <{operandSegmentSizes = array<i32: 1, 2, 2>, padding = 1 : i32}> : (!tt.ptr<bf16>, i32, i32, i64, i64) -> !c_desc
    // expected-remark@+1 {{upstream works on this loop: two groups, each half of the tile along M}}
    scf.for %tile = %c0 to %n step %c1 : i32 {
      %row = arith.muli %tile, %c128 : i32
      %acc = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (!acc) : i32 {
        %a_tile = tt.descriptor_load %a[%row, %i] : !desc -> !operand
        %a_slot = ttg.local_alloc %a_tile : (!operand) -> !buffer
        %b_tile = tt.descriptor_load %b[%c0, %i] : !desc -> !operand
        %b_slot = ttg.local_alloc %b_tile : (!operand) -> !buffer
        %b_turned = ttg.memdesc_trans %b_slot {order = array<i32: 1, 0>} : !buffer -> !turned
        %next = ttng.warp_group_dot %a_slot, %b_turned, %sum {inputPrecision = 0 : i32} : !buffer * !turned -> !acc
        scf.yield %next : !acc
      }
      %half = arith.truncf %acc : !acc to !half
      %c_tile = ttg.convert_layout %half : !half -> !out
      tt.descriptor_store %c[%row, %c0], %c_tile : !c_desc, !out
    } {tt.warp_specialize}
    tt.return
  }

  // CHECK-LABEL: tt.func @computed_operand
  // CHECK:         } {tt.warp_specialize}
  tt.func @computed_operand(%p: !tt.ptr<bf16>, %n: i32, %s: i64) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c128 = arith.constant 128 : i32
    %zero = arith.constant dense<0.0> : !acc
    %a = "tt.make_tensor_descriptor"(%p, %n, %n, %s, %s) <{operandSegmentSizes = array<i32: 1, 2, 2>, padding = 1 : i32}> : (!tt.ptr<bf16>, i32, i32, i64, i64) -> !desc
    %b = "tt.make_tensor_descriptor"(%p, %n, %n, %s, %s) <{operandSegmentSizes = array<i32: 1, 2, 2>, padding = 1 : i32}> : (!tt.ptr<bf16>, i32, i32, i64, i64) -> !desc
    %c = "tt.make_tensor_descriptor"(%p, %n, %n, %s, %s) <{operandSegmentSizes = array<i32: 1, 2, 2>, padding = 1 : i32}> : (!tt.ptr<bf16>, i32, i32, i64, i64) -> !c_desc
    // expected-remark@+1 {{not judged: nothing is known to go wrong, but an operand of the dot goes through arith.addf}}
    scf.for %tile = %c0 to %n step %c1 : i32 {
      %row = arith.muli %tile, %c128 : i32
      %acc = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (!acc) : i32 {
        %a_tile = tt.descriptor_load %a[%row, %i] : !desc -> !operand
        %a_twice = arith.addf %a_tile, %a_tile : !operand
        %a_slot = ttg.local_alloc %a_twice : (!operand) -> !buffer
        %b_tile = tt.descriptor_load %b[%c0, %i] : !desc -> !operand
        %b_slot = ttg.local_alloc %b_tile : (!operand) -> !buffer
        %b_turned = ttg.memdesc_trans %b_slot {order = array<i32: 1, 0>} : !buffer -> !turned
        %next = ttng.warp_group_dot %a_slot, %b_turned, %sum {inputPrecision = 0 : i32} : !buffer * !turned -> !acc
        scf.yield %next : !acc
      }
      %half = arith.truncf %acc : !acc to !half
      %c_tile = ttg.convert_layout %half : !half -> !out
      tt.descriptor_store %c[%row, %c0], %c_tile : !c_desc, !out
    } {tt.warp_specialize}
    tt.return
  }

  // B is not cut: where its descriptor comes from does not matter.
  // CHECK-LABEL: tt.func @b_by_host
  // CHECK:         } {tt.warp_specialize}
  tt.func @b_by_host(%p: !tt.ptr<bf16>, %n: i32, %s: i64, %b: !desc) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c128 = arith.constant 128 : i32
    %zero = arith.constant dense<0.0> : !acc
    %a = "tt.make_tensor_descriptor"(%p, %n, %n, %s, %s) <{operandSegmentSizes = array<i32: 1, 2, 2>, padding = 1 : i32}> : (!tt.ptr<bf16>, i32, i32, i64, i64) -> !desc
    %c = "tt.make_tensor_descriptor"(%p, %n, %n, %s, %s) <{operandSegmentSizes = array<i32: 1, 2, 2>, padding = 1 : i32}> : (!tt.ptr<bf16>, i32, i32, i64, i64) -> !c_desc
    // expected-remark@+1 {{upstream works on this loop}}
    scf.for %tile = %c0 to %n step %c1 : i32 {
      %row = arith.muli %tile, %c128 : i32
      %acc = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (!acc) : i32 {
        %a_tile = tt.descriptor_load %a[%row, %i] : !desc -> !operand
        %a_slot = ttg.local_alloc %a_tile : (!operand) -> !buffer
        %b_tile = tt.descriptor_load %b[%c0, %i] : !desc -> !operand
        %b_slot = ttg.local_alloc %b_tile : (!operand) -> !buffer
        %b_turned = ttg.memdesc_trans %b_slot {order = array<i32: 1, 0>} : !buffer -> !turned
        %next = ttng.warp_group_dot %a_slot, %b_turned, %sum {inputPrecision = 0 : i32} : !buffer * !turned -> !acc
        scf.yield %next : !acc
      }
      %half = arith.truncf %acc : !acc to !half
      %c_tile = ttg.convert_layout %half : !half -> !out
      tt.descriptor_store %c[%row, %c0], %c_tile : !c_desc, !out
    } {tt.warp_specialize}
    tt.return
  }

  // CHECK-LABEL: tt.func @c_by_host
  // CHECK:         scf.for
  // CHECK-NOT:     tt.warp_specialize
  tt.func @c_by_host(%p: !tt.ptr<bf16>, %n: i32, %s: i64, %c: !c_desc) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c128 = arith.constant 128 : i32
    %zero = arith.constant dense<0.0> : !acc
    %a = "tt.make_tensor_descriptor"(%p, %n, %n, %s, %s) <{operandSegmentSizes = array<i32: 1, 2, 2>, padding = 1 : i32}> : (!tt.ptr<bf16>, i32, i32, i64, i64) -> !desc
    %b = "tt.make_tensor_descriptor"(%p, %n, %n, %s, %s) <{operandSegmentSizes = array<i32: 1, 2, 2>, padding = 1 : i32}> : (!tt.ptr<bf16>, i32, i32, i64, i64) -> !desc
    // expected-remark@+1 {{upstream fails on this loop: a descriptor that is an argument of the function keeps its box when the tile is cut along M; make the descriptor in the kernel}}
    scf.for %tile = %c0 to %n step %c1 : i32 {
      %row = arith.muli %tile, %c128 : i32
      %acc = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (!acc) : i32 {
        %a_tile = tt.descriptor_load %a[%row, %i] : !desc -> !operand
        %a_slot = ttg.local_alloc %a_tile : (!operand) -> !buffer
        %b_tile = tt.descriptor_load %b[%c0, %i] : !desc -> !operand
        %b_slot = ttg.local_alloc %b_tile : (!operand) -> !buffer
        %b_turned = ttg.memdesc_trans %b_slot {order = array<i32: 1, 0>} : !buffer -> !turned
        %next = ttng.warp_group_dot %a_slot, %b_turned, %sum {inputPrecision = 0 : i32} : !buffer * !turned -> !acc
        scf.yield %next : !acc
      }
      %half = arith.truncf %acc : !acc to !half
      %c_tile = ttg.convert_layout %half : !half -> !out
      tt.descriptor_store %c[%row, %c0], %c_tile : !c_desc, !out
    } {tt.warp_specialize}
    tt.return
  }

  // The second group's rows are counted from the middle of the tile twice.
  // CHECK-LABEL: tt.func @mask
  // CHECK:         scf.for
  // CHECK-NOT:     tt.warp_specialize
  tt.func @mask(%p: !tt.ptr<bf16>, %n: i32, %s: i64, %pointers: tensor<128x128x!tt.ptr<bf16>, #blocked>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c128 = arith.constant 128 : i32
    %zero = arith.constant dense<0.0> : !acc
    %a = "tt.make_tensor_descriptor"(%p, %n, %n, %s, %s) <{operandSegmentSizes = array<i32: 1, 2, 2>, padding = 1 : i32}> : (!tt.ptr<bf16>, i32, i32, i64, i64) -> !desc
    %b = "tt.make_tensor_descriptor"(%p, %n, %n, %s, %s) <{operandSegmentSizes = array<i32: 1, 2, 2>, padding = 1 : i32}> : (!tt.ptr<bf16>, i32, i32, i64, i64) -> !desc
    %range = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
    %rows = tt.splat %n : i32 -> tensor<128xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
    // expected-remark@+1 {{upstream miscompiles this loop: a coordinate of a TMA access is also spread over a tensor (pointers, a mask)}}
    scf.for %tile = %c0 to %n step %c1 : i32 {
      %row = arith.muli %tile, %c128 : i32
      %acc = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (!acc) : i32 {
        %a_tile = tt.descriptor_load %a[%row, %i] : !desc -> !operand
        %a_slot = ttg.local_alloc %a_tile : (!operand) -> !buffer
        %b_tile = tt.descriptor_load %b[%c0, %i] : !desc -> !operand
        %b_slot = ttg.local_alloc %b_tile : (!operand) -> !buffer
        %b_turned = ttg.memdesc_trans %b_slot {order = array<i32: 1, 0>} : !buffer -> !turned
        %next = ttng.warp_group_dot %a_slot, %b_turned, %sum {inputPrecision = 0 : i32} : !buffer * !turned -> !acc
        scf.yield %next : !acc
      }
      %half = arith.truncf %acc : !acc to !half
      %c_tile = ttg.convert_layout %half : !half -> !out
      %first = tt.splat %row : i32 -> tensor<128xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
      %row_numbers = arith.addi %first, %range : tensor<128xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
      %inside = arith.cmpi slt, %row_numbers, %rows : tensor<128xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
      %column = tt.expand_dims %inside {axis = 1 : i32} : tensor<128xi1, #ttg.slice<{dim = 1, parent = #blocked}>> -> tensor<128x1xi1, #blocked>
      %mask = tt.broadcast %column : tensor<128x1xi1, #blocked> -> tensor<128x128xi1, #blocked>
      tt.store %pointers, %c_tile, %mask : tensor<128x128x!tt.ptr<bf16>, #blocked>
    } {tt.warp_specialize}
    tt.return
  }

  // CHECK-LABEL: tt.func @a_by_pointers
  // CHECK:         scf.for
  // CHECK-NOT:     tt.warp_specialize
  tt.func @a_by_pointers(%p: !tt.ptr<bf16>, %n: i32, %s: i64, %pointers: tensor<128x64x!tt.ptr<bf16>, #blocked>, %c: !c_desc) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c128 = arith.constant 128 : i32
    %zero = arith.constant dense<0.0> : !acc
    %a = "tt.make_tensor_descriptor"(%p, %n, %n, %s, %s) <{operandSegmentSizes = array<i32: 1, 2, 2>, padding = 1 : i32}> : (!tt.ptr<bf16>, i32, i32, i64, i64) -> !desc
    %b = "tt.make_tensor_descriptor"(%p, %n, %n, %s, %s) <{operandSegmentSizes = array<i32: 1, 2, 2>, padding = 1 : i32}> : (!tt.ptr<bf16>, i32, i32, i64, i64) -> !desc
    // expected-remark@+1 {{upstream fails on this loop: an operand is loaded through pointers, and the loading warp can only do so by TMA}}
    scf.for %tile = %c0 to %n step %c1 : i32 {
      %row = arith.muli %tile, %c128 : i32
      %acc = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (!acc) : i32 {
        %a_tile = tt.load %pointers : tensor<128x64x!tt.ptr<bf16>, #blocked>
        %a_slot = ttg.local_alloc %a_tile : (!operand) -> !buffer
        %b_tile = tt.descriptor_load %b[%c0, %i] : !desc -> !operand
        %b_slot = ttg.local_alloc %b_tile : (!operand) -> !buffer
        %b_turned = ttg.memdesc_trans %b_slot {order = array<i32: 1, 0>} : !buffer -> !turned
        %next = ttng.warp_group_dot %a_slot, %b_turned, %sum {inputPrecision = 0 : i32} : !buffer * !turned -> !acc
        scf.yield %next : !acc
      }
      %half = arith.truncf %acc : !acc to !half
      %c_tile = ttg.convert_layout %half : !half -> !out
      tt.descriptor_store %c[%row, %c0], %c_tile : !c_desc, !out
    } {tt.warp_specialize}
    tt.return
  }

  // CHECK-LABEL: tt.func @row_is_the_loop_variable
  // CHECK:         scf.for
  // CHECK-NOT:     tt.warp_specialize
  tt.func @row_is_the_loop_variable(%p: !tt.ptr<bf16>, %n: i32, %s: i64) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c128 = arith.constant 128 : i32
    %zero = arith.constant dense<0.0> : !acc
    %a = "tt.make_tensor_descriptor"(%p, %n, %n, %s, %s) <{operandSegmentSizes = array<i32: 1, 2, 2>, padding = 1 : i32}> : (!tt.ptr<bf16>, i32, i32, i64, i64) -> !desc
    %b = "tt.make_tensor_descriptor"(%p, %n, %n, %s, %s) <{operandSegmentSizes = array<i32: 1, 2, 2>, padding = 1 : i32}> : (!tt.ptr<bf16>, i32, i32, i64, i64) -> !desc
    %c = "tt.make_tensor_descriptor"(%p, %n, %n, %s, %s) <{operandSegmentSizes = array<i32: 1, 2, 2>, padding = 1 : i32}> : (!tt.ptr<bf16>, i32, i32, i64, i64) -> !c_desc
    // expected-remark@+1 {{upstream fails on this loop: a coordinate that would be moved to the half's start is not a result of an operation (a loop's variable or an argument)}}
    scf.for %tile = %c0 to %n step %c1 : i32 {
      %acc = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (!acc) : i32 {
        %a_tile = tt.descriptor_load %a[%tile, %i] : !desc -> !operand
        %a_slot = ttg.local_alloc %a_tile : (!operand) -> !buffer
        %b_tile = tt.descriptor_load %b[%c0, %i] : !desc -> !operand
        %b_slot = ttg.local_alloc %b_tile : (!operand) -> !buffer
        %b_turned = ttg.memdesc_trans %b_slot {order = array<i32: 1, 0>} : !buffer -> !turned
        %next = ttng.warp_group_dot %a_slot, %b_turned, %sum {inputPrecision = 0 : i32} : !buffer * !turned -> !acc
        scf.yield %next : !acc
      }
      %half = arith.truncf %acc : !acc to !half
      %c_tile = ttg.convert_layout %half : !half -> !out
      tt.descriptor_store %c[%tile, %c0], %c_tile : !c_desc, !out
    } {tt.warp_specialize}
    tt.return
  }

  // The assumption alone does the harm: it goes, the attribute stays.
  // CHECK-LABEL: tt.func @assumption
  // CHECK-NOT:     llvm.intr.assume
  // CHECK:         } {tt.warp_specialize}
  tt.func @assumption(%p: !tt.ptr<bf16>, %n: i32, %s: i64) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c128 = arith.constant 128 : i32
    %zero = arith.constant dense<0.0> : !acc
    %a = "tt.make_tensor_descriptor"(%p, %n, %n, %s, %s) <{operandSegmentSizes = array<i32: 1, 2, 2>, padding = 1 : i32}> : (!tt.ptr<bf16>, i32, i32, i64, i64) -> !desc
    %b = "tt.make_tensor_descriptor"(%p, %n, %n, %s, %s) <{operandSegmentSizes = array<i32: 1, 2, 2>, padding = 1 : i32}> : (!tt.ptr<bf16>, i32, i32, i64, i64) -> !desc
    %c = "tt.make_tensor_descriptor"(%p, %n, %n, %s, %s) <{operandSegmentSizes = array<i32: 1, 2, 2>, padding = 1 : i32}> : (!tt.ptr<bf16>, i32, i32, i64, i64) -> !c_desc
    %some = arith.cmpi sgt, %n, %c0 : i32
    llvm.intr.assume %some : i1
    // expected-remark@+1 {{upstream fails on this loop: an assumption outside the loop keeps alive what the pass destroys}}
    scf.for %tile = %c0 to %n step %c1 : i32 {
      %row = arith.muli %tile, %c128 : i32
      %acc = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (!acc) : i32 {
        %a_tile = tt.descriptor_load %a[%row, %i] : !desc -> !operand
        %a_slot = ttg.local_alloc %a_tile : (!operand) -> !buffer
        %b_tile = tt.descriptor_load %b[%c0, %i] : !desc -> !operand
        %b_slot = ttg.local_alloc %b_tile : (!operand) -> !buffer
        %b_turned = ttg.memdesc_trans %b_slot {order = array<i32: 1, 0>} : !buffer -> !turned
        %next = ttng.warp_group_dot %a_slot, %b_turned, %sum {inputPrecision = 0 : i32} : !buffer * !turned -> !acc
        scf.yield %next : !acc
      }
      %half = arith.truncf %acc : !acc to !half
      %c_tile = ttg.convert_layout %half : !half -> !out
      tt.descriptor_store %c[%row, %c0], %c_tile : !c_desc, !out
    } {tt.warp_specialize}
    tt.return
  }

  // Where the attribute has to go, the assumption is kept.
  // CHECK-LABEL: tt.func @assumption_and_more
  // CHECK:         llvm.intr.assume
  // CHECK:         scf.for
  // CHECK-NOT:     tt.warp_specialize
  tt.func @assumption_and_more(%p: !tt.ptr<bf16>, %n: i32, %s: i64, %c: !c_desc) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c128 = arith.constant 128 : i32
    %zero = arith.constant dense<0.0> : !acc
    %a = "tt.make_tensor_descriptor"(%p, %n, %n, %s, %s) <{operandSegmentSizes = array<i32: 1, 2, 2>, padding = 1 : i32}> : (!tt.ptr<bf16>, i32, i32, i64, i64) -> !desc
    %b = "tt.make_tensor_descriptor"(%p, %n, %n, %s, %s) <{operandSegmentSizes = array<i32: 1, 2, 2>, padding = 1 : i32}> : (!tt.ptr<bf16>, i32, i32, i64, i64) -> !desc
    %some = arith.cmpi sgt, %n, %c0 : i32
    llvm.intr.assume %some : i1
    // expected-remark@+1 {{upstream fails on this loop: a descriptor that is an argument}}
    scf.for %tile = %c0 to %n step %c1 : i32 {
      %row = arith.muli %tile, %c128 : i32
      %acc = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (!acc) : i32 {
        %a_tile = tt.descriptor_load %a[%row, %i] : !desc -> !operand
        %a_slot = ttg.local_alloc %a_tile : (!operand) -> !buffer
        %b_tile = tt.descriptor_load %b[%c0, %i] : !desc -> !operand
        %b_slot = ttg.local_alloc %b_tile : (!operand) -> !buffer
        %b_turned = ttg.memdesc_trans %b_slot {order = array<i32: 1, 0>} : !buffer -> !turned
        %next = ttng.warp_group_dot %a_slot, %b_turned, %sum {inputPrecision = 0 : i32} : !buffer * !turned -> !acc
        scf.yield %next : !acc
      }
      %half = arith.truncf %acc : !acc to !half
      %c_tile = ttg.convert_layout %half : !half -> !out
      tt.descriptor_store %c[%row, %c0], %c_tile : !c_desc, !out
    } {tt.warp_specialize}
    tt.return
  }

  // CHECK-LABEL: tt.func @else_branch
  // CHECK:         } {tt.warp_specialize}
  tt.func @else_branch(%p: !tt.ptr<bf16>, %n: i32, %s: i64) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c128 = arith.constant 128 : i32
    %zero = arith.constant dense<0.0> : !acc
    %a = "tt.make_tensor_descriptor"(%p, %n, %n, %s, %s) <{operandSegmentSizes = array<i32: 1, 2, 2>, padding = 1 : i32}> : (!tt.ptr<bf16>, i32, i32, i64, i64) -> !desc
    %b = "tt.make_tensor_descriptor"(%p, %n, %n, %s, %s) <{operandSegmentSizes = array<i32: 1, 2, 2>, padding = 1 : i32}> : (!tt.ptr<bf16>, i32, i32, i64, i64) -> !desc
    %c = "tt.make_tensor_descriptor"(%p, %n, %n, %s, %s) <{operandSegmentSizes = array<i32: 1, 2, 2>, padding = 1 : i32}> : (!tt.ptr<bf16>, i32, i32, i64, i64) -> !c_desc
    // expected-remark@+1 {{upstream ignores this loop: a function with an else branch is not warp specialized}}
    scf.for %tile = %c0 to %n step %c1 : i32 {
      %last = arith.cmpi eq, %tile, %c1 : i32
      %row = scf.if %last -> (i32) {
        scf.yield %c1 : i32
      } else {
        scf.yield %tile : i32
      }
      %acc = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (!acc) : i32 {
        %a_tile = tt.descriptor_load %a[%row, %i] : !desc -> !operand
        %a_slot = ttg.local_alloc %a_tile : (!operand) -> !buffer
        %b_tile = tt.descriptor_load %b[%c0, %i] : !desc -> !operand
        %b_slot = ttg.local_alloc %b_tile : (!operand) -> !buffer
        %b_turned = ttg.memdesc_trans %b_slot {order = array<i32: 1, 0>} : !buffer -> !turned
        %next = ttng.warp_group_dot %a_slot, %b_turned, %sum {inputPrecision = 0 : i32} : !buffer * !turned -> !acc
        scf.yield %next : !acc
      }
      %half = arith.truncf %acc : !acc to !half
      %c_tile = ttg.convert_layout %half : !half -> !out
      tt.descriptor_store %c[%row, %c0], %c_tile : !c_desc, !out
    } {tt.warp_specialize}
    tt.return
  }

  // Whatever is not marked is not spoken of.
  // CHECK-LABEL: tt.func @not_marked
  tt.func @not_marked(%p: !tt.ptr<i32>, %n: i32) {
    %c1 = arith.constant 1 : i32
    scf.for %i = %c1 to %n step %c1 : i32 {
      tt.store %p, %i : !tt.ptr<i32>
    }
    tt.return
  }

  // CHECK-LABEL: tt.func @no_dot
  // CHECK:         } {tt.warp_specialize}
  tt.func @no_dot(%p: !tt.ptr<i32>, %n: i32) {
    %c1 = arith.constant 1 : i32
    // expected-remark@+1 {{upstream ignores this loop: no warp-group dot in a loop has operands that are loaded there}}
    scf.for %i = %c1 to %n step %c1 : i32 {
      tt.store %p, %i : !tt.ptr<i32>
    } {tt.warp_specialize}
    tt.return
  }
}

// -----

// CHECK-LABEL: tt.func @eight_warps
// CHECK:         } {tt.warp_specialize}
module attributes {"ttg.num-warps" = 8 : i32, ttg.target = "cuda:90"} {
  tt.func @eight_warps(%p: !tt.ptr<i32>, %n: i32) {
    %c1 = arith.constant 1 : i32
    // expected-remark@+1 {{upstream ignores this loop: a program of 8 warps is not warp specialized}}
    scf.for %i = %c1 to %n step %c1 : i32 {
      tt.store %p, %i : !tt.ptr<i32>
    } {tt.warp_specialize}
    tt.return
  }
}

// -----

// CHECK-LABEL: tt.func @ampere
// CHECK:         } {tt.warp_specialize}
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:80"} {
  tt.func @ampere(%p: !tt.ptr<i32>, %n: i32) {
    %c1 = arith.constant 1 : i32
    // expected-remark@+1 {{upstream ignores this loop: cuda:80 has no warp-group dots}}
    scf.for %i = %c1 to %n step %c1 : i32 {
      tt.store %p, %i : !tt.ptr<i32>
    } {tt.warp_specialize}
    tt.return
  }
}

// -----

// CHECK-LABEL: tt.func @blackwell
// CHECK:         } {tt.warp_specialize}
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:100"} {
  tt.func @blackwell(%p: !tt.ptr<i32>, %n: i32) {
    %c1 = arith.constant 1 : i32
    // expected-remark@+1 {{not judged: on cuda:100 the loop is for tritongpu-automatic-warp-specialization}}
    scf.for %i = %c1 to %n step %c1 : i32 {
      tt.store %p, %i : !tt.ptr<i32>
    } {tt.warp_specialize}
    tt.return
  }
}

// -----

// CHECK-LABEL: tt.func @amd
// CHECK:         } {tt.warp_specialize}
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942"} {
  tt.func @amd(%p: !tt.ptr<i32>, %n: i32) {
    %c1 = arith.constant 1 : i32
    // expected-remark@+1 {{upstream ignores this loop: the hip back end has no warp specialization}}
    scf.for %i = %c1 to %n step %c1 : i32 {
      tt.store %p, %i : !tt.ptr<i32>
    } {tt.warp_specialize}
    tt.return
  }
}

// -----

#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 128, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#transposed = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!desc = !tt.tensordesc<tensor<64x64xbf16, #shared>>
!c_desc = !tt.tensordesc<tensor<64x128xbf16, #shared>>
!desc_b = !tt.tensordesc<tensor<128x64xbf16, #shared>>
!operand_b = tensor<128x64xbf16, #blocked>
!buffer_b = !ttg.memdesc<128x64xbf16, #shared, #smem>
!operand = tensor<64x64xbf16, #blocked>
!buffer = !ttg.memdesc<64x64xbf16, #shared, #smem>
!turned = !ttg.memdesc<64x128xbf16, #transposed, #smem>
!acc = tensor<64x128xf32, #mma>
!half = tensor<64x128xbf16, #mma>
!out = tensor<64x128xbf16, #blocked>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: tt.func @small_tile
  // CHECK:         } {tt.warp_specialize}
  tt.func @small_tile(%p: !tt.ptr<bf16>, %n: i32, %s: i64) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c128 = arith.constant 128 : i32
    %zero = arith.constant dense<0.0> : !acc
    %a = "tt.make_tensor_descriptor"(%p, %n, %n, %s, %s) <{operandSegmentSizes = array<i32: 1, 2, 2>, padding = 1 : i32}> : (!tt.ptr<bf16>, i32, i32, i64, i64) -> !desc
    %b = "tt.make_tensor_descriptor"(%p, %n, %n, %s, %s) <{operandSegmentSizes = array<i32: 1, 2, 2>, padding = 1 : i32}> : (!tt.ptr<bf16>, i32, i32, i64, i64) -> !desc_b
    %c = "tt.make_tensor_descriptor"(%p, %n, %n, %s, %s) <{operandSegmentSizes = array<i32: 1, 2, 2>, padding = 1 : i32}> : (!tt.ptr<bf16>, i32, i32, i64, i64) -> !c_desc
    // expected-remark@+1 {{upstream works on this loop: but the tile is too small to cut: both groups compute all of it}}
    scf.for %tile = %c0 to %n step %c1 : i32 {
      %row = arith.muli %tile, %c128 : i32
      %acc = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (!acc) : i32 {
        %a_tile = tt.descriptor_load %a[%row, %i] : !desc -> !operand
        %a_slot = ttg.local_alloc %a_tile : (!operand) -> !buffer
        %b_tile = tt.descriptor_load %b[%c0, %i] : !desc_b -> !operand_b
        %b_slot = ttg.local_alloc %b_tile : (!operand_b) -> !buffer_b
        %b_turned = ttg.memdesc_trans %b_slot {order = array<i32: 1, 0>} : !buffer_b -> !turned
        %next = ttng.warp_group_dot %a_slot, %b_turned, %sum {inputPrecision = 0 : i32} : !buffer * !turned -> !acc
        scf.yield %next : !acc
      }
      %half = arith.truncf %acc : !acc to !half
      %c_tile = ttg.convert_layout %half : !half -> !out
      tt.descriptor_store %c[%row, %c0], %c_tile : !c_desc, !out
    } {tt.warp_specialize}
    tt.return
  }
}

// -----

#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 256, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#transposed = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!desc = !tt.tensordesc<tensor<64x64xbf16, #shared>>
!c_desc = !tt.tensordesc<tensor<64x256xbf16, #shared>>
!desc_b = !tt.tensordesc<tensor<256x64xbf16, #shared>>
!operand_b = tensor<256x64xbf16, #blocked>
!buffer_b = !ttg.memdesc<256x64xbf16, #shared, #smem>
!operand = tensor<64x64xbf16, #blocked>
!buffer = !ttg.memdesc<64x64xbf16, #shared, #smem>
!turned = !ttg.memdesc<64x256xbf16, #transposed, #smem>
!acc = tensor<64x256xf32, #mma>
!half = tensor<64x256xbf16, #mma>
!out = tensor<64x256xbf16, #blocked>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: tt.func @few_rows
  // CHECK:         scf.for
  // CHECK-NOT:     tt.warp_specialize
  tt.func @few_rows(%p: !tt.ptr<bf16>, %n: i32, %s: i64) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c128 = arith.constant 128 : i32
    %zero = arith.constant dense<0.0> : !acc
    %a = "tt.make_tensor_descriptor"(%p, %n, %n, %s, %s) <{operandSegmentSizes = array<i32: 1, 2, 2>, padding = 1 : i32}> : (!tt.ptr<bf16>, i32, i32, i64, i64) -> !desc
    %b = "tt.make_tensor_descriptor"(%p, %n, %n, %s, %s) <{operandSegmentSizes = array<i32: 1, 2, 2>, padding = 1 : i32}> : (!tt.ptr<bf16>, i32, i32, i64, i64) -> !desc_b
    %c = "tt.make_tensor_descriptor"(%p, %n, %n, %s, %s) <{operandSegmentSizes = array<i32: 1, 2, 2>, padding = 1 : i32}> : (!tt.ptr<bf16>, i32, i32, i64, i64) -> !c_desc
    // expected-remark@+1 {{upstream fails on this loop: the tile has too few rows to cut, and cut along N}}
    scf.for %tile = %c0 to %n step %c1 : i32 {
      %row = arith.muli %tile, %c128 : i32
      %acc = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (!acc) : i32 {
        %a_tile = tt.descriptor_load %a[%row, %i] : !desc -> !operand
        %a_slot = ttg.local_alloc %a_tile : (!operand) -> !buffer
        %b_tile = tt.descriptor_load %b[%c0, %i] : !desc_b -> !operand_b
        %b_slot = ttg.local_alloc %b_tile : (!operand_b) -> !buffer_b
        %b_turned = ttg.memdesc_trans %b_slot {order = array<i32: 1, 0>} : !buffer_b -> !turned
        %next = ttng.warp_group_dot %a_slot, %b_turned, %sum {inputPrecision = 0 : i32} : !buffer * !turned -> !acc
        scf.yield %next : !acc
      }
      %half = arith.truncf %acc : !acc to !half
      %c_tile = ttg.convert_layout %half : !half -> !out
      tt.descriptor_store %c[%row, %c0], %c_tile : !c_desc, !out
    } {tt.warp_specialize}
    tt.return
  }
}
