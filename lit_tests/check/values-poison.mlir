// RUN: not tilepass check %s --no-protocol 2>&1 | %filecheck %s

// A quotient by zero is not an error as long as nothing depends on it.

// CHECK:      poison.mlir:14:3: error: tt.store: a stored value is poison (division by zero)
// CHECK-NEXT: note: in program (0, 0, 0) of grid (1, 1, 1)
tt.func @divides(%out: !tt.ptr<i32> loc("out"), %n: i32 loc("n")) {
  %c0 = arith.constant 0 : i32
  %q = arith.divsi %n, %c0 : i32
  %false = arith.constant false
  %fine = arith.select %false, %q, %n : i32
  tt.store %out, %fine : !tt.ptr<i32>
  %sum = arith.addi %q, %n : i32
  tt.store %out, %sum : !tt.ptr<i32>
  tt.return
}
