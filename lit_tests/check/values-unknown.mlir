// RUN: sh -c 'tilepass check %s > %t 2>&1; echo "status $?" >> %t'
// RUN: %filecheck %s < %t

// Every operation that cannot be executed is listed, none is skipped.

// CHECK:      unknown.mlir:10:8: error: tt.elementwise_inline_asm cannot be simulated: inline assembly with instruction 'ex2.approx.f32'
// CHECK-NEXT: unknown.mlir:11:8: error: tt.extern_elementwise cannot be simulated: function '__nv_j0f'
// CHECK-NEXT: status 2
tt.func @unknown(%x: tensor<4xf32>) {
  %a = tt.elementwise_inline_asm "ex2.approx.f32 $0, $1;" {constraints = "=f,f", packed_element = 1 : i32, pure = true} %x : tensor<4xf32> -> tensor<4xf32>
  %b = tt.extern_elementwise %a {libname = "", libpath = "", pure = true, symbol = "__nv_j0f"} : (tensor<4xf32>) -> tensor<4xf32>
  tt.return
}
