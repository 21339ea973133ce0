// RUN: tilepass-opt %s --target cuda:90 -p flatten-loops | %filecheck %s
// RUN: tilepass-opt %s --target cuda:90 -p 'flatten-loops{clamp=false}' -Rpass=. 2>&1 | %filecheck %s --check-prefix=REFUSED

// A loop that keeps its author's `tt.flatten` is fused all the same, so that it has to count right:
// a number of tiles far below zero times the inner trips wraps around.
// CHECK-LABEL: @no_dot
// CHECK:       %[[PID:.*]] = tt.get_program_id x
// CHECK:       %[[TILES:.*]] = arith.maxsi %{{.*}}, %[[PID]]
// CHECK:       scf.for %{{.*}} = %[[PID]] to %[[TILES]]
// CHECK:       {tt.flatten}
// REFUSED:       removed tt.flatten: the number of tiles is not provably zero or more
// REFUSED-LABEL: @no_dot
// REFUSED-NOT:   tt.flatten
tt.func @no_dot(%p: tensor<64x!tt.ptr<i32>>, %q: tensor<64x!tt.ptr<i32>>, %tiles: i32, %steps: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %zero = arith.constant dense<0> : tensor<64xi32>
  %pid = tt.get_program_id x : i32
  scf.for %tile = %pid to %tiles step %c1 : i32 {
    %sum = scf.for %k = %c0 to %c3 step %c1 iter_args(%acc = %zero) -> (tensor<64xi32>) : i32 {
      %x = tt.load %p : tensor<64x!tt.ptr<i32>>
      %next = arith.addi %x, %acc : tensor<64xi32>
      scf.yield %next : tensor<64xi32>
    }
    tt.store %q, %sum : tensor<64x!tt.ptr<i32>>
  } {tt.flatten}
  tt.return
}
