// RUN: tilepass-opt %s --split-input-file --verify-diagnostics --target cuda:90 -p flatten-loops

// Nests that mode=auto does not flatten, each with the reason. `tt.flatten` of the source goes where
// flattening is wrong, and stays where it is useless.
tt.func @bound_from_memory(%a: tensor<128x64x!tt.ptr<bf16>>, %b: tensor<64x128x!tt.ptr<bf16>>, %c: tensor<128x128x!tt.ptr<f32>>, %tiles: i32, %steps: i32, %p: !tt.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %pid = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  // expected-remark@+1 {{removed tt.flatten: the inner loop's bound is read from memory in the tile loop; fusing would read it even where no tile runs (#11601); compute the bound before the tile loop}}
  scf.for %tile = %pid to %tiles step %programs : i32 {
    %n = tt.load %p : !tt.ptr<i32>
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %x = tt.load %a : tensor<128x64x!tt.ptr<bf16>>
      %y = tt.load %b : tensor<64x128x!tt.ptr<bf16>>
      %next = tt.dot %x, %y, %acc : tensor<128x64xbf16> * tensor<64x128xbf16> -> tensor<128x128xf32>
      scf.yield %next : tensor<128x128xf32>
    }
    tt.store %c, %d : tensor<128x128x!tt.ptr<f32>>
  } {tt.flatten}
  tt.return
}

// -----

tt.func @bound_divided(%a: tensor<128x64x!tt.ptr<bf16>>, %b: tensor<64x128x!tt.ptr<bf16>>, %c: tensor<128x128x!tt.ptr<f32>>, %tiles: i32, %steps: i32, %q: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %pid = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  // expected-remark@+1 {{removed tt.flatten: the inner loop's bound is divided by a variable in the tile loop}}
  scf.for %tile = %pid to %tiles step %programs : i32 {
    %n = arith.divsi %steps, %q : i32
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %x = tt.load %a : tensor<128x64x!tt.ptr<bf16>>
      %y = tt.load %b : tensor<64x128x!tt.ptr<bf16>>
      %next = tt.dot %x, %y, %acc : tensor<128x64xbf16> * tensor<64x128xbf16> -> tensor<128x128xf32>
      scf.yield %next : tensor<128x128xf32>
    }
    tt.store %c, %d : tensor<128x128x!tt.ptr<f32>>
  } {tt.flatten}
  tt.return
}

// -----

tt.func @bound_of_the_tile(%a: tensor<128x64x!tt.ptr<bf16>>, %b: tensor<64x128x!tt.ptr<bf16>>, %c: tensor<128x128x!tt.ptr<f32>>, %tiles: i32, %steps: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %pid = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  // expected-remark@+1 {{tt.flatten stays as it is: the inner loop's bounds change from tile to tile}}
  scf.for %tile = %pid to %tiles step %programs : i32 {
    %n = arith.addi %tile, %c1 : i32
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %x = tt.load %a : tensor<128x64x!tt.ptr<bf16>>
      %y = tt.load %b : tensor<64x128x!tt.ptr<bf16>>
      %next = tt.dot %x, %y, %acc : tensor<128x64xbf16> * tensor<64x128xbf16> -> tensor<128x128xf32>
      scf.yield %next : tensor<128x128xf32>
    }
    tt.store %c, %d : tensor<128x128x!tt.ptr<f32>>
  } {tt.flatten}
  tt.return
}

// -----

tt.func @atomic_between(%a: tensor<128x64x!tt.ptr<bf16>>, %b: tensor<64x128x!tt.ptr<bf16>>, %c: tensor<128x128x!tt.ptr<f32>>, %tiles: i32, %steps: i32, %p: !tt.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %pid = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  // expected-remark@+1 {{removed tt.flatten: tt.atomic_rmw between the two loops has side effects}}
  scf.for %tile = %pid to %tiles step %programs : i32 {
    %true = arith.constant true
    %old = tt.atomic_rmw add, acq_rel, gpu, %p, %c1, %true : (!tt.ptr<i32>, i32, i1) -> i32
    %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %x = tt.load %a : tensor<128x64x!tt.ptr<bf16>>
      %y = tt.load %b : tensor<64x128x!tt.ptr<bf16>>
      %next = tt.dot %x, %y, %acc : tensor<128x64xbf16> * tensor<64x128xbf16> -> tensor<128x128xf32>
      scf.yield %next : tensor<128x128xf32>
    }
    tt.store %c, %d : tensor<128x128x!tt.ptr<f32>>
  } {tt.flatten}
  tt.return
}

// -----

tt.func @store_between(%a: tensor<128x64x!tt.ptr<bf16>>, %b: tensor<64x128x!tt.ptr<bf16>>, %c: tensor<128x128x!tt.ptr<f32>>, %tiles: i32, %steps: i32, %p: !tt.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %pid = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  // expected-remark@+1 {{removed tt.flatten: tt.store between the two loops has side effects, which the next tile's loads would overtake; move it behind the inner loop}}
  scf.for %tile = %pid to %tiles step %programs : i32 {
    tt.store %p, %tile : !tt.ptr<i32>
    %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %x = tt.load %a : tensor<128x64x!tt.ptr<bf16>>
      %y = tt.load %b : tensor<64x128x!tt.ptr<bf16>>
      %next = tt.dot %x, %y, %acc : tensor<128x64xbf16> * tensor<64x128xbf16> -> tensor<128x128xf32>
      scf.yield %next : tensor<128x128xf32>
    }
    tt.store %c, %d : tensor<128x128x!tt.ptr<f32>>
  } {tt.flatten}
  tt.return
}

// -----

tt.func @assert_behind(%a: tensor<128x64x!tt.ptr<bf16>>, %b: tensor<64x128x!tt.ptr<bf16>>, %c: tensor<128x128x!tt.ptr<f32>>, %tiles: i32, %steps: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %pid = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  // expected-remark@+1 {{removed tt.flatten: tt.assert in the tile loop orders memory accesses or has unknown effects}}
  scf.for %tile = %pid to %tiles step %programs : i32 {
    %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %x = tt.load %a : tensor<128x64x!tt.ptr<bf16>>
      %y = tt.load %b : tensor<64x128x!tt.ptr<bf16>>
      %next = tt.dot %x, %y, %acc : tensor<128x64xbf16> * tensor<64x128xbf16> -> tensor<128x128xf32>
      scf.yield %next : tensor<128x128xf32>
    }
    %ok = arith.cmpi slt, %tile, %tiles : i32
    tt.assert %ok, "tile" : i1
    tt.store %c, %d : tensor<128x128x!tt.ptr<f32>>
  } {tt.flatten}
  tt.return
}

// -----

tt.func @loads_what_it_stores(%a: tensor<128x64x!tt.ptr<bf16>>, %b: tensor<64x128x!tt.ptr<bf16>>, %c: tensor<128x128x!tt.ptr<f32>>, %tiles: i32, %steps: i32, %p: !tt.ptr<bf16>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %pid = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  // expected-remark@+1 {{removed tt.flatten: tt.load may read what the tile loop stores}}
  scf.for %tile = %pid to %tiles step %programs : i32 {
    %in = tt.splat %p : !tt.ptr<bf16> -> tensor<128x64x!tt.ptr<bf16>>
    %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %x = tt.load %in : tensor<128x64x!tt.ptr<bf16>>
      %y = tt.load %b : tensor<64x128x!tt.ptr<bf16>>
      %next = tt.dot %x, %y, %acc : tensor<128x64xbf16> * tensor<64x128xbf16> -> tensor<128x128xf32>
      scf.yield %next : tensor<128x128xf32>
    }
    %o = arith.truncf %d : tensor<128x128xf32> to tensor<128x128xbf16>
    %half = tt.splat %p : !tt.ptr<bf16> -> tensor<128x128x!tt.ptr<bf16>>
    tt.store %half, %o : tensor<128x128x!tt.ptr<bf16>>

  } {tt.flatten}
  tt.return
}

// -----

tt.func @carried_read_late(%a: tensor<128x64x!tt.ptr<bf16>>, %b: tensor<64x128x!tt.ptr<bf16>>, %c: tensor<128x128x!tt.ptr<f32>>, %tiles: i32, %steps: i32, %p: !tt.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %pid = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  // expected-remark@+1 {{removed tt.flatten: a value that the tile loop carries is read after its next value is known; fusing would read the next one; compute the next value behind the inner loop}}
  %r = scf.for %tile = %pid to %tiles step %programs iter_args(%last = %c0) -> (i32) : i32 {
    %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %x = tt.load %a : tensor<128x64x!tt.ptr<bf16>>
      %y = tt.load %b : tensor<64x128x!tt.ptr<bf16>>
      %next = tt.dot %x, %y, %acc : tensor<128x64xbf16> * tensor<64x128xbf16> -> tensor<128x128xf32>
      scf.yield %next : tensor<128x128xf32>
    }
    tt.store %p, %last : !tt.ptr<i32>
    tt.store %c, %d : tensor<128x128x!tt.ptr<f32>>
    scf.yield %tile : i32
  } {tt.flatten}
  tt.return
}

// -----

tt.func @carried_same_in_all_tiles(%a: tensor<128x64x!tt.ptr<bf16>>, %b: tensor<64x128x!tt.ptr<bf16>>, %c: tensor<128x128x!tt.ptr<f32>>, %tiles: i32, %steps: i32, %p: !tt.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %pid = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  // expected-remark@+1 {{removed tt.flatten: a value that the tile loop carries is read after its next value is known; fusing would read the next one; compute the next value behind the inner loop}}
  %r = scf.for %tile = %pid to %tiles step %programs iter_args(%last = %c0) -> (i32) : i32 {
    %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %x = tt.load %a : tensor<128x64x!tt.ptr<bf16>>
      %y = tt.load %b : tensor<64x128x!tt.ptr<bf16>>
      %next = tt.dot %x, %y, %acc : tensor<128x64xbf16> * tensor<64x128xbf16> -> tensor<128x128xf32>
      scf.yield %next : tensor<128x128xf32>
    }
    // Fusing moves this before the tile loop.
    %same = arith.addi %steps, %c1 : i32
    tt.store %p, %last : !tt.ptr<i32>
    tt.store %c, %d : tensor<128x128x!tt.ptr<f32>>
    scf.yield %same : i32
  } {tt.flatten}
  tt.return
}

// -----

tt.func @runs_once(%a: tensor<128x64x!tt.ptr<bf16>>, %b: tensor<64x128x!tt.ptr<bf16>>, %c: tensor<128x128x!tt.ptr<f32>>, %tiles: i32, %steps: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %huge = arith.constant 1073741824 : i32
  %pid = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  // expected-remark@+1 {{tt.flatten stays as it is: the outer loop runs at most once}}
  scf.for %tile = %pid to %tiles step %huge : i32 {
    %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %x = tt.load %a : tensor<128x64x!tt.ptr<bf16>>
      %y = tt.load %b : tensor<64x128x!tt.ptr<bf16>>
      %next = tt.dot %x, %y, %acc : tensor<128x64xbf16> * tensor<64x128xbf16> -> tensor<128x128xf32>
      scf.yield %next : tensor<128x128xf32>
    }
    tt.store %c, %d : tensor<128x128x!tt.ptr<f32>>
  } {tt.flatten}
  tt.return
}

// -----

tt.func @not_persistent(%a: tensor<128x64x!tt.ptr<bf16>>, %b: tensor<64x128x!tt.ptr<bf16>>, %c: tensor<128x128x!tt.ptr<f32>>, %tiles: i32, %steps: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %pid = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  // expected-remark@+1 {{tt.flatten stays as it is: the outer loop is not a persistent tile loop}}
  scf.for %tile = %c0 to %tiles step %programs : i32 {
    %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %x = tt.load %a : tensor<128x64x!tt.ptr<bf16>>
      %y = tt.load %b : tensor<64x128x!tt.ptr<bf16>>
      %next = tt.dot %x, %y, %acc : tensor<128x64xbf16> * tensor<64x128xbf16> -> tensor<128x128xf32>
      scf.yield %next : tensor<128x128xf32>
    }
    tt.store %c, %d : tensor<128x128x!tt.ptr<f32>>
  } {tt.flatten}
  tt.return
}

// -----

tt.func @two_inner_loops(%a: tensor<128x64x!tt.ptr<bf16>>, %b: tensor<64x128x!tt.ptr<bf16>>, %tiles: i32, %steps: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %pid = tt.get_program_id x : i32
  // expected-remark@+1 {{not flattened: the loop holds 2 loops, and only a nest of two can be flattened}}
  scf.for %tile = %pid to %tiles step %c1 : i32 {
    %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %x = tt.load %a : tensor<128x64x!tt.ptr<bf16>>
      %y = tt.load %b : tensor<64x128x!tt.ptr<bf16>>
      %next = tt.dot %x, %y, %acc : tensor<128x64xbf16> * tensor<64x128xbf16> -> tensor<128x128xf32>
      scf.yield %next : tensor<128x128xf32>
    }
    scf.for %k = %c0 to %steps step %c1 : i32 {
    }
  }
  tt.return
}

// -----

tt.func @no_inner_loop(%a: tensor<128x64x!tt.ptr<bf16>>, %b: tensor<64x128x!tt.ptr<bf16>>, %c: tensor<128x128x!tt.ptr<f32>>, %tiles: i32) {
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %pid = tt.get_program_id x : i32
  // expected-remark@+1 {{not flattened: the loop has no inner loop to flatten}}
  scf.for %tile = %pid to %tiles step %c1 : i32 {
    %x = tt.load %a : tensor<128x64x!tt.ptr<bf16>>
    %y = tt.load %b : tensor<64x128x!tt.ptr<bf16>>
    %d = tt.dot %x, %y, %zero : tensor<128x64xbf16> * tensor<64x128xbf16> -> tensor<128x128xf32>
    tt.store %c, %d : tensor<128x128x!tt.ptr<f32>>
  }
  tt.return
}

// -----

tt.func @no_memory(%x: tensor<128x64xbf16>, %y: tensor<64x128xbf16>, %c: tensor<128x128x!tt.ptr<f32>>, %tiles: i32, %steps: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %pid = tt.get_program_id x : i32
  // expected-remark@+1 {{removed tt.flatten: the inner loop accesses no memory}}
  scf.for %tile = %pid to %tiles step %c1 : i32 {
    %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %next = tt.dot %x, %y, %acc : tensor<128x64xbf16> * tensor<64x128xbf16> -> tensor<128x128xf32>
      scf.yield %next : tensor<128x128xf32>
    }
    tt.store %c, %d : tensor<128x128x!tt.ptr<f32>>
  } {tt.flatten}
  tt.return
}

// -----

tt.func @wrong_and_not_persistent(%a: tensor<128x64x!tt.ptr<bf16>>, %b: tensor<64x128x!tt.ptr<bf16>>, %c: tensor<128x128x!tt.ptr<f32>>, %p: !tt.ptr<i32>, %tiles: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  // expected-remark@+1 {{removed tt.flatten: the inner loop's bound is read from memory in the tile loop}}
  scf.for %tile = %c0 to %tiles step %c1 : i32 {
    %n = tt.load %p : !tt.ptr<i32>
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %x = tt.load %a : tensor<128x64x!tt.ptr<bf16>>
      %y = tt.load %b : tensor<64x128x!tt.ptr<bf16>>
      %next = tt.dot %x, %y, %acc : tensor<128x64xbf16> * tensor<64x128xbf16> -> tensor<128x128xf32>
      scf.yield %next : tensor<128x128xf32>
    }
    tt.store %c, %d : tensor<128x128x!tt.ptr<f32>>
  } {tt.flatten}
  tt.return
}

// -----

tt.func @without_a_dot(%p: tensor<64x!tt.ptr<i32>>, %q: tensor<64x!tt.ptr<i32>>, %tiles: i32, %steps: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0> : tensor<64xi32>
  %pid = tt.get_program_id x : i32
  // expected-remark@+1 {{the tile loop's upper bound is clamped to its lower one}}
  scf.for %tile = %pid to %tiles step %c1 : i32 {
    %sum = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<64xi32>) : i32 {
      %x = tt.load %p : tensor<64x!tt.ptr<i32>>
      %next = arith.addi %x, %acc : tensor<64xi32>
      scf.yield %next : tensor<64xi32>
    }
    tt.store %q, %sum : tensor<64x!tt.ptr<i32>>
  } {tt.flatten}
  tt.return
}

// -----

tt.func @starts_as_the_tile_index(%a: tensor<128x64x!tt.ptr<bf16>>, %b: tensor<64x128x!tt.ptr<bf16>>, %c: tensor<128x128x!tt.ptr<f32>>, %tiles: i32, %steps: i32) attributes {noinline = false} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %pid = tt.get_program_id x : i32
  // expected-remark@+1 {{not flattened: the inner loop carries a value that starts as the tile index, which fusing turns into invalid IR}}
  scf.for %tile = %pid to %tiles step %c1 : i32 {
    %d, %e = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero, %at = %tile) -> (tensor<128x128xf32>, i32) : i32 {
      %x = tt.load %a : tensor<128x64x!tt.ptr<bf16>>
      %y = tt.load %b : tensor<64x128x!tt.ptr<bf16>>
      %next = tt.dot %x, %y, %acc : tensor<128x64xbf16> * tensor<64x128xbf16> -> tensor<128x128xf32>
      %on = arith.addi %at, %c1 : i32
      scf.yield %next, %on : tensor<128x128xf32>, i32
    }
    tt.store %c, %d : tensor<128x128x!tt.ptr<f32>>
  }
  tt.return
}

// -----

// Fusing does not see the while loop and would go ahead (#11612).
tt.func @for_and_while(%a: tensor<128x64x!tt.ptr<bf16>>, %b: tensor<64x128x!tt.ptr<bf16>>, %c: tensor<128x128x!tt.ptr<f32>>, %tiles: i32, %steps: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %pid = tt.get_program_id x : i32
  // expected-remark@+1 {{removed tt.flatten: the loop holds 2 loops, and only a nest of two can be flattened}}
  scf.for %tile = %pid to %tiles step %c1 : i32 {
    %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %x = tt.load %a : tensor<128x64x!tt.ptr<bf16>>
      %y = tt.load %b : tensor<64x128x!tt.ptr<bf16>>
      %next = tt.dot %x, %y, %acc : tensor<128x64xbf16> * tensor<64x128xbf16> -> tensor<128x128xf32>
      scf.yield %next : tensor<128x128xf32>
    }
    %w = scf.while (%i = %c0) : (i32) -> i32 {
      %more = arith.cmpi slt, %i, %steps : i32
      scf.condition(%more) %i : i32
    } do {
    ^bb0(%i: i32):
      %next = arith.addi %i, %c1 : i32
      scf.yield %next : i32
    }
    tt.store %c, %d : tensor<128x128x!tt.ptr<f32>>
  } {tt.flatten}
  tt.return
}

// -----

tt.func @under_a_condition(%a: tensor<128x64x!tt.ptr<bf16>>, %b: tensor<64x128x!tt.ptr<bf16>>, %c: tensor<128x128x!tt.ptr<f32>>, %tiles: i32, %steps: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %pid = tt.get_program_id x : i32
  // expected-remark@+1 {{not flattened: the inner loop is a while loop or stands under a condition; write it as a `for` directly in the tile loop}}
  scf.for %tile = %pid to %tiles step %c1 : i32 {
    %even = arith.cmpi slt, %tile, %steps : i32
    scf.if %even {
      %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
        %x = tt.load %a : tensor<128x64x!tt.ptr<bf16>>
        %y = tt.load %b : tensor<64x128x!tt.ptr<bf16>>
        %next = tt.dot %x, %y, %acc : tensor<128x64xbf16> * tensor<64x128xbf16> -> tensor<128x128xf32>
        scf.yield %next : tensor<128x128xf32>
      }
      tt.store %c, %d : tensor<128x128x!tt.ptr<f32>>
    }
  }
  tt.return
}
