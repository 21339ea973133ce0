// RUN: tilepass explain %s --load %test_passes -p test-decides | %filecheck %s
// RUN: tilepass explain %s --load %test_passes -p 'cse,test-decides{color=blue}' | %filecheck %s --check-prefix=FORCED
// RUN: tilepass explain - --load %test_passes -p test-decides --json < %s | %python -c "import json, sys; print(json.load(sys.stdin)['decisions'][0])" | %filecheck %s --check-prefix=JSON
// RUN: tilepass explain %s --load %test_passes -p test-remarks | %filecheck %s --check-prefix=NONE
// RUN: not tilepass explain %s -p nothing 2>&1 | %filecheck %s --check-prefix=UNKNOWN
// RUN: not tilepass explain no-such-kernel -p cse 2>&1 | %filecheck %s --check-prefix=KERNEL
// RUN: not tilepass explain %t.none.py -p flatten-loops 2>&1 | %filecheck %s --check-prefix=PROGRAM
// RUN: not tilepass explain %s x=1 -p flatten-loops 2>&1 | %filecheck %s --check-prefix=ARGUMENT
// RUN: not tilepass explain -p flatten-loops 2>&1 | %filecheck %s --check-prefix=NOTHING
// RUN: tilepass explain %s --load %test_passes -p test-remarks --json | %filecheck %s --check-prefix=DEFAULT
// RUN: tilepass explain %s --load %test_passes -p test-remarks --json --target hip:gfx942 | %filecheck %s --check-prefix=OTHER
// RUN: tilepass explain --help | %filecheck %s --check-prefix=HELP

// CHECK:       {{^.*}}explain.mlir:48:8: color = green
// CHECK-NEXT:  {{^}}  decided by  cost-model: it is an addition
// CHECK-NEXT:  {{^}}  from facts  operands = 2
// CHECK-NEXT:  {{^}}              type = i32
// CHECK-NEXT:  {{^}}  in order    forced: no, the user asked for nothing
// CHECK-NEXT:  {{^}}              cost-model: green (it is an addition)  <-
// CHECK-NEXT:  {{^}}              default: red (nothing is known)
// CHECK:       to decide otherwise:
// CHECK-NEXT:    test-decides{color=...}: one of auto, blue, green (default: auto)

// FORCED:      color = blue
// FORCED-NEXT: decided by  forced: asked for by the user
// FORCED:      cost-model: green (it is an addition)
// FORCED-NEXT: default: red

// JSON:        'kind': 'color', 'value': 'green', 'source': 'cost-model'
// JSON:        'facts': {'operands': 2, 'type': 'i32'}
// JSON:        'location': {'file': '<stdin>', 'line': 48, 'column': 8}

// NONE:        no decision was taken
// NONE:        not considered:
// NONE-NEXT:     {{.*}}explain.mlir:48:8: remark: [test-remarks] missed: not multiplied

// The target that a file without one is explained for is what the help says.
// DEFAULT:     target is cuda:90 of triton
// OTHER:       target is hip:gfx942 of triton
// HELP:        (default: a file's own, else

// UNKNOWN:     error: unknown pass 'nothing'
// KERNEL:      error: no kernel 'no-such-kernel'
// PROGRAM:     error: {{.*}}.none.py: no such file
// ARGUMENT:    error: {{.*}}explain.mlir: an IR file takes no arguments
// NOTHING:     error: give an IR file, a kernel, or a program after --
tt.func @f(%x: i32) -> i32 {
  %0 = arith.addi %x, %x : i32
  tt.return %0 : i32
}
