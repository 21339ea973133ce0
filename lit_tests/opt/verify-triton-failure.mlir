// RUN: tilepass-opt %s --verify-diagnostics -p tritongpu-coalesce

tt.func @f(%x: tensor<32xf32>) -> tensor<32xf32> {
  // expected-error@+1 {{is not contained within a context that specifies the number of warps}}
  %0 = arith.addf %x, %x : tensor<32xf32>
  tt.return %0 : tensor<32xf32>
}
