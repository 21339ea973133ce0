// RUN: not tilepass check %s --no-protocol --step-limit 1000 2>&1 | %filecheck %s

// CHECK: step-limit.mlir:7:8: error: scf.while: the step limit is reached in this loop
tt.func @endless(%n: i32 loc("n")) {
  // The condition never becomes false.
  %c0 = arith.constant 0 : i32
  %r = scf.while (%i = %c0) : (i32) -> i32 {
    %more = arith.cmpi slt, %c0, %n : i32
    scf.condition(%more) %i : i32
  } do {
  ^bb0(%i: i32):
    %next = arith.addi %i, %n : i32
    scf.yield %next : i32
  }
  tt.return
}
