// RUN: tilepass-opt %s --emit generic | %filecheck %s
// RUN: tilepass-opt %s --emit=generic | tilepass-opt - | %filecheck %s --check-prefix=BACK
// RUN: tilepass-opt %s --emit generic -mlir-print-debuginfo | %filecheck %s --check-prefix=LOC

// CHECK:     "tt.func"()
// CHECK:       %[[ONE:.+]] = "arith.constant"() <{value = 1 : i32}> : () -> i32
// CHECK-NEXT:  "arith.addi"(%{{.+}}, %[[ONE]])
// CHECK-NOT: loc(
// BACK:      tt.func @f
// BACK:        arith.addi
// LOC:       "arith.addi"{{.+}} loc(#[[AT:.+]])
// LOC:       #[[AT]] = loc("{{.*}}emit-generic.mlir":16:8)
tt.func @f(%x: i32) -> i32 {
  %c1 = arith.constant 1 : i32

  %0 = arith.addi %x, %c1 : i32
  tt.return %0 : i32
}
