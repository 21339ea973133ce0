// RUN: tilepass-opt %s --split-input-file -p fix-dot-wait | %filecheck %s
// RUN: tilepass-opt %s --split-input-file --verify-diagnostics -p fix-dot-wait -Rpass=.

// The value read comes from a wait of the same block, which is lowered.
// CHECK-LABEL: tt.func @lowered
// CHECK:         scf.for
// CHECK:           warp_group_dot_wait %{{.*}} {pendings = 1 : i32}
// CHECK:           warp_group_dot_wait %{{.*}} {pendings = 0 : i32}
// CHECK-NOT:       warp_group_dot_wait
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @lowered(%a: !ttg.memdesc<64x64xbf16, #shared, #smem>, %b: !ttg.memdesc<64x64xbf16, #shared, #smem>, %n: i32) -> tensor<64x64xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
      %d0 = ttng.warp_group_dot %a, %b, %acc {inputPrecision = 0 : i32, isAsync = true} : !ttg.memdesc<64x64xbf16, #shared, #smem> * !ttg.memdesc<64x64xbf16, #shared, #smem> -> tensor<64x64xf32, #mma>
      %w0 = ttng.warp_group_dot_wait %d0 {pendings = 1 : i32} : tensor<64x64xf32, #mma>
      %d1 = ttng.warp_group_dot %a, %b, %w0 {inputPrecision = 0 : i32, isAsync = true} : !ttg.memdesc<64x64xbf16, #shared, #smem> * !ttg.memdesc<64x64xbf16, #shared, #smem> -> tensor<64x64xf32, #mma>
      // expected-remark@+1 {{wait for all but 0 dots instead of 1: arith.negf reads what the last may be writing}}
      %w1 = ttng.warp_group_dot_wait %d1 {pendings = 1 : i32} : tensor<64x64xf32, #mma>
      %e = arith.negf %w1 : tensor<64x64xf32, #mma>
      scf.yield %e : tensor<64x64xf32, #mma>
    }
    tt.return %r : tensor<64x64xf32, #mma>
  }
}

// -----

// A flattened loop: the branch of the last step waits, and the reset that belongs to it needs no
// wait in the other steps.
// CHECK-LABEL: tt.func @flattened
// CHECK:         scf.for
// CHECK:           warp_group_dot_wait {{.*}} {pendings = 1 : i32}
// CHECK-NEXT:      arith.select
// CHECK:           scf.if
// CHECK-NEXT:        %[[W:.*]]:3 = ttng.warp_group_dot_wait {{.*}} {pendings = 0 : i32}
// CHECK-NEXT:        arith.negf %[[W]]#0
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @flattened(%a: !ttg.memdesc<64x64xbf16, #shared, #smem>, %b: !ttg.memdesc<64x64xbf16, #shared, #smem>, %p: tensor<64x64x!tt.ptr<f32>, #mma>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
      %last = arith.cmpi eq, %k, %c1 : i32
      %d = ttng.warp_group_dot %a, %b, %acc {inputPrecision = 0 : i32, isAsync = true} : !ttg.memdesc<64x64xbf16, #shared, #smem> * !ttg.memdesc<64x64xbf16, #shared, #smem> -> tensor<64x64xf32, #mma>
      %w = ttng.warp_group_dot_wait %d {pendings = 1 : i32} : tensor<64x64xf32, #mma>
      %next = arith.select %last, %zero, %w : tensor<64x64xf32, #mma>
      scf.if %last {
        // expected-remark@+1 {{inserted a wait for all but 0 dots before arith.negf, which reads what a dot may be writing}}
        %e = arith.negf %w : tensor<64x64xf32, #mma>
        tt.store %p, %e : tensor<64x64x!tt.ptr<f32>, #mma>
      }
      scf.yield %next : tensor<64x64xf32, #mma>
    }
    %done = ttng.warp_group_dot_wait %r {pendings = 0 : i32} : tensor<64x64xf32, #mma>
    tt.return
  }
}

// -----

// The read is behind the loop, and there is no wait to lower.
// CHECK-LABEL: tt.func @behind_the_loop
// CHECK:         %[[R:.*]] = scf.for
// CHECK:         %[[W:.*]]:{{[0-9]+}} = ttng.warp_group_dot_wait %[[R]], {{.*}} {pendings = 0 : i32}
// CHECK-NEXT:    arith.negf %[[W]]#0
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @behind_the_loop(%a: !ttg.memdesc<64x64xbf16, #shared, #smem>, %b: !ttg.memdesc<64x64xbf16, #shared, #smem>, %n: i32) -> tensor<64x64xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
      %d = ttng.warp_group_dot %a, %b, %acc {inputPrecision = 0 : i32, isAsync = true} : !ttg.memdesc<64x64xbf16, #shared, #smem> * !ttg.memdesc<64x64xbf16, #shared, #smem> -> tensor<64x64xf32, #mma>
      scf.yield %d : tensor<64x64xf32, #mma>
    }
    // expected-remark@+1 {{inserted a wait for all but 0 dots before arith.negf}}
    %e = arith.negf %r : tensor<64x64xf32, #mma>
    tt.return %e : tensor<64x64xf32, #mma>
  }
}

// -----

// Covered reads, as the pipeliner leaves them: a dot that adds to an unfinished one is not a read, a
// wait counts the dots issued after the one it is for, a synchronous dot waits for all.
// CHECK-LABEL: tt.func @covered
// CHECK:         scf.for
// CHECK:           warp_group_dot_wait {{.*}} {pendings = 1 : i32}
// CHECK-NEXT:      scf.yield
// CHECK:         warp_group_dot_wait {{.*}} {pendings = 0 : i32}
// CHECK:         warp_group_dot_wait {{.*}} {pendings = 1 : i32}
// CHECK-NOT:     warp_group_dot_wait
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @covered(%a: !ttg.memdesc<64x64xbf16, #shared, #smem>, %b: !ttg.memdesc<64x64xbf16, #shared, #smem>, %n: i32) -> (tensor<64x64xf32, #mma>, tensor<64x64xf32, #mma>, tensor<64x64xf32, #mma>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
      %d = ttng.warp_group_dot %a, %b, %acc {inputPrecision = 0 : i32, isAsync = true} : !ttg.memdesc<64x64xbf16, #shared, #smem> * !ttg.memdesc<64x64xbf16, #shared, #smem> -> tensor<64x64xf32, #mma>
      %w = ttng.warp_group_dot_wait %d {pendings = 1 : i32} : tensor<64x64xf32, #mma>
      scf.yield %w : tensor<64x64xf32, #mma>
    }
    %done = ttng.warp_group_dot_wait %r {pendings = 0 : i32} : tensor<64x64xf32, #mma>
    %e = arith.negf %done : tensor<64x64xf32, #mma>
    %d0 = ttng.warp_group_dot %a, %b, %zero {inputPrecision = 0 : i32, isAsync = true} : !ttg.memdesc<64x64xbf16, #shared, #smem> * !ttg.memdesc<64x64xbf16, #shared, #smem> -> tensor<64x64xf32, #mma>
    %d1 = ttng.warp_group_dot %a, %b, %e {inputPrecision = 0 : i32, isAsync = true} : !ttg.memdesc<64x64xbf16, #shared, #smem> * !ttg.memdesc<64x64xbf16, #shared, #smem> -> tensor<64x64xf32, #mma>
    %w0 = ttng.warp_group_dot_wait %d0 {pendings = 1 : i32} : tensor<64x64xf32, #mma>
    %f = arith.negf %w0 : tensor<64x64xf32, #mma>
    %d2 = ttng.warp_group_dot %a, %b, %zero {inputPrecision = 0 : i32} : !ttg.memdesc<64x64xbf16, #shared, #smem> * !ttg.memdesc<64x64xbf16, #shared, #smem> -> tensor<64x64xf32, #mma>
    %g = arith.addf %d1, %d2 : tensor<64x64xf32, #mma>
    tt.return %e, %f, %g : tensor<64x64xf32, #mma>, tensor<64x64xf32, #mma>, tensor<64x64xf32, #mma>
  }
}

// -----

// Behind an early return.
// CHECK-LABEL: tt.func @early_return
// CHECK-NOT:     warp_group_dot_wait
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @early_return(%a: !ttg.memdesc<64x64xbf16, #shared, #smem>, %b: !ttg.memdesc<64x64xbf16, #shared, #smem>, %p: tensor<64x64x!tt.ptr<f32>, #mma>, %stop: i1) {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    // expected-remark@+1 {{reads of this dot's result behind an early return were not checked}}
    %d = ttng.warp_group_dot %a, %b, %zero {inputPrecision = 0 : i32, isAsync = true} : !ttg.memdesc<64x64xbf16, #shared, #smem> * !ttg.memdesc<64x64xbf16, #shared, #smem> -> tensor<64x64xf32, #mma>
    cf.cond_br %stop, ^stopped, ^on
  ^stopped:
    tt.return
  ^on:
    tt.store %p, %d : tensor<64x64x!tt.ptr<f32>, #mma>
    tt.return
  }
}
