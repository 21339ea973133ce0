// RUN: tilepass-opt %s --verify-diagnostics --load %test_passes -p test-remarks -Rno-pass-missed
// RUN: tilepass-opt %s --verify-diagnostics --load %test_passes -p test-remarks -Rpass=. 
// RUN: not tilepass-opt %s --verify-diagnostics --load %test_passes -p test-remarks -Rpass-analysis=. 2>&1 | %filecheck %s
// RUN: not tilepass-opt %s --verify-diagnostics -p cse 2>&1 | %filecheck %s --check-prefix=NONE

// Remarks that the flags do not ask for may be expected; those that they ask for must be.
// CHECK:     verify-remarks.mlir:[[LINE:[0-9]+]]:8: error: unexpected remark: [test-remarks] analysis: target is None
// CHECK-NOT: error
// NONE:      error: expected remark "[test-remarks] passed: added" was not produced
// NONE:      error: expected remark "not multiplied" was not produced
tt.func @f(%x: i32) -> i32 {
  // expected-remark@+2 {{[test-remarks] passed: added}}
  // expected-remark@+1 {{not multiplied}}
  %0 = arith.addi %x, %x : i32
  tt.return %0 : i32
}
