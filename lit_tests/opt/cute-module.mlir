// RUN: tilepass-opt %s --load %test_passes -p test-rename-attribute | %filecheck %s
// RUN: tilepass-opt %s --load %test_passes -p test-remarks -Rpass-analysis=. 2>&1 | %filecheck %s --check-prefix=REMARK
// RUN: tilepass-opt %s --emit generic --mlir-print-debuginfo | %filecheck %s --check-prefix=GENERIC
// RUN: not tilepass-opt %s -p cse 2>&1 | %filecheck %s --check-prefix=TRITON

// libtriton cannot read CuTe's dialects: such a module stays in the IR engine.
// CHECK:   func.func @f(%{{.+}}: !cute.ptr<f32, gmem>
// CHECK:     cute.make_shape() : () -> !cute.shape<"(4,8)">
// CHECK:     arith.addi {{.*}} {test.new = 1 : i32}
// REMARK:  cute-module.mlir:18:8: remark: [test-remarks] missed
// REMARK:  analysis: target is None of nvidia-cutlass-dsl
// GENERIC: "cute.make_shape"() : () -> !cute.shape<"(4,8)"> loc(#[[AT:.+]])
// GENERIC: #[[AT]] = loc("{{.*}}cute-module.mlir":17:8)
// TRITON:  error: 'cse' is a pass of Triton; it cannot run on a CuTe module or on one with operations of unknown dialects

func.func @f(%p: !cute.ptr<f32, gmem>, %i: i32) {
  %0 = cute.make_shape() : () -> !cute.shape<"(4,8)">
  %1 = arith.addi %i, %i {test.old = 1 : i32} : i32
  return
}
