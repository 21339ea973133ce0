// RUN: tilepass-opt %s | %filecheck %s
// CHECK-LABEL: tt.func @f
tt.func @f(%a: i32) -> i32 {
  %0 = arith.addi %a, %a : i32
  %1 = arith.addi %a, %a : i32
  %2 = arith.addi %0, %1 : i32
  tt.return %2 : i32
}
