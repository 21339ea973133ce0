// RUN: not tilepass-opt %s --split-input-file -p cse > %t.out 2> %t.err
// RUN: %filecheck %s < %t.out
// RUN: %filecheck %s --check-prefix=ERR < %t.err

// A part in error does not keep the others from being processed; its line is that of the file.
// CHECK:      tt.func @first
// CHECK-NOT:  tt.func
// CHECK:      // -----
// CHECK-NOT:  tt.func
// CHECK:      // -----
// CHECK:      tt.func @third
// ERR:        split.mlir:24:17: warning: near miss with the split marker '// -----'
// ERR:        split.mlir:20:3: error: 'tt.return' op has 0 operands, but enclosing function (@second) returns 1
// ERR-NOT:    error
tt.func @first() { tt.return }

// -----

tt.func @second() -> i32 {
  tt.return
}
// -----
tt.func @third() {
                // ----
  tt.return
}
