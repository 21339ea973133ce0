// RUN: tilepass-opt %s --split-input-file --verify-diagnostics --target cuda:100 -p 'flatten-loops{mode=on}'

// Different arguments of a kernel are taken not to overlap; everything else may be what it can be.
// What the stores go to and what the loads read are different arguments.
tt.func @different_arguments(%a: !tt.ptr<f32>, %b: !tt.ptr<f32>, %c: !tt.ptr<f32>, %table: !tt.ptr<i64>, %tiles: i32, %steps: i32, %which: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<1x1xf32>
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %pid = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  // expected-remark@+1 {{flatten = on}}
  scf.for %tile = %pid to %tiles step %programs : i32 {
    %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<1x1xf32>) : i32 {
      %x = tt.load %a : !tt.ptr<f32>
      %next = tt.dot %one, %one, %acc : tensor<1x1xf32> * tensor<1x1xf32> -> tensor<1x1xf32>
      scf.yield %next : tensor<1x1xf32>
    }
    %value = tt.unsplat %d : tensor<1x1xf32>
    tt.store %c, %value : !tt.ptr<f32>
  }
  tt.return
}

// -----

// Carried pointers are what they start as and what they become.
tt.func @swapped_with_the_source(%a: !tt.ptr<f32>, %b: !tt.ptr<f32>, %c: !tt.ptr<f32>, %table: !tt.ptr<i64>, %tiles: i32, %steps: i32, %which: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<1x1xf32>
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %pid = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  // expected-error@+1 {{mode=on, but this loop cannot be flattened: tt.load may read what the tile loop stores, and the next tile's loads would overtake this tile's stores}}
  %r:2 = scf.for %tile = %pid to %tiles step %programs iter_args(%from = %a, %to = %c) -> (!tt.ptr<f32>, !tt.ptr<f32>) : i32 {
    %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<1x1xf32>) : i32 {
      %x = tt.load %from : !tt.ptr<f32>
      %next = tt.dot %one, %one, %acc : tensor<1x1xf32> * tensor<1x1xf32> -> tensor<1x1xf32>
      scf.yield %next : tensor<1x1xf32>
    }
    %value = tt.unsplat %d : tensor<1x1xf32>
    tt.store %to, %value : !tt.ptr<f32>
    scf.yield %to, %from : !tt.ptr<f32>, !tt.ptr<f32>
  }
  tt.return
}

// -----

tt.func @swapped_results(%a: !tt.ptr<f32>, %b: !tt.ptr<f32>, %c: !tt.ptr<f32>, %table: !tt.ptr<i64>, %tiles: i32, %steps: i32, %which: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<1x1xf32>
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %pid = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  // expected-remark@+1 {{flatten = on}}
  %r:2 = scf.for %tile = %pid to %tiles step %programs iter_args(%one_of = %b, %other = %c) -> (!tt.ptr<f32>, !tt.ptr<f32>) : i32 {
    %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<1x1xf32>) : i32 {
      %x = tt.load %a : !tt.ptr<f32>
      %next = tt.dot %one, %one, %acc : tensor<1x1xf32> * tensor<1x1xf32> -> tensor<1x1xf32>
      scf.yield %next : tensor<1x1xf32>
    }
    %value = tt.unsplat %d : tensor<1x1xf32>
    tt.store %one_of, %value : !tt.ptr<f32>
    %then = tt.addptr %other, %c1 : !tt.ptr<f32>, i32
    %later = tt.addptr %one_of, %c1 : !tt.ptr<f32>, i32
    scf.yield %then, %later : !tt.ptr<f32>, !tt.ptr<f32>
  }
  tt.return
}

// -----

tt.func @becomes_the_result(%a: !tt.ptr<f32>, %b: !tt.ptr<f32>, %c: !tt.ptr<f32>, %table: !tt.ptr<i64>, %tiles: i32, %steps: i32, %which: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<1x1xf32>
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %pid = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  // expected-error@+1 {{mode=on, but this loop cannot be flattened: tt.load may read what the tile loop stores, and the next tile's loads would overtake this tile's stores}}
  %r = scf.for %tile = %pid to %tiles step %programs iter_args(%from = %a) -> (!tt.ptr<f32>) : i32 {
    %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<1x1xf32>) : i32 {
      %x = tt.load %from : !tt.ptr<f32>
      %next = tt.dot %one, %one, %acc : tensor<1x1xf32> * tensor<1x1xf32> -> tensor<1x1xf32>
      scf.yield %next : tensor<1x1xf32>
    }
    %value = tt.unsplat %d : tensor<1x1xf32>
    tt.store %c, %value : !tt.ptr<f32>
    scf.yield %c : !tt.ptr<f32>
  }
  tt.return
}

// -----

tt.func @moves_on(%a: !tt.ptr<f32>, %b: !tt.ptr<f32>, %c: !tt.ptr<f32>, %table: !tt.ptr<i64>, %tiles: i32, %steps: i32, %which: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<1x1xf32>
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %pid = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  // expected-remark@+1 {{flatten = on}}
  %r = scf.for %tile = %pid to %tiles step %programs iter_args(%from = %a) -> (!tt.ptr<f32>) : i32 {
    %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<1x1xf32>) : i32 {
      %x = tt.load %from : !tt.ptr<f32>
      %next = tt.dot %one, %one, %acc : tensor<1x1xf32> * tensor<1x1xf32> -> tensor<1x1xf32>
      scf.yield %next : tensor<1x1xf32>
    }
    %value = tt.unsplat %d : tensor<1x1xf32>
    tt.store %c, %value : !tt.ptr<f32>
    %further = tt.addptr %from, %c1 : !tt.ptr<f32>, i32
    scf.yield %further : !tt.ptr<f32>
  }
  tt.return
}

// -----

tt.func @moves_on_in_the_inner_loop(%a: !tt.ptr<f32>, %b: !tt.ptr<f32>, %c: !tt.ptr<f32>, %table: !tt.ptr<i64>, %tiles: i32, %steps: i32, %which: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<1x1xf32>
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %pid = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  // expected-remark@+1 {{flatten = on}}
  scf.for %tile = %pid to %tiles step %programs : i32 {
    %d:2 = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero, %p = %a) -> (tensor<1x1xf32>, !tt.ptr<f32>) : i32 {
      %x = tt.load %p : !tt.ptr<f32>
      %next = tt.dot %one, %one, %acc : tensor<1x1xf32> * tensor<1x1xf32> -> tensor<1x1xf32>
      %q = tt.addptr %p, %c1 : !tt.ptr<f32>, i32
      scf.yield %next, %q : tensor<1x1xf32>, !tt.ptr<f32>
    }
    %value = tt.unsplat %d#0 : tensor<1x1xf32>
    tt.store %c, %value : !tt.ptr<f32>
  }
  tt.return
}

// -----

tt.func @chosen(%a: !tt.ptr<f32>, %b: !tt.ptr<f32>, %c: !tt.ptr<f32>, %table: !tt.ptr<i64>, %tiles: i32, %steps: i32, %which: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<1x1xf32>
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %pid = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  %from = arith.select %which, %a, %c : !tt.ptr<f32>
  // expected-error@+1 {{mode=on, but this loop cannot be flattened: tt.load may read what the tile loop stores, and the next tile's loads would overtake this tile's stores}}
  scf.for %tile = %pid to %tiles step %programs : i32 {
    %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<1x1xf32>) : i32 {
      %x = tt.load %from : !tt.ptr<f32>
      %next = tt.dot %one, %one, %acc : tensor<1x1xf32> * tensor<1x1xf32> -> tensor<1x1xf32>
      scf.yield %next : tensor<1x1xf32>
    }
    %value = tt.unsplat %d : tensor<1x1xf32>
    tt.store %c, %value : !tt.ptr<f32>
  }
  tt.return
}

// -----

tt.func @chosen_apart(%a: !tt.ptr<f32>, %b: !tt.ptr<f32>, %c: !tt.ptr<f32>, %table: !tt.ptr<i64>, %tiles: i32, %steps: i32, %which: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<1x1xf32>
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %pid = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  %from = arith.select %which, %a, %b : !tt.ptr<f32>
  // expected-remark@+1 {{flatten = on}}
  scf.for %tile = %pid to %tiles step %programs : i32 {
    %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<1x1xf32>) : i32 {
      %x = tt.load %from : !tt.ptr<f32>
      %next = tt.dot %one, %one, %acc : tensor<1x1xf32> * tensor<1x1xf32> -> tensor<1x1xf32>
      scf.yield %next : tensor<1x1xf32>
    }
    %value = tt.unsplat %d : tensor<1x1xf32>
    tt.store %c, %value : !tt.ptr<f32>
  }
  tt.return
}

// -----

tt.func @branches(%a: !tt.ptr<f32>, %b: !tt.ptr<f32>, %c: !tt.ptr<f32>, %table: !tt.ptr<i64>, %tiles: i32, %steps: i32, %which: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<1x1xf32>
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %pid = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  %from = scf.if %which -> (!tt.ptr<f32>) {
    scf.yield %a : !tt.ptr<f32>
  } else {
    scf.yield %c : !tt.ptr<f32>
  }
  // expected-error@+1 {{mode=on, but this loop cannot be flattened: tt.load may read what the tile loop stores, and the next tile's loads would overtake this tile's stores}}
  scf.for %tile = %pid to %tiles step %programs : i32 {
    %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<1x1xf32>) : i32 {
      %x = tt.load %from : !tt.ptr<f32>
      %next = tt.dot %one, %one, %acc : tensor<1x1xf32> * tensor<1x1xf32> -> tensor<1x1xf32>
      scf.yield %next : tensor<1x1xf32>
    }
    %value = tt.unsplat %d : tensor<1x1xf32>
    tt.store %c, %value : !tt.ptr<f32>
  }
  tt.return
}

// -----

tt.func @branches_apart(%a: !tt.ptr<f32>, %b: !tt.ptr<f32>, %c: !tt.ptr<f32>, %table: !tt.ptr<i64>, %tiles: i32, %steps: i32, %which: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<1x1xf32>
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %pid = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  %from = scf.if %which -> (!tt.ptr<f32>) {
    scf.yield %a : !tt.ptr<f32>
  } else {
    scf.yield %b : !tt.ptr<f32>
  }
  // expected-remark@+1 {{flatten = on}}
  scf.for %tile = %pid to %tiles step %programs : i32 {
    %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<1x1xf32>) : i32 {
      %x = tt.load %from : !tt.ptr<f32>
      %next = tt.dot %one, %one, %acc : tensor<1x1xf32> * tensor<1x1xf32> -> tensor<1x1xf32>
      scf.yield %next : tensor<1x1xf32>
    }
    %value = tt.unsplat %d : tensor<1x1xf32>
    tt.store %c, %value : !tt.ptr<f32>
  }
  tt.return
}

// -----

tt.func @result_of_a_loop(%a: !tt.ptr<f32>, %b: !tt.ptr<f32>, %c: !tt.ptr<f32>, %table: !tt.ptr<i64>, %tiles: i32, %steps: i32, %which: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<1x1xf32>
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %pid = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  %from = scf.for %i = %c0 to %steps step %c1 iter_args(%at = %a) -> (!tt.ptr<f32>) : i32 {
    scf.yield %c : !tt.ptr<f32>
  }
  // expected-error@+1 {{mode=on, but this loop cannot be flattened: tt.load may read what the tile loop stores, and the next tile's loads would overtake this tile's stores}}
  scf.for %tile = %pid to %tiles step %programs : i32 {
    %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<1x1xf32>) : i32 {
      %x = tt.load %from : !tt.ptr<f32>
      %next = tt.dot %one, %one, %acc : tensor<1x1xf32> * tensor<1x1xf32> -> tensor<1x1xf32>
      scf.yield %next : tensor<1x1xf32>
    }
    %value = tt.unsplat %d : tensor<1x1xf32>
    tt.store %c, %value : !tt.ptr<f32>
  }
  tt.return
}

// -----

// A pointer that is loaded points anywhere.
tt.func @stored_out_of_a_table(%a: !tt.ptr<f32>, %b: !tt.ptr<f32>, %c: !tt.ptr<f32>, %table: !tt.ptr<i64>, %tiles: i32, %steps: i32, %which: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<1x1xf32>
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %pid = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  %entry = tt.load %table : !tt.ptr<i64>
  %to = tt.int_to_ptr %entry : i64 -> !tt.ptr<f32>
  // expected-error@+1 {{mode=on, but this loop cannot be flattened: tt.load may read what the tile loop stores, and the next tile's loads would overtake this tile's stores}}
  scf.for %tile = %pid to %tiles step %programs : i32 {
    %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<1x1xf32>) : i32 {
      %x = tt.load %a : !tt.ptr<f32>
      %next = tt.dot %one, %one, %acc : tensor<1x1xf32> * tensor<1x1xf32> -> tensor<1x1xf32>
      scf.yield %next : tensor<1x1xf32>
    }
    %value = tt.unsplat %d : tensor<1x1xf32>
    tt.store %to, %value : !tt.ptr<f32>
  }
  tt.return
}

// -----

tt.func @loaded_out_of_a_table(%a: !tt.ptr<f32>, %b: !tt.ptr<f32>, %c: !tt.ptr<f32>, %table: !tt.ptr<i64>, %tiles: i32, %steps: i32, %which: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<1x1xf32>
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %pid = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  %entry = tt.load %table : !tt.ptr<i64>
  %from = tt.int_to_ptr %entry : i64 -> !tt.ptr<f32>
  // expected-error@+1 {{mode=on, but this loop cannot be flattened: tt.load may read what the tile loop stores, and the next tile's loads would overtake this tile's stores}}
  scf.for %tile = %pid to %tiles step %programs : i32 {
    %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<1x1xf32>) : i32 {
      %x = tt.load %from : !tt.ptr<f32>
      %next = tt.dot %one, %one, %acc : tensor<1x1xf32> * tensor<1x1xf32> -> tensor<1x1xf32>
      scf.yield %next : tensor<1x1xf32>
    }
    %value = tt.unsplat %d : tensor<1x1xf32>
    tt.store %c, %value : !tt.ptr<f32>
  }
  tt.return
}
