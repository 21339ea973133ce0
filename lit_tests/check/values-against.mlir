// RUN: tilepass-opt %s -p triton-loop-unroll -o %t.same
// RUN: tilepass check %s --against %t.same --shapes 3 --shapes 64 --seeds 2 | %filecheck %s
// RUN: sed 's/arith.addi/arith.subi/' %s > %t.other
// RUN: not tilepass check %s --against %t.other --shapes 3 2>&1 | %filecheck %s --check-prefix=OTHER

// CHECK: against.mlir: total: the same as {{.*}}same (2 seeds, shapes 3; 64)
// OTHER: error: out[0] is 3 in the first kernel and -3 in the second; 1 of {{[0-9]+}} elements differ
// OTHER-NEXT: note: with shapes 3, seed 0, grid 1,1,1
tt.func @total(%out: !tt.ptr<i32> loc("out"), %n: i32 loc("n")) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %total = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %c0) -> (i32) : i32 {
    %next = arith.addi %sum, %i : i32
    scf.yield %next : i32
  } {tt.loop_unroll_factor = 2 : i32}
  tt.store %out, %total : !tt.ptr<i32>
  tt.return
}
