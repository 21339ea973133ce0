// RUN: tilepass-opt %s --load %test_passes -p 'test-rename-attribute{to=a.b},cse,test-rename-attribute' | %filecheck %s
// RUN: tilepass-opt %s --load %test_passes --test-rename-attribute="to=a.b times=2" -cse | %filecheck %s

// Passes of tilepass and of Triton run in the order in which they are written: cse merges the two
// additions because the first pass has made their attributes alike.
// CHECK-LABEL: tt.func @f
// CHECK-NEXT:    %[[SUM:.+]] = arith.addi {{.*}} {a.b = 1 : i32}
// CHECK-NEXT:    arith.muli %[[SUM]], %[[SUM]]
tt.func @f(%x: i32) -> i32 {
  %0 = arith.addi %x, %x {test.old = 1 : i32} : i32
  %1 = arith.addi %x, %x {a.b = 1 : i32} : i32
  %2 = arith.muli %0, %1 : i32
  tt.return %2 : i32
}
