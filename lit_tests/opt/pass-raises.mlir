// RUN: not tilepass-opt %s --load %test_passes -p 'cse,test-raises,cse' 2> %t.err
// RUN: %filecheck %s < %t.err
// RUN: %python %S/Inputs/replay.py %t.err 2>&1 | %filecheck %s
// RUN: not tilepass-opt %s --load %test_passes -p test-exits 2>&1 | %filecheck %s --check-prefix=EXIT

// EXIT: error: pass 'test-exits' raised SystemExit: 0 ({{.*}}test_passes.py:{{[0-9]+}}, in run)
// CHECK:      error: pass 'test-raises' raised ValueError: no such luck ({{.*}}test_passes.py:{{[0-9]+}}, in run)
// CHECK-NEXT: reproducer: {{.+}}.mlir
// CHECK-NEXT: replay: tilepass-opt {{.+}}.mlir -p test-raises --load {{.+}}test_passes.py
// CHECK-NOT:  Traceback
tt.func @f(%x: i32) -> i32 {
  tt.return %x : i32
}
