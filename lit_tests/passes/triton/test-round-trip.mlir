// RUN: tilepass-opt %s -p test-round-trip -o %t.once --mlir-print-debuginfo
// RUN: tilepass-opt %s -o %t.never --mlir-print-debuginfo
// RUN: diff %t.never %t.once
// RUN: tilepass-opt %s -p 'test-round-trip' | %filecheck %s
// RUN: not tilepass-opt %s -p 'test-round-trip{x=1}' 2>&1 | %filecheck %s --check-prefix=ERROR

// ERROR: error: pass 'test-round-trip' has no option 'x'
// CHECK-LABEL: tt.func public @kernel
// CHECK:         arith.constant dense<0xFF800000>
// CHECK:         scf.for
// CHECK:         } {tt.flatten, tt.num_stages = 3 : i32}
tt.func public @kernel(%p: tensor<4x!tt.ptr<f32>> {tt.divisibility = 16 : i32}, %n: i32) {
  %lowest = arith.constant dense<0xFF800000> : tensor<4xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    tt.store %p, %lowest : tensor<4x!tt.ptr<f32>>
  } {tt.flatten, tt.num_stages = 3 : i32}
  tt.return
}
