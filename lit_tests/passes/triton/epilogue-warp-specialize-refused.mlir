// RUN: %python %S/../../Inputs/spelled.py %s > %t.mlir
// RUN: tilepass-opt %t.mlir --verify-diagnostics -p epilogue-warp-specialize

// Nests that are left alone, each with the reason at the operation that is to blame.
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
!pointers = tensor<64x64x!tt.ptr<bf16>, #blocked>
!registers = tensor<64x64xbf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
#line = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @one_loop(%a: !desc, %b: !desc, %c: !desc, %tiles: i32, %steps: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !acc
      // expected-remark@+1 {{not specialized: one loop alone: there is no tile loop around the dot loop; make the kernel persistent}}
      %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (!acc) : i32 {
        %x = tt.descriptor_load %a[%c0, %k] : !desc -> !operand
        %xs = ttg.local_alloc %x : (!operand) -> !buffer
        %y = tt.descriptor_load %b[%c0, %k] : !desc -> !operand
        %ys = ttg.local_alloc %y : (!operand) -> !buffer
        %next = ttng.warp_group_dot %xs, %ys, %acc {inputPrecision = 0 : i32} : !buffer * !buffer -> !acc
        scf.yield %next : !acc
      }
      %half = arith.truncf %d : !acc to !half
      tt.descriptor_store %c[%c0, %c0], %half : !desc, !half
    tt.return
  }

  tt.func @another_loop(%a: !desc, %b: !desc, %c: !desc, %tiles: i32, %steps: i32, %other: !half) {
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
      %half = arith.truncf %d : !acc to !half
      tt.descriptor_store %c[%tile, %c0], %half : !desc, !half
    }
    // expected-remark@+1 {{the kernel has another loop beside the tile loop}}
    scf.for %i = %c0 to %tiles step %c1 : i32 {
      tt.descriptor_store %c[%i, %c0], %other : !desc, !half
    }
    tt.return
  }

  tt.func @under_a_condition(%a: !desc, %b: !desc, %c: !desc, %tiles: i32, %steps: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !acc
    %some = arith.cmpi sgt, %tiles, %c0 : i32
    scf.if %some {
      // expected-remark@+1 {{the tile loop stands in scf.if; return early instead}}
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
    }
    tt.return
  }

  tt.func @stores_where_it_returns_early(%a: !desc, %b: !desc, %c: !desc, %tiles: i32, %steps: i32, %other: !half) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !acc
    %some = arith.cmpi sgt, %tiles, %c0 : i32
    cf.cond_br %some, ^loop, ^out
  ^out:
    tt.descriptor_store %c[%c0, %c0], %other : !desc, !half
    tt.return
  ^loop:
    // expected-remark@+1 {{a branch before the tile loop does not lead to a return alone; do nothing else where the kernel returns early}}
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

  tt.func @hands_a_value_on(%a: !desc, %b: !desc, %c: !desc, %tiles: i32, %steps: i32, %other: !half) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !acc
    %some = arith.cmpi sgt, %tiles, %c0 : i32
    cf.cond_br %some, ^loop(%steps : i32), ^out
  ^out:
    tt.return
  ^loop(%depth: i32):
    // expected-remark@+1 {{a branch before the tile loop hands values on}}
    scf.for %tile = %c0 to %tiles step %c1 : i32 {
      %d = scf.for %k = %c0 to %depth step %c1 iter_args(%acc = %zero) -> (!acc) : i32 {
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

  tt.func @branches_behind_the_tile_loop(%a: !desc, %b: !desc, %c: !desc, %tiles: i32, %steps: i32, %other: !half) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !acc
    %some = arith.cmpi sgt, %tiles, %c0 : i32
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
    // expected-remark@+1 {{the kernel branches behind the tile loop}}
    cf.cond_br %some, ^more, ^out
  ^more:
    tt.descriptor_store %c[%c0, %c0], %other : !desc, !half
    tt.return
  ^out:
    tt.return
  }

  tt.func @two_loops_inside(%a: !desc, %b: !desc, %c: !desc, %tiles: i32, %steps: i32, %other: !half) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !acc
    // expected-remark@+1 {{the tile loop holds 2 loops, not one dot loop}}
    scf.for %tile = %c0 to %tiles step %c1 : i32 {
      %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (!acc) : i32 {
        %x = tt.descriptor_load %a[%tile, %k] : !desc -> !operand
        %xs = ttg.local_alloc %x : (!operand) -> !buffer
        %y = tt.descriptor_load %b[%tile, %k] : !desc -> !operand
        %ys = ttg.local_alloc %y : (!operand) -> !buffer
        %next = ttng.warp_group_dot %xs, %ys, %acc {inputPrecision = 0 : i32} : !buffer * !buffer -> !acc
        scf.yield %next : !acc
      }
      scf.for %i = %c0 to %steps step %c1 : i32 {
        tt.descriptor_store %c[%tile, %i], %other : !desc, !half
      }
      %half = arith.truncf %d : !acc to !half
      tt.descriptor_store %c[%tile, %c0], %half : !desc, !half
    }
    tt.return
  }

  tt.func @carried_tensor(%a: !desc, %b: !desc, %c: !desc, %tiles: i32, %steps: i32, %start: !half) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !acc
    // expected-remark@+1 {{the tile loop carries a tensor: tensor<64x64xbf16, #ttg.nvidia_mma}}
    %all = scf.for %tile = %c0 to %tiles step %c1 iter_args(%sum = %start) -> (!half) : i32 {
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
      scf.yield %half : !half
    }
    tt.return
  }

  tt.func @result_used(%a: !desc, %b: !desc, %c: !desc, %tiles: i32, %steps: i32, %p: !tt.ptr<i32>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !acc
    // expected-remark@+1 {{a result of the tile loop is used behind it}}
    %count = scf.for %tile = %c0 to %tiles step %c1 iter_args(%n = %c0) -> (i32) : i32 {
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
      %more = arith.addi %n, %c1 : i32
      scf.yield %more : i32
    }
    tt.store %p, %count : !tt.ptr<i32>
    tt.return
  }

  tt.func @loads_what_it_stores(%a: !desc, %b: !desc, %c: !desc, %tiles: i32, %steps: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !acc
    // expected-remark@+1 {{tt.descriptor_load may read what the tile loop stores, and the next tile's loads would overtake this tile's stores; load and store through different arguments}}
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
      tt.descriptor_store %a[%tile, %c0], %half : !desc, !half
    }
    tt.return
  }

  tt.func @atomic(%a: !desc, %b: !desc, %c: !desc, %tiles: i32, %steps: i32, %p: !tt.ptr<i32>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !acc
    // expected-remark@+1 {{tt.atomic_rmw in the tile loop orders memory accesses or has unknown effects}}
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
      %true = arith.constant true
      %old = tt.atomic_rmw add, acq_rel, gpu, %p, %c1, %true : (!tt.ptr<i32>, i32, i1) -> i32
      tt.store %p, %old : !tt.ptr<i32>
    }
    tt.return
  }

  tt.func @two_dots(%a: !desc, %b: !desc, %c: !desc, %tiles: i32, %steps: i32) {
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
        // expected-remark@+1 {{the inner loop holds 2 dots, not one}}
        %more = ttng.warp_group_dot %ys, %xs, %next {inputPrecision = 0 : i32} : !buffer * !buffer -> !acc
        scf.yield %more : !acc
      }
      %half = arith.truncf %d : !acc to !half
      tt.descriptor_store %c[%tile, %c0], %half : !desc, !half
    }
    tt.return
  }

  tt.func @changed_accumulator(%a: !desc, %b: !desc, %c: !desc, %tiles: i32, %steps: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !acc
    scf.for %tile = %c0 to %tiles step %c1 : i32 {
      %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (!acc) : i32 {
        %x = tt.descriptor_load %a[%tile, %k] : !desc -> !operand
        %xs = ttg.local_alloc %x : (!operand) -> !buffer
        %y = tt.descriptor_load %b[%tile, %k] : !desc -> !operand
        %ys = ttg.local_alloc %y : (!operand) -> !buffer
        // expected-remark@+1 {{the dot's result is changed before the next step adds to it}}
        %next = ttng.warp_group_dot %xs, %ys, %acc {inputPrecision = 0 : i32} : !buffer * !buffer -> !acc
        %scaled = arith.mulf %next, %next : !acc
        scf.yield %scaled : !acc
      }
      %half = arith.truncf %d : !acc to !half
      tt.descriptor_store %c[%tile, %c0], %half : !desc, !half
    }
    tt.return
  }

  tt.func @not_accumulated(%a: !desc, %b: !desc, %c: !desc, %tiles: i32, %steps: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !acc
    scf.for %tile = %c0 to %tiles step %c1 : i32 {
      %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (!acc) : i32 {
        %x = tt.descriptor_load %a[%tile, %k] : !desc -> !operand
        %xs = ttg.local_alloc %x : (!operand) -> !buffer
        %y = tt.descriptor_load %b[%tile, %k] : !desc -> !operand
        %ys = ttg.local_alloc %y : (!operand) -> !buffer
        // expected-remark@+1 {{the dot does not add to an accumulator that the inner loop carries}}
        %next = ttng.warp_group_dot %xs, %ys, %zero {inputPrecision = 0 : i32} : !buffer * !buffer -> !acc
        scf.yield %next : !acc
      }
      %half = arith.truncf %d : !acc to !half
      tt.descriptor_store %c[%tile, %c0], %half : !desc, !half
    }
    tt.return
  }

  tt.func @computed_operand(%a: !desc, %b: !desc, %c: !desc, %tiles: i32, %steps: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !acc
    scf.for %tile = %c0 to %tiles step %c1 : i32 {
      %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (!acc) : i32 {
        %x = tt.descriptor_load %a[%tile, %k] : !desc -> !operand
        %xs = ttg.local_alloc %x : (!operand) -> !buffer
        %y = tt.descriptor_load %b[%tile, %k] : !desc -> !operand
        // expected-remark@+1 {{operand B of the dot does not come from a TMA load}}
        %twice = arith.addf %y, %y : !operand
        %ys = ttg.local_alloc %twice : (!operand) -> !buffer
        %next = ttng.warp_group_dot %xs, %ys, %acc {inputPrecision = 0 : i32} : !buffer * !buffer -> !acc
        scf.yield %next : !acc
      }
      %half = arith.truncf %d : !acc to !half
      tt.descriptor_store %c[%tile, %c0], %half : !desc, !half
    }
    tt.return
  }

  tt.func @pointer_load(%a: !desc, %b: !desc, %c: !desc, %tiles: i32, %steps: i32, %p: !pointers) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !acc
    scf.for %tile = %c0 to %tiles step %c1 : i32 {
      %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (!acc) : i32 {
        // expected-remark@+1 {{operand A of the dot does not come from a TMA load}}
        %x = tt.load %p : !pointers
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

  tt.func @operand_in_registers(%a: !desc, %b: !desc, %c: !desc, %tiles: i32, %steps: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !acc
    scf.for %tile = %c0 to %tiles step %c1 : i32 {
      %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (!acc) : i32 {
        %x = tt.descriptor_load %a[%tile, %k] : !desc -> !operand
        %xs = ttg.convert_layout %x : !operand -> !registers
        %y = tt.descriptor_load %b[%tile, %k] : !desc -> !operand
        %ys = ttg.local_alloc %y : (!operand) -> !buffer
        // expected-remark@+1 {{operand A of the dot is in registers; do not compute it}}
        %next = ttng.warp_group_dot %xs, %ys, %acc {inputPrecision = 0 : i32} : !registers * !buffer -> !acc
        scf.yield %next : !acc
      }
      %half = arith.truncf %d : !acc to !half
      tt.descriptor_store %c[%tile, %c0], %half : !desc, !half
    }
    tt.return
  }

  tt.func @load_used_twice(%a: !desc, %b: !desc, %c: !desc, %tiles: i32, %steps: i32) {
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
        // expected-remark@+1 {{a value loaded in the inner loop is used outside the dot}}
        %twice = arith.addf %y, %y : !operand
        scf.yield %next : !acc
      }
      %half = arith.truncf %d : !acc to !half
      tt.descriptor_store %c[%tile, %c0], %half : !desc, !half
    }
    tt.return
  }

  tt.func @groups(%a: !desc, %b: !desc, %c: !desc, %groups: i32, %tiles: i32, %steps: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !acc
    scf.for %group = %c0 to %groups step %c1 : i32 {
      // expected-remark@+1 {{the tile loop is a `for` in another loop, as over groups or experts; number the tiles of all groups in one `for`, the group of each in a table}}
      scf.for %tile = %c0 to %tiles step %c1 : i32 {
        %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (!acc) : i32 {
          %x = tt.descriptor_load %a[%tile, %k] : !desc -> !operand
          %xs = ttg.local_alloc %x : (!operand) -> !buffer
          %y = tt.descriptor_load %b[%group, %k] : !desc -> !operand
          %ys = ttg.local_alloc %y : (!operand) -> !buffer
          %next = ttng.warp_group_dot %xs, %ys, %acc {inputPrecision = 0 : i32} : !buffer * !buffer -> !acc
          scf.yield %next : !acc
        }
        %half = arith.truncf %d : !acc to !half
        tt.descriptor_store %c[%tile, %group], %half : !desc, !half
      }
    }
    tt.return
  }

  tt.func @while_over_tiles(%a: !desc, %b: !desc, %c: !desc, %groups: i32, %tiles: i32, %steps: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !acc
    %end = scf.for %group = %c0 to %groups step %c1 iter_args(%first = %c0) -> (i32) : i32 {
      // expected-remark@+1 {{the tile loop is a `while` in another loop, as over groups or experts}}
      %last = scf.while (%n = %first) : (i32) -> i32 {
        %more = arith.cmpi slt, %n, %tiles : i32
        scf.condition(%more) %n : i32
      } do {
      ^bb0(%tile: i32):
        %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (!acc) : i32 {
          %x = tt.descriptor_load %a[%tile, %k] : !desc -> !operand
          %xs = ttg.local_alloc %x : (!operand) -> !buffer
          %y = tt.descriptor_load %b[%group, %k] : !desc -> !operand
          %ys = ttg.local_alloc %y : (!operand) -> !buffer
          %next = ttng.warp_group_dot %xs, %ys, %acc {inputPrecision = 0 : i32} : !buffer * !buffer -> !acc
          scf.yield %next : !acc
        }
        %half = arith.truncf %d : !acc to !half
        tt.descriptor_store %c[%tile, %group], %half : !desc, !half
        %after = arith.addi %tile, %c1 : i32
        scf.yield %after : i32
      }
      scf.yield %last : i32
    }
    tt.return
  }

  tt.func @guarded(%a: !desc, %b: !desc, %c: !desc, %tiles: i32, %steps: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !acc
    scf.for %tile = %c0 to %tiles step %c1 : i32 {
      %some = arith.cmpi ne, %tile, %steps : i32
      scf.if %some {
        // expected-remark@+1 {{the dot loop stands under a condition in the tile loop}}
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
    }
    tt.return
  }

  tt.func @fused_by_hand(%a: !desc, %b: !desc, %c: !desc, %all: i32, %steps: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !acc
    %last = scf.for %step = %c0 to %all step %c1 iter_args(%acc = %zero) -> (!acc) : i32 {
      %k = arith.remsi %step, %steps : i32
      %tile = arith.divsi %step, %steps : i32
      %x = tt.descriptor_load %a[%tile, %k] : !desc -> !operand
      %xs = ttg.local_alloc %x : (!operand) -> !buffer
      %y = tt.descriptor_load %b[%tile, %k] : !desc -> !operand
      %ys = ttg.local_alloc %y : (!operand) -> !buffer
      %next = ttng.warp_group_dot %xs, %ys, %acc {inputPrecision = 0 : i32} : !buffer * !buffer -> !acc
      %ends = arith.cmpi eq, %k, %c0 : i32
      %sum = scf.if %ends -> (!acc) {
        %half = arith.truncf %next : !acc to !half
        // expected-remark@+1 {{one loop over the steps of all tiles, fused by hand: it stores where a tile ends; write the dot loop inside the tile loop}}
        tt.descriptor_store %c[%tile, %c0], %half : !desc, !half
        scf.yield %zero : !acc
      } else {
        scf.yield %next : !acc
      }
      scf.yield %sum : !acc
    }
    tt.return
  }

  tt.func @scalar_from_tensor(%a: !desc, %b: !desc, %c: !desc, %tiles: i32, %steps: i32, %rows: tensor<1xi32, #line>, %p: !tt.ptr<i32>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !acc
    scf.for %tile = %c0 to %tiles step %c1 : i32 {
      // expected-remark@+1 {{what the producer needs: computed from tensors (tt.splat)}}
      %splat = tt.splat %tile : i32 -> tensor<1xi32, #line>
      %added = arith.addi %splat, %rows : tensor<1xi32, #line>
      %row = tt.unsplat %added : tensor<1xi32, #line>
      %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (!acc) : i32 {
        %x = tt.descriptor_load %a[%row, %k] : !desc -> !operand
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

  // The row of the residual tile is read from where tiles before were stored.
  tt.func @scalar_from_what_is_stored(%a: !desc, %b: !desc, %r: !desc, %p: !tt.ptr<bf16>, %tiles: i32, %steps: i32, %stride: i64) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %one = arith.constant 1 : i64
    %zero = arith.constant dense<0.0> : !acc
    %c = tt.make_tensor_descriptor %p, [%tiles, %steps], [%stride, %one] : <bf16>, <tensor<64x64xbf16, #shared>>
    scf.for %tile = %c0 to %tiles step %c1 : i32 {
      %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (!acc) : i32 {
        %x = tt.descriptor_load %a[%tile, %k] : !desc -> !operand
        %xs = ttg.local_alloc %x : (!operand) -> !buffer
        %y = tt.descriptor_load %b[%tile, %k] : !desc -> !operand
        %ys = ttg.local_alloc %y : (!operand) -> !buffer
        %next = ttng.warp_group_dot %xs, %ys, %acc {inputPrecision = 0 : i32} : !buffer * !buffer -> !acc
        scf.yield %next : !acc
      }
      %some = arith.cmpi sgt, %tile, %c0 : i32
      %row = scf.if %some -> (i32) {
        // expected-remark@+1 {{not specialized: what the producer needs: tt.load may read what the tile loop stores}}
        %stored = tt.load %p : !tt.ptr<bf16>
        %number = arith.fptosi %stored : bf16 to i32
        scf.yield %number : i32
      } else {
        scf.yield %c0 : i32
      }
      %loaded = tt.descriptor_load %r[%row, %c0] : !desc -> !operand
      %added = ttg.convert_layout %loaded : !operand -> !half
      %half = arith.truncf %d : !acc to !half
      %sum = arith.addf %half, %added : !half
      tt.descriptor_store %c[%tile, %c0], %sum : !desc, !half
    }
    tt.return
  }

  tt.func @nothing_stored(%a: !desc, %b: !desc, %c: !desc, %tiles: i32, %steps: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !acc
    // expected-remark@+1 {{the tile loop stores nothing}}
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
    }
    tt.return
  }

  tt.func @reduction(%a: !desc, %b: !desc, %c: !desc, %tiles: i32, %steps: i32) {
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
      %half = arith.truncf %d : !acc to !half
      // expected-remark@+1 {{tt.descriptor_reduce in the epilogue is neither computation nor store}}
      tt.descriptor_reduce add, %c[%tile, %c0], %half : !desc, !half
    }
    tt.return
  }

  tt.func @store_under_a_condition(%a: !desc, %b: !desc, %c: !desc, %tiles: i32, %steps: i32) {
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
      %half = arith.truncf %d : !acc to !half
      %some = arith.cmpi sgt, %tile, %c0 : i32
      // expected-remark@+1 {{scf.if in the epilogue is neither computation nor store}}
      scf.if %some {
      tt.descriptor_store %c[%tile, %c0], %half : !desc, !half
      }
    }
    tt.return
  }

  tt.func @specialized_already(%a: !desc, %b: !desc, %c: !desc, %tiles: i32, %steps: i32) {
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
      %half = arith.truncf %d : !acc to !half
      tt.descriptor_store %c[%tile, %c0], %half : !desc, !half
    }
    // expected-remark@+1 {{the kernel is warp-specialized already}}
    ttg.warp_specialize()
    default {
      ttg.warp_yield
    }
    partition0() num_warps(4) {
      ttg.warp_return
    } : () -> ()
    tt.return
  }

  tt.func @flagged(%a: !desc, %b: !desc, %c: !desc, %tiles: i32, %steps: i32, %flag: i1) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !acc
    scf.for %tile = %c0 to %tiles step %c1 : i32 {
      %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (!acc) : i32 {
        %x = tt.descriptor_load %a[%tile, %k] : !desc -> !operand
        %xs = ttg.local_alloc %x : (!operand) -> !buffer
        %y = tt.descriptor_load %b[%tile, %k] : !desc -> !operand
        %ys = ttg.local_alloc %y : (!operand) -> !buffer
        // expected-remark@+1 {{the dot has a flag that says whether it accumulates}}
        %next = ttng.warp_group_dot %xs, %ys, %acc, %flag {inputPrecision = 0 : i32} : !buffer * !buffer -> !acc
        scf.yield %next : !acc
      }
      %half = arith.truncf %d : !acc to !half
      tt.descriptor_store %c[%tile, %c0], %half : !desc, !half
    }
    tt.return
  }

  tt.func @scalar_used_behind(%a: !desc, %b: !desc, %c: !desc, %tiles: i32, %steps: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !acc
    scf.for %tile = %c0 to %tiles step %c1 : i32 {
      // expected-remark@+1 {{a scalar that the inner loop carries is used behind it}}
      %d:2 = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero, %n = %c0) -> (!acc, i32) : i32 {
        %x = tt.descriptor_load %a[%tile, %k] : !desc -> !operand
        %xs = ttg.local_alloc %x : (!operand) -> !buffer
        %y = tt.descriptor_load %b[%tile, %k] : !desc -> !operand
        %ys = ttg.local_alloc %y : (!operand) -> !buffer
        %next = ttng.warp_group_dot %xs, %ys, %acc {inputPrecision = 0 : i32} : !buffer * !buffer -> !acc
        %m = arith.addi %n, %c1 : i32
        scf.yield %next, %m : !acc, i32
      }
      %half = arith.truncf %d#0 : !acc to !half
      tt.descriptor_store %c[%tile, %d#1], %half : !desc, !half
    }
    tt.return
  }

  tt.func @dot_outside(%a: !desc, %b: !desc, %c: !desc, %tiles: i32, %steps: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !acc
    // expected-remark@+1 {{the dot is not in the inner loop}}
    scf.for %tile = %c0 to %tiles step %c1 : i32 {
      %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (!acc) : i32 {
        %x = tt.descriptor_load %a[%tile, %k] : !desc -> !operand
        %xs = ttg.local_alloc %x : (!operand) -> !buffer
        %y = tt.descriptor_load %b[%tile, %k] : !desc -> !operand
        %ys = ttg.local_alloc %y : (!operand) -> !buffer
        scf.yield %acc : !acc
      }
      %x2 = tt.descriptor_load %a[%tile, %c0] : !desc -> !operand
      %s2 = ttg.local_alloc %x2 : (!operand) -> !buffer
      %next = ttng.warp_group_dot %s2, %s2, %d {inputPrecision = 0 : i32} : !buffer * !buffer -> !acc
      %half = arith.truncf %next : !acc to !half
      tt.descriptor_store %c[%tile, %c0], %half : !desc, !half
    }
    tt.return
  }
}
