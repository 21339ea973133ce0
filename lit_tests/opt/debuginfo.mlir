// RUN: tilepass-opt %s --mlir-print-debuginfo | %filecheck %s
// RUN: tilepass-opt - -mlir-print-debuginfo < %s | %filecheck %s --check-prefix=STDIN

// Locations that the text does not give are those of the file itself.
// CHECK:     arith.addi {{.*}} loc(#[[ADD:.+]])
// CHECK:     arith.muli {{.*}} loc(#[[MUL:.+]])
// CHECK:     #[[ADD]] = loc("{{.*}}debuginfo.mlir":13:8)
// CHECK:     #[[MUL]] = loc("kernel.py":3:4)
// STDIN:     loc("<stdin>":13:8)
#kernel = loc("kernel.py":3:4)
tt.func @f(%x: i32) -> i32 {

  %0 = arith.addi %x, %x : i32
  %1 = arith.muli %0, %x : i32 loc(#kernel)
  tt.return %1 : i32
}
