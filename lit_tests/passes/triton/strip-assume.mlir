// RUN: tilepass-opt %s --split-input-file -p strip-assume | %filecheck %s
// RUN: tilepass-opt %s --split-input-file --verify-diagnostics -p strip-assume

// The comparison goes with the assumption; what else uses its operands stays.
// CHECK-LABEL: tt.func @in_front
// CHECK:         %[[HALF:.*]] = arith.divsi
// CHECK-NOT:     arith.cmpi
// CHECK-NOT:     llvm.intr.assume
// CHECK:         scf.for %{{.*}} = %{{.*}} to %[[HALF]]
module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func @in_front(%p: !tt.ptr<i32>, %n: i32) {
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %half = arith.divsi %n, %c2 : i32
    %more = arith.cmpi sgt, %half, %c1 : i32
    // expected-remark@+1 {{removed an assumption that nvgpu-warp-specialization would crash on}}
    llvm.intr.assume %more : i1
    scf.for %i = %c1 to %half step %c1 : i32 {
      tt.store %p, %i : !tt.ptr<i32>
    } {tt.warp_specialize}
    tt.return
  }
}

// -----

// CHECK-LABEL: tt.func @inside
// CHECK:         scf.for
// CHECK:           llvm.intr.assume
module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func @inside(%p: !tt.ptr<i32>, %n: i32) {
    %c1 = arith.constant 1 : i32
    scf.for %i = %c1 to %n step %c1 : i32 {
      %more = arith.cmpi sgt, %i, %c1 : i32
      // expected-remark@+1 {{assumption kept: inside the specialized loop}}
      llvm.intr.assume %more : i1
      tt.store %p, %i : !tt.ptr<i32>
    } {tt.warp_specialize}
    tt.return
  }
}

// -----

// CHECK-LABEL: tt.func @not_specialized
// CHECK:         llvm.intr.assume
module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func @not_specialized(%p: !tt.ptr<i32>, %n: i32) {
    %c1 = arith.constant 1 : i32
    %more = arith.cmpi sgt, %n, %c1 : i32
    // expected-remark@+1 {{assumptions kept: no loop of the function asks for warp specialization}}
    llvm.intr.assume %more : i1
    scf.for %i = %c1 to %n step %c1 : i32 {
      tt.store %p, %i : !tt.ptr<i32>
    }
    tt.return
  }
}

// -----

// CHECK-LABEL: tt.func @eight_warps
// CHECK:         llvm.intr.assume
module attributes {"ttg.num-warps" = 8 : i32} {
  tt.func @eight_warps(%p: !tt.ptr<i32>, %n: i32) {
    %c1 = arith.constant 1 : i32
    %more = arith.cmpi sgt, %n, %c1 : i32
    // expected-remark@+1 {{assumptions kept: a program of 8 warps is not warp specialized}}
    llvm.intr.assume %more : i1
    scf.for %i = %c1 to %n step %c1 : i32 {
      tt.store %p, %i : !tt.ptr<i32>
    } {tt.warp_specialize}
    tt.return
  }
}

// -----

// CHECK-LABEL: tt.func @else_branch
// CHECK:         llvm.intr.assume
module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func @else_branch(%p: !tt.ptr<i32>, %n: i32) {
    %c1 = arith.constant 1 : i32
    %more = arith.cmpi sgt, %n, %c1 : i32
    // expected-remark@+1 {{assumptions kept: a function with an else branch is not warp specialized}}
    llvm.intr.assume %more : i1
    scf.for %i = %c1 to %n step %c1 : i32 {
      scf.if %more {
        tt.store %p, %i : !tt.ptr<i32>
      } else {
        tt.store %p, %n : !tt.ptr<i32>
      }
    } {tt.warp_specialize}
    tt.return
  }
}
