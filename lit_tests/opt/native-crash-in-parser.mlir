// RUN: not tilepass-opt %s > %t.out 2> %t.err
// RUN: %filecheck %s < %t.err
// RUN: %python -c "assert not open(r'%t.out').read()"
// RUN: not tilepass check %s 2>&1 | %filecheck %s
// RUN: not tilepass-opt - < %s 2>&1 | %filecheck %s --check-prefix=STDIN

// Triton has no such layout, and asserts it where it infers the type of a result.
// CHECK:      {{^.*}}native-crash-in-parser.mlir: error: Triton's parser crashed (SIGABRT)
// CHECK-NEXT: {{.*}}Assertion {{.+}} failed
// CHECK-NOT:  error
// STDIN:      <stdin>: error: Triton's parser crashed (SIGABRT)
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 4, 16]}>
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f(%x: tensor<64x64xf32, #mma>) {
    %y = ttg.convert_layout %x : tensor<64x64xf32, #mma> -> tensor<64x64xf32, #blocked>
    tt.return
  }
}
