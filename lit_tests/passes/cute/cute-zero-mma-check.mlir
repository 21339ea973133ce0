// RUN: tilepass-opt %s -p 'cute-zero-mma{mode=check,tiles=n0k1,sites=0}' -Rpass=zero -o %t 2> %t.remarks
// RUN: %filecheck %s --input-file %t
// RUN: %filecheck %s --input-file %t.remarks --check-prefix=REMARK

!mma = !cute.tiled_mma<!cute_nvgpu.sm80.mma<16x8x16, elem_type = (bf16, bf16, f32) >, atom_layout_MNK = <"(8,1,1):(1,0,0)">, permutation_MNK = <"[128:1;32:1;32:1]">>
!d = !cute.memref<f32, rmem, align<32>, "((2,2),1,4):((1,2),0,4)">
!a = !cute.memref<bf16, rmem, align<32>, "((2,2,2),1,2):((1,2,4),0,8)">
!b = !cute.memref<bf16, rmem, align<8>, "((2,2),4,2):((1,2),8,4)">

// The dense gemm stays. Before it the four values of tile (0, 1), two registers, are compared
// with zero without their signs.
// CHECK-LABEL: func.func @dense
// CHECK:         cute.slice(%arg3, %{{.+}}) : {{.*}}, !cute.coord<"(_,0,1)">
// CHECK:         %[[FIRST:.+]] = cute.memref.load(
// CHECK:         %[[SECOND:.+]] = cute.memref.load(
// CHECK:         %[[BOTH:.+]] = arith.ori %[[FIRST]], %[[SECOND]] : i32
// CHECK:         %[[MASK:.+]] = arith.constant 2147450879 : i32
// CHECK:         arith.andi %[[BOTH]], %[[MASK]] : i32
// CHECK:         scf.if
// CHECK:           cute.print("tilepass: gemm 0 (cute-zero-mma-check.mlir:{{[0-9]+}}): tile n0k1 is not zero: thread ({}, {}, {}), block ({}, {}, {})
// CHECK:           "trap;"
// CHECK:         cute.gemm(%arg0, %arg1, %arg2, %arg3, %arg1)
// CHECK-NOT:     cute.gemm
// REMARK: passed: gemm 0 (cute-zero-mma-check.mlir:{{[0-9]+}}): traps if one of 1 tiles is not zero
func.func @dense(%mma: !mma, %d: !d, %a: !a, %b: !b) {
  cute.gemm(%mma, %d, %a, %b, %d) : (!mma, !d, !a, !b, !d)
  return
}
