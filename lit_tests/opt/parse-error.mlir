// RUN: not tilepass-opt %s > %t.out 2> %t.err
// RUN: %filecheck %s < %t.err
// RUN: %python -c "import sys; sys.exit(open(sys.argv[1]).read() != '')" %t.out
// RUN: not tilepass-opt - < %s 2>&1 | %filecheck %s --check-prefix=STDIN

// CHECK:     {{^.*}}parse-error.mlir:10:23: error: use of undeclared SSA value name
// CHECK-NOT: Traceback
// STDIN:     {{^}}<stdin>:10:23: error: use of undeclared SSA value name
tt.func @f(%x: i32) -> i32 {
  %0 = arith.addi %x, %y : i32
  tt.return %0 : i32
}
