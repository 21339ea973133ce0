// RUN: tilepass-opt %s --load %test_passes -p test-prints 2> %t.err | %filecheck %s
// RUN: %filecheck %s --check-prefix=PRINTED < %t.err

// Standard output is for the module.
// CHECK-NOT:  operations
// CHECK:      module
// PRINTED:    3 operations
tt.func @f(%x: i32) -> i32 {
  tt.return %x : i32
}
