// RUN: not tilepass-opt %s --load %test_passes -p test-refuses 2>&1 | %filecheck %s

// CHECK:      error: pass 'test-refuses':
// CHECK-NEXT: {{^.*}}pass-refuses.mlir:7:8: error: cannot be forced here
// CHECK-NOT:  reproducer
tt.func @f(%x: i32) -> i32 {
  %0 = arith.addi %x, %x : i32
  tt.return %0 : i32
}
