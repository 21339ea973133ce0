// RUN: not tilepass-opt %s 2>&1 | %filecheck %s --check-prefix=REFUSED
// RUN: tilepass-opt %s --allow-unregistered-dialect --load %test_passes -p test-rename-attribute | %filecheck %s
// RUN: tilepass-opt %s --allow-unregistered-dialect --load %test_passes -p test-remarks -Rpass-analysis=. 2>&1 | %filecheck %s --check-prefix=COMPILER
// RUN: not tilepass-opt %s -allow-unregistered-dialect -p cse 2>&1 | %filecheck %s --check-prefix=TRITON
// RUN: not tilepass-opt %s -allow-unregistered-dialect --load %test_passes -p test-raises 2>&1 | %filecheck %s --check-prefix=REPLAY

// REFUSED: unregistered-dialect.mlir:14:14: error: operation being parsed with an unregistered dialect
// CHECK:   "foo.bar"() {test.new = 1 : i32} : () -> ()
// COMPILER: analysis: target is None of triton 3.
// TRITON:  error: 'cse' is a pass of Triton
// REPLAY:  replay: tilepass-opt {{.*}} --allow-unregistered-dialect
"builtin.module"() ({
  "tt.func"() <{function_type = () -> (), sym_name = "f"}> ({
    "foo.bar"() {test.old = 1 : i32} : () -> ()
    %0 = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %1 = "arith.addi"(%0, %0) : (i32, i32) -> i32
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
