// RUN: tilepass-opt %s --mlir-print-debuginfo -o %t
// RUN: tilepass-opt %t --mlir-print-debuginfo | %filecheck %s
// RUN: tilepass-opt %t | %filecheck %s --check-prefix=PRETTY

// With locations a CuTe module is written in generic form: MLIR cannot read the pretty form of
// `nvvm.barrier` with one.
// CHECK:   "nvvm.barrier"() {{.*}} loc(#[[AT:.+]])
// CHECK:   #[[AT]] = loc("{{.*}}cute-debuginfo.mlir":13:3)
// PRETTY:      nvvm.barrier{{$}}
// PRETTY-NEXT: %{{.+}} = cute.make_shape() : () -> !cute.shape<"(4,8)">

func.func @f() {
  nvvm.barrier
  %0 = cute.make_shape() : () -> !cute.shape<"(4,8)">
  return
}
