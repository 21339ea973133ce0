// RUN: tilepass-opt %s --load %test_passes -p test-remarks 2>&1 >/dev/null | %filecheck %s
// RUN: tilepass-opt %s --load %test_passes -p test-remarks -Rno-pass-missed 2>&1 | %filecheck %s --check-prefix=QUIET

// CHECK:     remark: [test-remarks] missed: the module holds none of arith.addi
// QUIET-NOT: remark
// QUIET:     tt.func @f
tt.func @f() { tt.return }
