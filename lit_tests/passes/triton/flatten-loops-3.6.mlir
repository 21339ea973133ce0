// REQUIRES: triton-3.6
// RUN: tilepass-opt %s --split-input-file --target cuda:90 -p 'flatten-loops{mode=on}' -Rpass=. 2>&1 | %filecheck %s
// RUN: tilepass-opt %s --split-input-file --target cuda:90 -p 'flatten-loops{clamp=false}' | %filecheck %s --check-prefix=KEEP
// RUN: not tilepass-opt %s --split-input-file --target cuda:90 -p 'flatten-loops{mode=on,clamp=false}' 2>&1 | %filecheck %s --check-prefix=ERROR

// Triton 3.6 runs an inner loop whose upper bound is below the lower one once when it is fused.
// CHECK:       remark: [flatten-loops] passed: flatten = on {{.*}}; the inner loop's and the tile loop's upper bound is clamped to its lower one
// CHECK-LABEL: tt.func @empty_or_not
// CHECK:         scf.for
// CHECK:           %[[TRIPS:.*]] = arith.maxsi %{{.*}}, %[[ZERO:.*]] : i32
// CHECK:           scf.for {{.*}} = %[[ZERO]] to %[[TRIPS]] step
// CHECK:         } {tt.flatten}
// KEEP-LABEL:  tt.func @empty_or_not
// KEEP-NOT:      arith.maxsi
// KEEP-NOT:      tt.flatten
// ERROR:       flatten-loops-3.6.mlir:[[#]]:3: error: mode=on, but this loop cannot be flattened: the inner loop's trip count is not provably positive, and triton 3.6.0 runs it once where its upper bound is below its lower one (#11656); write `tl.assume(upper > lower)` before the tile loop
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

// Triton 3.6 believes the assumption of another branch. The clamped bound is not the assumed one.
// CHECK-LABEL: tt.func @assumed_elsewhere
// CHECK:         llvm.intr.assume
// CHECK:         scf.for
// CHECK:           arith.maxsi
// ERROR:       error: mode=on, but this loop cannot be flattened: triton 3.6.0 takes an assumption of another branch for granted
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

// Proven to run at least once: flattened as it is.
// CHECK-LABEL: tt.func @assumed_above
// CHECK:         scf.for
// CHECK-NOT:       arith.max
// CHECK:         } {tt.flatten}
// KEEP-LABEL:  tt.func @assumed_above
// KEEP:          } {tt.flatten}
tt.func @assumed_above(%a: tensor<128x64x!tt.ptr<bf16>>, %b: tensor<64x128x!tt.ptr<bf16>>, %c: tensor<128x128x!tt.ptr<f32>>, %tiles: i32, %steps: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %pid = tt.get_program_id x : i32
  %enough = arith.cmpi sge, %tiles, %pid : i32
  llvm.intr.assume %enough : i1
  %known = arith.cmpi sge, %steps, %c1 : i32
  llvm.intr.assume %known : i1
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

// Proven not to be below: flattened as it is.
// CHECK-LABEL: tt.func @maximum
// CHECK:         arith.maxsi
// CHECK:         scf.for
// CHECK-NOT:       arith.max
// CHECK:         } {tt.flatten}
tt.func @maximum(%a: tensor<128x64x!tt.ptr<bf16>>, %b: tensor<64x128x!tt.ptr<bf16>>, %c: tensor<128x128x!tt.ptr<f32>>, %tiles: i32, %steps: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %pid = tt.get_program_id x : i32
  %clamped = arith.maxsi %steps, %c0 : i32
  scf.for %tile = %pid to %tiles step %c1 : i32 {
    %d = scf.for %k = %c0 to %clamped step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %x = tt.load %a : tensor<128x64x!tt.ptr<bf16>>
      %y = tt.load %b : tensor<64x128x!tt.ptr<bf16>>
      %next = tt.dot %x, %y, %acc : tensor<128x64xbf16> * tensor<64x128xbf16> -> tensor<128x128xf32>
      scf.yield %next : tensor<128x128xf32>
    }
    tt.store %c, %d : tensor<128x128x!tt.ptr<f32>>
  }
  tt.return
}
