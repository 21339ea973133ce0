// RUN: tilepass-opt %s -p test-round-trip | %filecheck %s

// Regions of all sorts: blocks that branch, reductions, partitions of warps, isolated from above.
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  // CHECK-LABEL: @branches
  // CHECK:         cf.cond_br %{{.+}}, ^bb1(%{{.+}} : i32), ^bb2
  // CHECK:       ^bb1(%{{.+}}: i32):
  // CHECK:       ^bb2:
  tt.func @branches(%condition: i1, %x: i32) -> i32 {
    cf.cond_br %condition, ^yes(%x : i32), ^no
  ^yes(%y: i32):
    tt.return %y : i32
  ^no:
    tt.return %x : i32
  }
  // CHECK-LABEL: @reduce
  // CHECK:         "tt.reduce"(%{{.+}}) <{axis = 0 : i32}> ({
  // CHECK:           tt.reduce.return
  tt.func @reduce(%x: tensor<128xf32>) -> f32 {
    %0 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %sum = arith.addf %a, %b : f32
      tt.reduce.return %sum : f32
    }) : (tensor<128xf32>) -> f32
    tt.return %0 : f32
  }
  // CHECK-LABEL: @partitions
  // CHECK:         ttg.warp_specialize(%{{.+}})
  // CHECK:         default {
  // CHECK:         partition0(%{{.+}}: i32) num_warps(4)
  // CHECK:         : (i32) -> ()
  tt.func @partitions(%x: i32) {
    ttg.warp_specialize(%x) attributes {requestedRegisters = array<i32: 24>}
    default {
      ttg.warp_yield
    }
    partition0(%y: i32) num_warps(4) {
      %0 = arith.addi %y, %y : i32
      ttg.warp_return
    } : (i32) -> ()
    tt.return
  }
}
