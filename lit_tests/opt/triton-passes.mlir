// RUN: tilepass-opt %s -p 'canonicalize,cse' | %filecheck %s
// RUN: tilepass-opt %s -p 'builtin.module(canonicalize,cse)' | %filecheck %s
// RUN: tilepass-opt %s -pass-pipeline='builtin.module(canonicalize, cse)' | %filecheck %s
// RUN: tilepass-opt %s -canonicalize --cse | %filecheck %s

// CHECK-LABEL: tt.func @f
// CHECK-NEXT:    %[[SUM:.+]] = arith.addi
// CHECK-NEXT:    arith.muli %[[SUM]], %[[SUM]]
// CHECK-NEXT:    tt.return
tt.func @f(%x: i32, %y: i32) -> i32 {
  %c0 = arith.constant 0 : i32
  %0 = arith.addi %x, %y : i32
  %1 = arith.addi %x, %y : i32
  %2 = arith.addi %1, %c0 : i32
  %3 = arith.muli %0, %2 : i32
  tt.return %3 : i32
}
