// RUN: tilepass-opt %s --split-input-file -p 'fix-dot-wait{registers=on}' | %filecheck %s
// RUN: tilepass-opt %s --split-input-file --verify-diagnostics -p 'fix-dot-wait{registers=on}' -Rpass=.
// RUN: tilepass-opt %s --split-input-file -p 'fix-dot-wait{registers=on},fix-dot-wait{registers=on}' | %filecheck %s
// RUN: tilepass-opt %s --split-input-file -p 'fix-dot-wait{registers=off}' | %filecheck %s --check-prefix=OFF
// OFF-LABEL: tt.func @dequantised
// OFF-NOT:     pendings = 0
// OFF:         scf.yield

// Two pieces, one unfinished at the back edge, while the next iteration computes A anew.
// CHECK-LABEL: tt.func @dequantised
// CHECK:         scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}})
// CHECK:           %[[WORDS:.*]] = ttg.local_load
// CHECK-NEXT:      %[[W:.*]]:2 = ttng.warp_group_dot_wait %[[ACC]], %[[WORDS]] {pendings = 0 : i32}
// CHECK-NEXT:      arith.sitofp %[[W]]#1
// CHECK:           ttng.warp_group_dot %{{.*}}, %{{.*}}, %[[W]]#0
// CHECK-NOT:       pendings = 0
// CHECK:           scf.yield
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @dequantised(%words: !ttg.memdesc<64x16xi16, #flat, #smem>, %b: !ttg.memdesc<16x64xbf16, #shared, #smem>, %n: i32) -> tensor<64x64xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
      %w = ttg.local_load %words : !ttg.memdesc<64x16xi16, #flat, #smem> -> tensor<64x16xi16, #a>
      // expected-remark@+1 {{inserted a wait for all dots before arith.sitofp, which may write registers that a dot of the last iteration still reads}}
      %x = arith.sitofp %w : tensor<64x16xi16, #a> to tensor<64x16xbf16, #a>
      %y = arith.negf %x : tensor<64x16xbf16, #a>
      %d0 = ttng.warp_group_dot %x, %b, %acc {inputPrecision = 0 : i32, isAsync = true} : tensor<64x16xbf16, #a> * !ttg.memdesc<16x64xbf16, #shared, #smem> -> tensor<64x64xf32, #mma>
      %w0 = ttng.warp_group_dot_wait %d0 {pendings = 1 : i32} : tensor<64x64xf32, #mma>
      %d1 = ttng.warp_group_dot %y, %b, %w0 {inputPrecision = 0 : i32, isAsync = true} : tensor<64x16xbf16, #a> * !ttg.memdesc<16x64xbf16, #shared, #smem> -> tensor<64x64xf32, #mma>
      %w1 = ttng.warp_group_dot_wait %d1 {pendings = 1 : i32} : tensor<64x64xf32, #mma>
      scf.yield %w1 : tensor<64x64xf32, #mma>
    }
    %done = ttng.warp_group_dot_wait %r {pendings = 0 : i32} : tensor<64x64xf32, #mma>
    tt.return %done : tensor<64x64xf32, #mma>
  }
}

// -----

// A is loaded as it is, but for moves: its registers are written by the load.
// CHECK-LABEL: tt.func @loaded
// CHECK:         scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}})
// CHECK-NEXT:      %[[W:.*]] = ttng.warp_group_dot_wait %[[ACC]] {pendings = 0 : i32}
// CHECK-NEXT:      tt.load
// CHECK-NEXT:      tt.bitcast
// CHECK-NEXT:      ttng.warp_group_dot %{{.*}}, %{{.*}}, %[[W]] {
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @loaded(%p: tensor<64x16x!tt.ptr<i16>, #a>, %b: !ttg.memdesc<16x64xbf16, #shared, #smem>, %n: i32) -> tensor<64x64xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
      // expected-remark@+1 {{before tt.load, which may write registers}}
      %w = tt.load %p : tensor<64x16x!tt.ptr<i16>, #a>
      %x = tt.bitcast %w : tensor<64x16xi16, #a> -> tensor<64x16xbf16, #a>
      %d = ttng.warp_group_dot %x, %b, %acc {inputPrecision = 0 : i32, isAsync = true} : tensor<64x16xbf16, #a> * !ttg.memdesc<16x64xbf16, #shared, #smem> -> tensor<64x64xf32, #mma>
      scf.yield %d : tensor<64x64xf32, #mma>
    }
    %done = ttng.warp_group_dot_wait %r {pendings = 0 : i32} : tensor<64x64xf32, #mma>
    tt.return %done : tensor<64x64xf32, #mma>
  }
}

// -----

// A wait cannot hand on bytes.
// CHECK-LABEL: tt.func @bytes
// CHECK:         scf.for
// CHECK-NEXT:      ttng.warp_group_dot_wait %{{.*}} {pendings = 0 : i32} : tensor<64x64xf32, #mma>
// CHECK-NEXT:      ttg.local_load
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @bytes(%words: !ttg.memdesc<64x16xi8, #flat, #smem>, %b: !ttg.memdesc<16x64xbf16, #shared, #smem>, %n: i32) -> tensor<64x64xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
      // expected-remark@+1 {{before ttg.local_load, which may write registers}}
      %w = ttg.local_load %words : !ttg.memdesc<64x16xi8, #flat, #smem> -> tensor<64x16xi8, #a>
      %x = arith.sitofp %w : tensor<64x16xi8, #a> to tensor<64x16xbf16, #a>
      %d = ttng.warp_group_dot %x, %b, %acc {inputPrecision = 0 : i32, isAsync = true} : tensor<64x16xbf16, #a> * !ttg.memdesc<16x64xbf16, #shared, #smem> -> tensor<64x64xf32, #mma>
      scf.yield %d : tensor<64x64xf32, #mma>
    }
    %done = ttng.warp_group_dot_wait %r {pendings = 0 : i32} : tensor<64x64xf32, #mma>
    tt.return %done : tensor<64x64xf32, #mma>
  }
}

// -----

// The loop carries what A is computed from; two dots, one wait with both accumulators.
// CHECK-LABEL: tt.func @carried
// CHECK:         scf.for {{.*}} iter_args(%[[X:.*]] = %{{.*}}, %[[ACC0:.*]] = %{{.*}}, %[[ACC1:.*]] = %{{.*}})
// CHECK-NEXT:      %[[W:.*]]:3 = ttng.warp_group_dot_wait %[[ACC0]], %[[ACC1]], %[[X]] {pendings = 0 : i32}
// CHECK-NEXT:      arith.negf %[[W]]#2
// CHECK-NOT:       warp_group_dot_wait
// CHECK:           scf.yield
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @carried(%first: tensor<64x16xbf16, #a>, %b: !ttg.memdesc<16x64xbf16, #shared, #smem>, %n: i32) -> (tensor<64x64xf32, #mma>, tensor<64x64xf32, #mma>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %r:3 = scf.for %k = %c0 to %n step %c1 iter_args(%x = %first, %acc0 = %zero, %acc1 = %zero) -> (tensor<64x16xbf16, #a>, tensor<64x64xf32, #mma>, tensor<64x64xf32, #mma>) : i32 {
      // expected-remark@+1 {{before arith.negf}}
      %y = arith.negf %x : tensor<64x16xbf16, #a>
      %z = arith.addf %y, %y : tensor<64x16xbf16, #a>
      %d0 = ttng.warp_group_dot %y, %b, %acc0 {inputPrecision = 0 : i32, isAsync = true} : tensor<64x16xbf16, #a> * !ttg.memdesc<16x64xbf16, #shared, #smem> -> tensor<64x64xf32, #mma>
      %d1 = ttng.warp_group_dot %z, %b, %acc1 {inputPrecision = 0 : i32, isAsync = true} : tensor<64x16xbf16, #a> * !ttg.memdesc<16x64xbf16, #shared, #smem> -> tensor<64x64xf32, #mma>
      scf.yield %y, %d0, %d1 : tensor<64x16xbf16, #a>, tensor<64x64xf32, #mma>, tensor<64x64xf32, #mma>
    }
    %done:2 = ttng.warp_group_dot_wait %r#1, %r#2 {pendings = 0 : i32} : tensor<64x64xf32, #mma>, tensor<64x64xf32, #mma>
    tt.return %done#0, %done#1 : tensor<64x64xf32, #mma>, tensor<64x64xf32, #mma>
  }
}

// -----

// The loop carries A itself, loaded an iteration ahead: it is written where the iteration ends.
// CHECK-LABEL: tt.func @prefetched
// CHECK:         scf.for
// CHECK:           %[[NEXT:.*]] = ttg.local_load
// CHECK:           %[[D:.*]] = ttng.warp_group_dot
// CHECK-NEXT:      %[[W:.*]] = ttng.warp_group_dot_wait %[[D]] {pendings = 0 : i32}
// CHECK-NEXT:      scf.yield %[[NEXT]], %[[W]]
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @prefetched(%first: tensor<64x16xbf16, #a>, %q: !ttg.memdesc<64x16xbf16, #flat, #smem>, %b: !ttg.memdesc<16x64xbf16, #shared, #smem>, %n: i32) -> tensor<64x64xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%x = %first, %acc = %zero) -> (tensor<64x16xbf16, #a>, tensor<64x64xf32, #mma>) : i32 {
      // expected-remark@+1 {{before ttg.local_load}}
      %next = ttg.local_load %q : !ttg.memdesc<64x16xbf16, #flat, #smem> -> tensor<64x16xbf16, #a>
      %d = ttng.warp_group_dot %x, %b, %acc {inputPrecision = 0 : i32, isAsync = true} : tensor<64x16xbf16, #a> * !ttg.memdesc<16x64xbf16, #shared, #smem> -> tensor<64x64xf32, #mma>
      // expected-remark@+1 {{before scf.yield}}
      scf.yield %next, %d : tensor<64x16xbf16, #a>, tensor<64x64xf32, #mma>
    }
    %done = ttng.warp_group_dot_wait %r#1 {pendings = 0 : i32} : tensor<64x64xf32, #mma>
    tt.return %done : tensor<64x64xf32, #mma>
  }
}

// -----

// Nothing to do: a wait stands in front already; A is in shared memory, or computed outside the
// loop; inline assembly waits.
// CHECK-LABEL: tt.func @covered
// CHECK-COUNT-3: warp_group_dot_wait
// CHECK-NOT:     warp_group_dot_wait
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @covered(%words: !ttg.memdesc<64x16xi16, #flat, #smem>, %s: !ttg.memdesc<64x64xbf16, #shared, #smem>, %b: !ttg.memdesc<16x64xbf16, #shared, #smem>, %n: i32) -> (tensor<64x64xf32, #mma>, tensor<64x64xf32, #mma>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
      %w = ttg.local_load %words : !ttg.memdesc<64x16xi16, #flat, #smem> -> tensor<64x16xi16, #a>
      %f:2 = ttng.warp_group_dot_wait %acc, %w {pendings = 0 : i32} : tensor<64x64xf32, #mma>, tensor<64x16xi16, #a>
      %x = arith.sitofp %f#1 : tensor<64x16xi16, #a> to tensor<64x16xbf16, #a>
      %d = ttng.warp_group_dot %x, %b, %f#0 {inputPrecision = 0 : i32, isAsync = true} : tensor<64x16xbf16, #a> * !ttg.memdesc<16x64xbf16, #shared, #smem> -> tensor<64x64xf32, #mma>
      scf.yield %d : tensor<64x64xf32, #mma>
    }
    %fixed = arith.constant dense<1.0> : tensor<64x16xbf16, #a>
    %t = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %r) -> (tensor<64x64xf32, #mma>) : i32 {
      %d0 = ttng.warp_group_dot %s, %s, %acc {inputPrecision = 0 : i32, isAsync = true} : !ttg.memdesc<64x64xbf16, #shared, #smem> * !ttg.memdesc<64x64xbf16, #shared, #smem> -> tensor<64x64xf32, #mma>
      %d1 = ttng.warp_group_dot %fixed, %b, %d0 {inputPrecision = 0 : i32, isAsync = true} : tensor<64x16xbf16, #a> * !ttg.memdesc<16x64xbf16, #shared, #smem> -> tensor<64x64xf32, #mma>
      scf.yield %d1 : tensor<64x64xf32, #mma>
    }
    %done = ttng.warp_group_dot_wait %t {pendings = 0 : i32} : tensor<64x64xf32, #mma>
    %u = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
      %w = ttg.local_load %words : !ttg.memdesc<64x16xi16, #flat, #smem> -> tensor<64x16xi16, #a>
      %f = tt.elementwise_inline_asm "wgmma.wait_group.sync.aligned 0; mov.b32 $0, $1;" {constraints = "=r,r", packed_element = 2 : i32, pure = true} %w : tensor<64x16xi16, #a> -> tensor<64x16xi16, #a>
      %x = arith.sitofp %f : tensor<64x16xi16, #a> to tensor<64x16xbf16, #a>
      %d = ttng.warp_group_dot %x, %b, %acc {inputPrecision = 0 : i32, isAsync = true} : tensor<64x16xbf16, #a> * !ttg.memdesc<16x64xbf16, #shared, #smem> -> tensor<64x64xf32, #mma>
      scf.yield %d : tensor<64x64xf32, #mma>
    }
    %last = ttng.warp_group_dot_wait %u {pendings = 0 : i32} : tensor<64x64xf32, #mma>
    tt.return %done, %last : tensor<64x64xf32, #mma>, tensor<64x64xf32, #mma>
  }
}
