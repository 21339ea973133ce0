// RUN: not tilepass-opt %s --load %test_passes -p 'cse,test-crashes' 2> %t.err
// RUN: %filecheck %s < %t.err
// RUN: %python %S/Inputs/replay.py %t.err 2>&1 | %filecheck %s
// RUN: not tilepass-opt %s --load %test_passes -p test-crashes --traceback 2>&1 | %filecheck %s --check-prefix=STACK
// RUN: not tilepass explain %s --load %test_passes -p test-crashes 2>&1 | %filecheck %s
// RUN: not tilepass-opt %s --load %test_passes -p test-recurses 2>&1 | %filecheck %s --check-prefix=DEEP
// RUN: not tilepass-opt %s --load %test_passes -p test-ends-the-process 2>&1 | %filecheck %s --check-prefix=ENDS

// CHECK:      error: pass 'test-crashes' crashed (SIGABRT) ({{.*}}test_passes.py:{{[0-9]+}}, in run)
// CHECK-NEXT: reproducer: {{.+}}.mlir
// CHECK-NEXT: replay: tilepass-opt {{.+}}.mlir{{.*}} -p test-crashes --load {{.+}}test_passes.py
// STACK:      Fatal Python error: Aborted
// STACK:      error: pass 'test-crashes' crashed
// DEEP:       error: pass 'test-recurses' crashed (SIGSEGV) ({{.*}}test_passes.py:{{[0-9]+}}, in walk)
// ENDS:       error: pass 'test-ends-the-process' of {{.*}}test_passes.py ended the process with status 7
tt.func @f(%x: i32) -> i32 {
  tt.return %x : i32
}
