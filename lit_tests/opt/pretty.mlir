// RUN: tilepass-opt %s | %filecheck %s
// RUN: tilepass-opt - < %s | %filecheck %s
// RUN: tilepass opt %s | %filecheck %s

// Without passes the module is parsed, verified and printed, aliases and all, without locations.
// CHECK:       #[[LAYOUT:.+]] = #ttg.blocked<{sizePerThread = [1]
// CHECK-NOT:   loc(
// CHECK:       tt.func @f(%[[X:.+]]: tensor<128xf32, #[[LAYOUT]]>)
// CHECK-NEXT:    arith.addf %[[X]], %[[X]] : tensor<128xf32, #[[LAYOUT]]>
#layout = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func @f(%x: tensor<128xf32, #layout>) -> tensor<128xf32, #layout> {
    %0 = arith.addf %x, %x : tensor<128xf32, #layout>
    tt.return %0 : tensor<128xf32, #layout>
  }
}
