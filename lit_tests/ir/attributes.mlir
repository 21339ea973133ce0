// RUN: tilepass-opt %s -p test-round-trip | %filecheck %s

// Attributes of the module, of arguments and loops, constants as bits, escaped characters.
// CHECK: module attributes {test.name = "a \22b\22 \\ #x", "ttg.num-warps" = 4 : i32}
module attributes {test.name = "a \"b\" \\ #x", "ttg.num-warps" = 4 : i32} {
  // CHECK-LABEL: @f
  // CHECK-SAME:    !tt.ptr<f32> {tt.divisibility = 16 : i32}
  // CHECK-SAME:    attributes {noinline = false}
  tt.func private @f(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) attributes {noinline = false} {
    // CHECK-DAG: dense<0xFF800000> : tensor<4xf32>
    // CHECK-DAG: 0x7FC00000 : f32
    %inf = arith.constant dense<0xFF800000> : tensor<4xf32>
    %nan = arith.constant 0x7FC00000 : f32
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    // CHECK: scf.for
    // CHECK:   arith.addi {{.*}} {loop.cluster = 2 : i32, loop.stage = 1 : i32} : i32
    // CHECK: } {tt.flatten, tt.num_stages = 3 : i32}
    scf.for %i = %c0 to %n step %c1 : i32 {
      %x = arith.addi %i, %c1 {loop.cluster = 2 : i32, loop.stage = 1 : i32} : i32
    } {tt.flatten, tt.num_stages = 3 : i32}
    tt.return
  }
}
