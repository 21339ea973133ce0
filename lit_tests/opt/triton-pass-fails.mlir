// RUN: not tilepass-opt %s -p 'cse,tritongpu-coalesce' 2> %t.err
// RUN: %filecheck %s < %t.err
// RUN: %python %S/Inputs/replay.py %t.err 2>&1 | %filecheck %s

// The pass asks for the number of warps, which the module lacks, and ends the process that it
// believes to be its own; libtriton survives that.
// CHECK:      error: pass 'tritongpu-coalesce' {{failed:|crashed}}
// CHECK-NEXT: {{^.*}}triton-pass-fails.mlir:14:8: error: 'arith.addf' op is not contained within a context that specifies the number of warps
// CHECK-NOT:  module {
// CHECK:      reproducer: {{.+}}.mlir
// CHECK-NEXT: replay: tilepass-opt {{.+}}.mlir -p tritongpu-coalesce
// CHECK-NOT:  Traceback
tt.func @f(%x: tensor<32xf32>) -> tensor<32xf32> {
  %0 = arith.addf %x, %x : tensor<32xf32>
  tt.return %0 : tensor<32xf32>
}
