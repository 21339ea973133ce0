// RUN: not tilepass-opt %s --split-input-file --verify-diagnostics 2>&1 >/dev/null | %filecheck %s

// CHECK:      verify-failures.mlir:11:3: error: unexpected error: 'tt.return' op has 0 operands, but enclosing function (@unexpected) returns 1
// CHECK-NEXT: verify-failures.mlir:16:4: error: expected warning "not there" was not produced
// CHECK-NEXT: verify-failures.mlir:22:3: error: unexpected error: 'tt.return' op has 0 operands, but enclosing function (@other_severity) returns 1 (a warning was expected)
// CHECK-NEXT: verify-failures.mlir:21:6: error: expected warning "op has 0 operands" was not produced
// CHECK-NEXT: verify-failures.mlir:27:1: error: expected-... comment without a text in {{[{][{][}][}]}} at the end of the line
// CHECK-NEXT: verify-failures.mlir:32:4: error: {{.*}} holds no valid regular expression
// CHECK-NEXT: verify-failures.mlir:36:4: error: '@above' with no line above
tt.func @unexpected() -> i32 {
  tt.return
}

// -----

// expected-warning@+1 {{not there}}
tt.func @unmet() { tt.return }
// -----

tt.func @other_severity() -> i32 {
  // expected-warning@+1 {{op has 0 operands}}
  tt.return
}

// -----

// expected-error@+1
tt.func @malformed() { tt.return }

// -----

// expected-error-re@+1 {{op {{[}}}}
tt.func @not_a_pattern() { tt.return }

// -----
// expected-error@above {{nothing}}
tt.func @nothing_above() { tt.return }
