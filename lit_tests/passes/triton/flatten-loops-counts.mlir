// RUN: tilepass-opt %s --split-input-file --verify-diagnostics --target cuda:90 -p 'flatten-loops{mode=on}'

// The fused loop takes (number of tiles) x (inner trips) steps, counted in signed numbers of the
// wider loop's type.
// From the least number to the greatest: fusing would count no trip.
tt.func @whole_span(%a: !tt.ptr<f32>, %c: tensor<1x1x!tt.ptr<f32>>, %tiles: i32, %lower: i32, %steps: i32, %step: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<1x1xf32>
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %pid = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  %least = arith.constant -2147483648 : i32
  %most = arith.constant 2147483647 : i32
  %big = arith.constant 1073741824 : i32
  // expected-error@+1 {{mode=on, but this loop cannot be flattened: the distance between the inner loop's bounds may not fit their type}}
  scf.for %tile = %pid to %tiles step %programs : i32 {
    %d = scf.for %k = %least to %most step %big iter_args(%acc = %zero) -> (tensor<1x1xf32>) : i32 {
      %x = tt.load %a : !tt.ptr<f32>
      %next = tt.dot %one, %one, %acc : tensor<1x1xf32> * tensor<1x1xf32> -> tensor<1x1xf32>
      scf.yield %next : tensor<1x1xf32>
    }
    tt.store %c, %d : tensor<1x1x!tt.ptr<f32>>
  }
  tt.return
}

// -----

// May be as far below zero as the upper bound is above.
tt.func @lower_argument(%a: !tt.ptr<f32>, %c: tensor<1x1x!tt.ptr<f32>>, %tiles: i32, %lower: i32, %steps: i32, %step: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<1x1xf32>
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %pid = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  // expected-error@+1 {{mode=on, but this loop cannot be flattened: the distance between the inner loop's bounds may not fit their type}}
  scf.for %tile = %pid to %tiles step %programs : i32 {
    %d = scf.for %k = %lower to %steps step %c1 iter_args(%acc = %zero) -> (tensor<1x1xf32>) : i32 {
      %x = tt.load %a : !tt.ptr<f32>
      %next = tt.dot %one, %one, %acc : tensor<1x1xf32> * tensor<1x1xf32> -> tensor<1x1xf32>
      scf.yield %next : tensor<1x1xf32>
    }
    tt.store %c, %d : tensor<1x1x!tt.ptr<f32>>
  }
  tt.return
}

// -----

tt.func @lower_not_negative(%a: !tt.ptr<f32>, %c: tensor<1x1x!tt.ptr<f32>>, %tiles: i32, %lower: i32, %steps: i32, %step: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<1x1xf32>
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %pid = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  %sge_lower = arith.cmpi sge, %lower, %c0 : i32
  llvm.intr.assume %sge_lower : i1
  // expected-remark@+1 {{flatten = on}}
  scf.for %tile = %pid to %tiles step %programs : i32 {
    %d = scf.for %k = %lower to %steps step %c1 iter_args(%acc = %zero) -> (tensor<1x1xf32>) : i32 {
      %x = tt.load %a : !tt.ptr<f32>
      %next = tt.dot %one, %one, %acc : tensor<1x1xf32> * tensor<1x1xf32> -> tensor<1x1xf32>
      scf.yield %next : tensor<1x1xf32>
    }
    tt.store %c, %d : tensor<1x1x!tt.ptr<f32>>
  }
  tt.return
}

// -----

// Both bounds are close to zero.
tt.func @close_bounds(%a: !tt.ptr<f32>, %c: tensor<1x1x!tt.ptr<f32>>, %tiles: i32, %lower: i32, %steps: i32, %step: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<1x1xf32>
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %pid = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  %c7 = arith.constant 7 : i32
  %near = arith.remsi %lower, %c7 : i32
  %below = arith.subi %near, %c7 : i32
  %far = arith.divsi %steps, %c7 : i32
  // expected-remark@+1 {{flatten = on}}
  scf.for %tile = %pid to %tiles step %programs : i32 {
    %d = scf.for %k = %below to %far step %c1 iter_args(%acc = %zero) -> (tensor<1x1xf32>) : i32 {
      %x = tt.load %a : !tt.ptr<f32>
      %next = tt.dot %one, %one, %acc : tensor<1x1xf32> * tensor<1x1xf32> -> tensor<1x1xf32>
      scf.yield %next : tensor<1x1xf32>
    }
    tt.store %c, %d : tensor<1x1x!tt.ptr<f32>>
  }
  tt.return
}

// -----

// The tile loop's bounds.
tt.func @tiles_from_an_argument(%a: !tt.ptr<f32>, %c: tensor<1x1x!tt.ptr<f32>>, %tiles: i32, %lower: i32, %steps: i32, %step: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<1x1xf32>
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %pid = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  %first = arith.addi %lower, %pid : i32
  // expected-error@+1 {{mode=on, but this loop cannot be flattened: the distance between the tile loop's bounds may not fit their type}}
  scf.for %tile = %first to %tiles step %programs : i32 {
    %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<1x1xf32>) : i32 {
      %x = tt.load %a : !tt.ptr<f32>
      %next = tt.dot %one, %one, %acc : tensor<1x1xf32> * tensor<1x1xf32> -> tensor<1x1xf32>
      scf.yield %next : tensor<1x1xf32>
    }
    tt.store %c, %d : tensor<1x1x!tt.ptr<f32>>
  }
  tt.return
}

// -----

// Where no tile runs, the source does not care about the step.
tt.func @step_may_be_zero(%a: !tt.ptr<f32>, %c: tensor<1x1x!tt.ptr<f32>>, %tiles: i32, %lower: i32, %steps: i32, %step: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<1x1xf32>
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %pid = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  // expected-error@+1 {{mode=on, but this loop cannot be flattened: the inner loop's step may be zero; fusing would divide by it even where no tile runs}}
  scf.for %tile = %pid to %tiles step %programs : i32 {
    %d = scf.for %k = %c0 to %steps step %step iter_args(%acc = %zero) -> (tensor<1x1xf32>) : i32 {
      %x = tt.load %a : !tt.ptr<f32>
      %next = tt.dot %one, %one, %acc : tensor<1x1xf32> * tensor<1x1xf32> -> tensor<1x1xf32>
      scf.yield %next : tensor<1x1xf32>
    }
    tt.store %c, %d : tensor<1x1x!tt.ptr<f32>>
  }
  tt.return
}

// -----

tt.func @step_above_zero(%a: !tt.ptr<f32>, %c: tensor<1x1x!tt.ptr<f32>>, %tiles: i32, %lower: i32, %steps: i32, %step: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<1x1xf32>
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %pid = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  %sgt_step = arith.cmpi sgt, %step, %c0 : i32
  llvm.intr.assume %sgt_step : i1
  // expected-remark@+1 {{flatten = on}}
  scf.for %tile = %pid to %tiles step %programs : i32 {
    %d = scf.for %k = %c0 to %steps step %step iter_args(%acc = %zero) -> (tensor<1x1xf32>) : i32 {
      %x = tt.load %a : !tt.ptr<f32>
      %next = tt.dot %one, %one, %acc : tensor<1x1xf32> * tensor<1x1xf32> -> tensor<1x1xf32>
      scf.yield %next : tensor<1x1xf32>
    }
    tt.store %c, %d : tensor<1x1x!tt.ptr<f32>>
  }
  tt.return
}

// -----

tt.func @unsigned(%a: !tt.ptr<f32>, %c: tensor<1x1x!tt.ptr<f32>>, %tiles: i32, %lower: i32, %steps: i32, %step: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<1x1xf32>
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %pid = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  // expected-error@+1 {{mode=on, but this loop cannot be flattened: the inner loop compares unsigned numbers, and fusing counts its trips signed}}
  scf.for %tile = %pid to %tiles step %programs : i32 {
    %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<1x1xf32>) : i32 {
      %x = tt.load %a : !tt.ptr<f32>
      %next = tt.dot %one, %one, %acc : tensor<1x1xf32> * tensor<1x1xf32> -> tensor<1x1xf32>
      scf.yield %next : tensor<1x1xf32>
    } {unsignedCmp}
    tt.store %c, %d : tensor<1x1x!tt.ptr<f32>>
  }
  tt.return
}

// -----

tt.func @unsigned_not_negative(%a: !tt.ptr<f32>, %c: tensor<1x1x!tt.ptr<f32>>, %tiles: i32, %lower: i32, %steps: i32, %step: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<1x1xf32>
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %pid = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  %sge_steps = arith.cmpi sge, %steps, %c0 : i32
  llvm.intr.assume %sge_steps : i1
  // expected-remark@+1 {{flatten = on}}
  scf.for %tile = %pid to %tiles step %programs : i32 {
    %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<1x1xf32>) : i32 {
      %x = tt.load %a : !tt.ptr<f32>
      %next = tt.dot %one, %one, %acc : tensor<1x1xf32> * tensor<1x1xf32> -> tensor<1x1xf32>
      scf.yield %next : tensor<1x1xf32>
    } {unsignedCmp}
    tt.store %c, %d : tensor<1x1x!tt.ptr<f32>>
  }
  tt.return
}

// -----

// Two tiles are too many.
tt.func @product_of_constants(%a: !tt.ptr<f32>, %c: tensor<1x1x!tt.ptr<f32>>, %tiles: i32, %lower: i32, %steps: i32, %step: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<1x1xf32>
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %pid = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  %more = arith.constant 1073741824 : i32
  // expected-error@+1 {{mode=on, but this loop cannot be flattened: the number of tiles times that of inner trips may not fit their type}}
  scf.for %tile = %pid to %tiles step %programs : i32 {
    %d = scf.for %k = %c0 to %more step %c1 iter_args(%acc = %zero) -> (tensor<1x1xf32>) : i32 {
      %x = tt.load %a : !tt.ptr<f32>
      %next = tt.dot %one, %one, %acc : tensor<1x1xf32> * tensor<1x1xf32> -> tensor<1x1xf32>
      scf.yield %next : tensor<1x1xf32>
    }
    tt.store %c, %d : tensor<1x1x!tt.ptr<f32>>
  }
  tt.return
}

// -----

// 300 tiles of 300 trips do not fit i16.
tt.func @product_of_narrow_numbers(%a: !tt.ptr<f32>, %c: tensor<1x1x!tt.ptr<f32>>, %tiles: i32, %lower: i32, %steps: i32, %step: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<1x1xf32>
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %pid = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  %p16 = arith.trunci %pid : i32 to i16
  %m = arith.constant 255 : i32
  %pm = arith.andi %pid, %m : i32
  %first = arith.trunci %pm : i32 to i16
  %n16 = arith.constant 600 : i16
  %c1_16 = arith.constant 1 : i16
  %c0_16 = arith.constant 0 : i16
  %t16 = arith.constant 300 : i16
  // expected-error@+1 {{mode=on, but this loop cannot be flattened: the number of tiles times that of inner trips may not fit their type}}
  scf.for %tile = %first to %n16 step %c1_16 : i16 {
    %d = scf.for %k = %c0_16 to %t16 step %c1_16 iter_args(%acc = %zero) -> (tensor<1x1xf32>) : i16 {
      %x = tt.load %a : !tt.ptr<f32>
      %next = tt.dot %one, %one, %acc : tensor<1x1xf32> * tensor<1x1xf32> -> tensor<1x1xf32>
      scf.yield %next : tensor<1x1xf32>
    }
    tt.store %c, %d : tensor<1x1x!tt.ptr<f32>>
  }
  tt.return
}

// -----

tt.func @product_of_small_numbers(%a: !tt.ptr<f32>, %c: tensor<1x1x!tt.ptr<f32>>, %tiles: i32, %lower: i32, %steps: i32, %step: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<1x1xf32>
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %pid = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  %m = arith.constant 255 : i32
  %pm = arith.andi %pid, %m : i32
  %first = arith.trunci %pm : i32 to i16
  %n16 = arith.constant 600 : i16
  %c1_16 = arith.constant 1 : i16
  %c0_16 = arith.constant 0 : i16
  %t16 = arith.constant 30 : i16
  // expected-remark@+1 {{flatten = on}}
  scf.for %tile = %first to %n16 step %c1_16 : i16 {
    %d = scf.for %k = %c0_16 to %t16 step %c1_16 iter_args(%acc = %zero) -> (tensor<1x1xf32>) : i16 {
      %x = tt.load %a : !tt.ptr<f32>
      %next = tt.dot %one, %one, %acc : tensor<1x1xf32> * tensor<1x1xf32> -> tensor<1x1xf32>
      scf.yield %next : tensor<1x1xf32>
    }
    tt.store %c, %d : tensor<1x1x!tt.ptr<f32>>
  }
  tt.return
}
