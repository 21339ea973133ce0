// RUN: tilepass-opt %s --load %test_passes -p test-remarks 2>&1 >/dev/null | %filecheck %s --check-prefix=DEFAULT
// RUN: tilepass-opt %s --load %test_passes -p test-remarks -Rpass=remark -Rpass-missed=^test-remarks$ -Rpass-analysis=test 2>&1 >/dev/null | %filecheck %s --check-prefix=ALL
// RUN: tilepass-opt %s --load %test_passes -p test-remarks -Rpass=flatten -Rpass-missed=flatten 2>%t.none >/dev/null
// RUN: tilepass-opt %s --load %test_passes -p test-remarks -Rno-pass-missed 2>>%t.none >/dev/null
// RUN: %python -c "import sys; sys.exit(open(sys.argv[1]).read() != '')" %t.none
// RUN: not tilepass-opt %s -Rpass=[ 2>&1 | %filecheck %s --check-prefix=REGEX

// What a pass missed is told without being asked for.
// DEFAULT-NOT: passed:
// DEFAULT:     remarks.mlir:20:8: remark: [test-remarks] missed: not multiplied: it is an addition
// DEFAULT-NOT: analysis:

// ALL:      remark: [test-remarks] passed: added
// ALL-NEXT: remark: [test-remarks] missed: not multiplied: it is an addition
// ALL-NEXT: remark: [test-remarks] analysis: target is None

// REGEX:    error: -Rpass=[: not a regular expression: unterminated character set
tt.func @f(%x: i32) -> i32 {
  // The location is that of the operation.
  %0 = arith.addi %x, %x : i32
  tt.return %0 : i32
}
