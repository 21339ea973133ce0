// RUN: tilepass-opt %s --split-input-file --verify-diagnostics --load %test_passes -p 'test-refuses,test-invalid-ir{where=engine},test-invalid-ir'

// A pass's error may be expected where it is located, in any of its forms.
tt.func @refused(%x: i32) -> i32 {
  // expected-error@+1 {{cannot be forced here}}
  %0 = arith.addi %x, %x : i32
  tt.return %0 : i32
}

// -----

tt.func @left_invalid(%x: i32) -> i32 {
  // expected-error@+1 {{op has 0 operands, but enclosing function (@left_invalid) returns 1}}
  tt.return %x : i32
}

// -----

tt.func @left_invalid_with_note() -> i32 {
  // expected-error@+2 {{'arith.constant' op requires attribute 'value'}}
  // expected-note@+1 {{see current operation}}
  %c1 = arith.constant 1 : i32
  tt.return %c1 : i32
}
