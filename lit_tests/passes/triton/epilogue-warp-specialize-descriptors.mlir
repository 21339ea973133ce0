// RUN: %python %S/../../Inputs/spelled.py %s > %t.mlir
// RUN: tilepass-opt %t.mlir -p 'epilogue-warp-specialize' 2> /dev/null | %filecheck %s
// RUN: tilepass-opt %t.mlir --verify-diagnostics -p epilogue-warp-specialize

// Descriptors that are made in the tile loop: before it where they are the same for all tiles.
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#line = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!desc = !tt.tensordesc<tensor<64x64xbf16, #shared>>
!operand = tensor<64x64xbf16, #blocked>
!buffer = !ttg.memdesc<64x64xbf16, #shared, #smem>
!acc = tensor<64x64xf32, #mma>
!half = tensor<64x64xbf16, #mma>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: tt.func @made_in_every_tile_and_step
  // CHECK:         [[ROWS:%.+]] = arith.muli
  // CHECK-NEXT:    tt.make_tensor_descriptor {{%.+}}, [[[ROWS]], [[ROWS]]]
  // CHECK-NEXT:    tt.make_tensor_descriptor
  // CHECK:         ttg.warp_specialize
  // CHECK-NOT:     tt.make_tensor_descriptor
  // CHECK:         tt.return
  tt.func @made_in_every_tile_and_step(%a: !desc, %b: !desc, %c: !desc, %p: !tt.ptr<bf16>, %q: !tt.ptr<bf16>, %table: !tt.ptr<i32>, %n: i32, %s: i64, %tiles: i32, %steps: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %one = arith.constant 1 : i64
    %zero = arith.constant dense<0.0> : !acc
    scf.for %tile = %c0 to %tiles step %c1 : i32 {
      %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (!acc) : i32 {
        %rows = arith.muli %n, %n : i32
        %mine = tt.make_tensor_descriptor %p, [%rows, %rows], [%s, %one] : <bf16>, <tensor<64x64xbf16, #shared>>
        %x = tt.descriptor_load %mine[%tile, %k] : !desc -> !operand
        %xs = ttg.local_alloc %x : (!operand) -> !buffer
        %y = tt.descriptor_load %b[%tile, %k] : !desc -> !operand
        %ys = ttg.local_alloc %y : (!operand) -> !buffer
        %next = ttng.warp_group_dot %xs, %ys, %acc {inputPrecision = 0 : i32} : !buffer * !buffer -> !acc
        scf.yield %next : !acc
      }
      %half = arith.truncf %d : !acc to !half
      %out = tt.make_tensor_descriptor %q, [%n, %n], [%s, %one] : <bf16>, <tensor<64x64xbf16, #shared>>
      tt.descriptor_store %out[%tile, %c0], %half : !desc, !half
    }
    tt.return
  }

  // Groups of matrices: each tile has its own array.
  tt.func @varies_by_tile(%a: !desc, %b: !desc, %c: !desc, %p: !tt.ptr<bf16>, %table: !tt.ptr<i32>, %n: i32, %s: i64, %tiles: i32, %steps: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %one = arith.constant 1 : i64
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
      %half = arith.truncf %d : !acc to !half
      %here = tt.addptr %p, %tile : !tt.ptr<bf16>, i32
      // expected-remark@+1 {{not specialized: the descriptor is made in the tile loop and varies from tile to tile; describe the whole array before the loop}}
      %out = tt.make_tensor_descriptor %here, [%n, %n], [%s, %one] : <bf16>, <tensor<64x64xbf16, #shared>>
      tt.descriptor_store %out[%tile, %c0], %half : !desc, !half
    }
    tt.return
  }

  // What could have been moved stays where it was.
  // CHECK-LABEL: tt.func @varies_by_step
  // CHECK:         arith.truncf
  // CHECK-NEXT:    tt.make_tensor_descriptor
  tt.func @varies_by_step(%a: !desc, %b: !desc, %c: !desc, %p: !tt.ptr<bf16>, %q: !tt.ptr<bf16>, %table: !tt.ptr<i32>, %n: i32, %s: i64, %tiles: i32, %steps: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %one = arith.constant 1 : i64
    %zero = arith.constant dense<0.0> : !acc
    scf.for %tile = %c0 to %tiles step %c1 : i32 {
      %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (!acc) : i32 {
        %here = tt.addptr %p, %k : !tt.ptr<bf16>, i32
        // expected-remark@+1 {{not specialized: the descriptor is made in the tile loop and varies from step to step; describe the whole array before the loop}}
        %mine = tt.make_tensor_descriptor %here, [%n, %n], [%s, %one] : <bf16>, <tensor<64x64xbf16, #shared>>
        %x = tt.descriptor_load %mine[%tile, %k] : !desc -> !operand
        %xs = ttg.local_alloc %x : (!operand) -> !buffer
        %y = tt.descriptor_load %b[%tile, %k] : !desc -> !operand
        %ys = ttg.local_alloc %y : (!operand) -> !buffer
        %next = ttng.warp_group_dot %xs, %ys, %acc {inputPrecision = 0 : i32} : !buffer * !buffer -> !acc
        scf.yield %next : !acc
      }
      %half = arith.truncf %d : !acc to !half
      %out = tt.make_tensor_descriptor %q, [%n, %n], [%s, %one] : <bf16>, <tensor<64x64xbf16, #shared>>
      tt.descriptor_store %out[%tile, %c0], %half : !desc, !half
    }
    tt.return
  }

  tt.func @from_a_load(%a: !desc, %b: !desc, %c: !desc, %p: !tt.ptr<bf16>, %table: !tt.ptr<i32>, %n: i32, %s: i64, %tiles: i32, %steps: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %one = arith.constant 1 : i64
    %zero = arith.constant dense<0.0> : !acc
    scf.for %tile = %c0 to %tiles step %c1 : i32 {
      // expected-remark@+1 {{not specialized: a descriptor is made in the tile loop with tt.load, whose result may change from tile to tile; make it before the loop}}
      %rows = tt.load %table : !tt.ptr<i32>
      %mine = tt.make_tensor_descriptor %p, [%rows, %rows], [%s, %one] : <bf16>, <tensor<64x64xbf16, #shared>>
      %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (!acc) : i32 {
        %x = tt.descriptor_load %mine[%tile, %k] : !desc -> !operand
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

  tt.func @from_a_division(%a: !desc, %b: !desc, %c: !desc, %p: !tt.ptr<bf16>, %table: !tt.ptr<i32>, %n: i32, %s: i64, %tiles: i32, %steps: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %one = arith.constant 1 : i64
    %zero = arith.constant dense<0.0> : !acc
    scf.for %tile = %c0 to %tiles step %c1 : i32 {
      // expected-remark@+1 {{not specialized: a descriptor is made in the tile loop with arith.divsi by a variable, which may be zero where there is no tile; make it before the loop}}
      %rows = arith.divsi %tiles, %n : i32
      %mine = tt.make_tensor_descriptor %p, [%rows, %rows], [%s, %one] : <bf16>, <tensor<64x64xbf16, #shared>>
      %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (!acc) : i32 {
        %x = tt.descriptor_load %mine[%tile, %k] : !desc -> !operand
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

  tt.func @from_tensors(%a: !desc, %b: !desc, %c: !desc, %p: !tt.ptr<bf16>, %table: !tt.ptr<i32>, %n: i32, %s: i64, %tiles: i32, %steps: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %one = arith.constant 1 : i64
    %zero = arith.constant dense<0.0> : !acc
    scf.for %tile = %c0 to %tiles step %c1 : i32 {
      %range = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #line>
      // expected-remark@+1 {{not specialized: a descriptor is made in the tile loop with tt.reduce, which computes with tensors; make it before the loop}}
      %rows = "tt.reduce"(%range) <{axis = 0 : i32}> ({
      ^bb0(%l: i32, %r: i32):
        %most = arith.maxsi %l, %r : i32
        tt.reduce.return %most : i32
      }) : (tensor<128xi32, #line>) -> i32
      %mine = tt.make_tensor_descriptor %p, [%rows, %rows], [%s, %one] : <bf16>, <tensor<64x64xbf16, #shared>>
      %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (!acc) : i32 {
        %x = tt.descriptor_load %mine[%tile, %k] : !desc -> !operand
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

  tt.func @carried(%a: !desc, %b: !desc, %c: !desc, %p: !tt.ptr<bf16>, %table: !tt.ptr<i32>, %n: i32, %s: i64, %tiles: i32, %steps: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %one = arith.constant 1 : i64
    %zero = arith.constant dense<0.0> : !acc
    %last = scf.for %tile = %c0 to %tiles step %c1 iter_args(%mine = %c) -> (!desc) : i32 {
      %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (!acc) : i32 {
        %x = tt.descriptor_load %a[%tile, %k] : !desc -> !operand
        %xs = ttg.local_alloc %x : (!operand) -> !buffer
        %y = tt.descriptor_load %b[%tile, %k] : !desc -> !operand
        %ys = ttg.local_alloc %y : (!operand) -> !buffer
        %next = ttng.warp_group_dot %xs, %ys, %acc {inputPrecision = 0 : i32} : !buffer * !buffer -> !acc
        scf.yield %next : !acc
      }
      %half = arith.truncf %d : !acc to !half
      // expected-remark@+1 {{not specialized: a loop carries the descriptor; make it before the loop}}
      tt.descriptor_store %mine[%tile, %c0], %half : !desc, !half
      scf.yield %mine : !desc
    }
    tt.return
  }
}
