// REQUIRES: triton-3.9+
// RUN: tilepass-opt %s --split-input-file --target cuda:90 -p 'flatten-loops{mode=on}' | %filecheck %s

// From Triton 3.9 on, an inner loop whose upper bound is below the lower one stays empty.
// CHECK-LABEL: tt.func @empty_or_not
// CHECK:         arith.maxsi
// CHECK:         scf.for
// CHECK-NOT:     arith.maxsi
// CHECK:         } {tt.flatten}
tt.func @empty_or_not(%a: tensor<128x64x!tt.ptr<bf16>>, %b: tensor<64x128x!tt.ptr<bf16>>, %c: tensor<128x128x!tt.ptr<f32>>, %tiles: i32, %steps: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %pid = tt.get_program_id x : i32
  scf.for %tile = %pid to %tiles step %c1 : i32 {
    %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %x = tt.load %a : tensor<128x64x!tt.ptr<bf16>>
      %y = tt.load %b : tensor<64x128x!tt.ptr<bf16>>
      %next = tt.dot %x, %y, %acc : tensor<128x64xbf16> * tensor<64x128xbf16> -> tensor<128x128xf32>
      scf.yield %next : tensor<128x128xf32>
    }
    tt.store %c, %d : tensor<128x128x!tt.ptr<f32>>
  }
  tt.return
}

// -----

// CHECK-LABEL: tt.func @assumed_elsewhere
// CHECK:         arith.maxsi
// CHECK:         scf.for
// CHECK-NOT:     arith.maxsi
// CHECK:         } {tt.flatten}
tt.func @assumed_elsewhere(%a: tensor<128x64x!tt.ptr<bf16>>, %b: tensor<64x128x!tt.ptr<bf16>>, %c: tensor<128x128x!tt.ptr<f32>>, %tiles: i32, %steps: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %pid = tt.get_program_id x : i32
  %empty = arith.cmpi eq, %tiles, %c1 : i32
  scf.if %empty {
    %known = arith.cmpi sgt, %steps, %c0 : i32
    llvm.intr.assume %known : i1
  }
  scf.for %tile = %pid to %tiles step %c1 : i32 {
    %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %x = tt.load %a : tensor<128x64x!tt.ptr<bf16>>
      %y = tt.load %b : tensor<64x128x!tt.ptr<bf16>>
      %next = tt.dot %x, %y, %acc : tensor<128x64xbf16> * tensor<64x128xbf16> -> tensor<128x128xf32>
      scf.yield %next : tensor<128x128xf32>
    }
    tt.store %c, %d : tensor<128x128x!tt.ptr<f32>>
  }
  tt.return
}

// -----

// CHECK-LABEL: tt.func @carried_twice
// CHECK:         } {tt.flatten}
tt.func @carried_twice(%a: tensor<128x64x!tt.ptr<bf16>>, %b: tensor<64x128x!tt.ptr<bf16>>, %c: tensor<128x128x!tt.ptr<f32>>, %tiles: i32, %steps: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %pid = tt.get_program_id x : i32
  %r:2 = scf.for %tile = %pid to %tiles step %c1 iter_args(%u = %c0, %v = %c0) -> (i32, i32) : i32 {
    %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %x = tt.load %a : tensor<128x64x!tt.ptr<bf16>>
      %y = tt.load %b : tensor<64x128x!tt.ptr<bf16>>
      %next = tt.dot %x, %y, %acc : tensor<128x64xbf16> * tensor<64x128xbf16> -> tensor<128x128xf32>
      scf.yield %next : tensor<128x128xf32>
    }
    tt.store %c, %d : tensor<128x128x!tt.ptr<f32>>
    %e = arith.addi %u, %tile : i32
    scf.yield %e, %e : i32, i32
  } {tt.flatten}
  tt.return
}

// -----

// CHECK-LABEL: tt.func @ends_with_a_condition
// CHECK:         } {tt.flatten}
tt.func @ends_with_a_condition(%a: tensor<128x64x!tt.ptr<bf16>>, %b: tensor<64x128x!tt.ptr<bf16>>, %c: tensor<128x128x!tt.ptr<f32>>, %tiles: i32, %steps: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %pid = tt.get_program_id x : i32
  scf.for %tile = %pid to %tiles step %c1 : i32 {
    %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %x = tt.load %a : tensor<128x64x!tt.ptr<bf16>>
      %y = tt.load %b : tensor<64x128x!tt.ptr<bf16>>
      %next = tt.dot %x, %y, %acc : tensor<128x64xbf16> * tensor<64x128xbf16> -> tensor<128x128xf32>
      scf.yield %next : tensor<128x128xf32>
    }
    %o = arith.negf %d : tensor<128x128xf32>
    %even = arith.cmpi slt, %tile, %steps : i32
    scf.if %even {
      tt.store %c, %o : tensor<128x128x!tt.ptr<f32>>
    }
  } {tt.flatten}
  tt.return
}
