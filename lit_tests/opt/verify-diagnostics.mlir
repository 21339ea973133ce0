// RUN: tilepass-opt %s --split-input-file --verify-diagnostics | %filecheck %s
// RUN: tilepass-opt %s -split-input-file -verify-diagnostics -p canonicalize > %t

// A part that produces what its comments expect passes, and what it prints is printed.
// CHECK: tt.func @valid
tt.func @valid() { tt.return }

// -----

tt.func @next_line(%x: i32) -> i32 {
  // expected-error@+1 {{'tt.return' op has 0 operands}}
  tt.return
}

// -----

tt.func @same_line(%x: i32) -> i32 {
  tt.return // expected-error {{but enclosing function (@same_line) returns 1}}
}

// -----

tt.func @lines_above(%x: i32) -> i32 {
  tt.return

  // expected-error@-2 {{enclosing function}}
}

// -----

tt.func @below(%x: i32) -> i32 {
  // expected-error-re@below {{{{^}}'tt.return' op has {{[0-9]+}} operands, but {{.*}}(@below) returns {{1$}}}}
  tt.return
}

// -----

tt.func @above(%x: i32) -> i32 {
  %0 = arith.addf %x, %x : f32
  // expected-error@above {{expects different type than prior uses: 'f32' vs 'i32'}}
  tt.return %x : i32
}
