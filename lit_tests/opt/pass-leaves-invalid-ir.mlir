// RUN: not tilepass-opt %s --load %test_passes -p 'cse,test-invalid-ir' 2> %t.err
// RUN: %filecheck %s --check-prefixes=CHECK,TRITON < %t.err
// RUN: %python %S/Inputs/replay.py %t.err 2>&1 | %filecheck %s --check-prefixes=CHECK,TRITON
// RUN: not tilepass-opt %s --load %test_passes -p 'test-invalid-ir{where=engine}' 2> %t.err
// RUN: %filecheck %s --check-prefixes=CHECK,ENGINE < %t.err
// RUN: %python %S/Inputs/replay.py %t.err 2>&1 | %filecheck %s --check-prefixes=CHECK,ENGINE

// CHECK:       error: pass 'test-invalid-ir' left invalid IR:
// TRITON-NEXT: {{^.*}}pass-leaves-invalid-ir.mlir:16:3: error: 'tt.return' op has 0 operands, but enclosing function (@f) returns 1
// ENGINE-NEXT: {{^.*}}pass-leaves-invalid-ir.mlir:15:9: error: 'arith.constant' op requires attribute 'value'
// CHECK:       reproducer: {{.+}}.mlir
// CHECK-NEXT:  replay: tilepass-opt {{.+}}.mlir -p 'test-invalid-ir{where={{triton|engine}}}' --load
// CHECK-NOT:   Traceback
tt.func @f() -> i32 {
  %c1 = arith.constant 1 : i32
  tt.return %c1 : i32
}
