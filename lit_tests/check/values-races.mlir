// RUN: tilepass check %s 2>&1 | %filecheck %s --check-prefix=ALONE
// RUN: not tilepass check %s --grid 2 2>&1 | %filecheck %s --check-prefix=GRID
// RUN: tilepass check %s --against %s | %filecheck %s --check-prefix=BOTH
// RUN: sed -e 's/%old = tt.load .*/%one = arith.constant true/' -e '/tt.store/d' -e 's/%new = .*/%new = tt.atomic_rmw add, acq_rel, gpu, %at, %c1, %one : (!tt.ptr<i32>, i32, i1) -> i32/' %s > %t.atomic
// RUN: not tilepass check %t.atomic --against %s 2>&1 | %filecheck %s --check-prefix=SECOND
// RUN: tilepass check %s --against %t.atomic | %filecheck %s --check-prefix=FIRST

// Every program adds to one element; without an atomic operation updates are lost.

// ALONE: warning: on the default grid, which --grid replaces, programs (0, 0, 0) and (1, 0, 0) write different values to element 0 of out: which stays depends on their order
// GRID: error: a race between programs of grid 2: programs (0, 0, 0) and (1, 0, 0) write different values to element 0 of out
// BOTH: races.mlir: count: a race in the first kernel: programs (0, 0, 0) and (1, 0, 0) write different values to element 0 of out
// BOTH-NEXT: races.mlir: count: not compared: what is printed
// SECOND: error: a race in the second kernel alone: programs (0, 0, 0) and (1, 0, 0) write different values to element 0 of out
// FIRST: races.mlir: count: not compared: what is printed, the memory order of atomic operations
tt.func @count(%out: !tt.ptr<i32> loc("out")) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %pid = tt.get_program_id x : i32
  %at = tt.addptr %out, %c0 : !tt.ptr<i32>, i32
  %old = tt.load %at : !tt.ptr<i32>
  %new = arith.addi %old, %c1 : i32
  tt.print "new: " {hex = false, isSigned = array<i32: 1>} : %new : i32
  tt.store %at, %new : !tt.ptr<i32>
  tt.return
}
