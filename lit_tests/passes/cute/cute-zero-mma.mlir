// RUN: tilepass-opt %s -p 'cute-zero-mma{mode=assume,tiles=upper-triangular,sites=0,order=k}' -Rpass=zero -Rpass-analysis=zero -o %t 2> %t.remarks
// RUN: %filecheck %s --input-file %t
// RUN: %filecheck %s --input-file %t.remarks --check-prefix=REMARK
// RUN: tilepass-opt %s -p 'cute-zero-mma{mode=assume,tiles=upper-triangular,sites=0,order=n}' | %filecheck %s --check-prefix=BY-N

!mma = !cute.tiled_mma<!cute_nvgpu.sm80.mma<16x8x16, elem_type = (bf16, bf16, f32) >, atom_layout_MNK = <"(8,1,1):(1,0,0)">, permutation_MNK = <"[128:1;32:1;32:1]">>
!d = !cute.memref<f32, rmem, align<32>, "((2,2),1,4):((1,2),0,4)">
!a = !cute.memref<bf16, rmem, align<32>, "((2,2,2),1,2):((1,2,4),0,8)">
!b = !cute.memref<bf16, rmem, align<8>, "((2,2),4,2):((1,2),8,4)">

// B is 32 x 32, in tiles of 16 (k) x 8 (n): the tiles (n, k) = (0, 1) and (1, 1) lie under the
// diagonal. The others are multiplied in the dense order.
// CHECK-LABEL: func.func @upper
// CHECK:         cute.slice(%arg3, %{{.+}}) : {{.*}}, !cute.coord<"(_,0,0)">
// CHECK:         cute.gemm(%arg0,
// CHECK:         cute.slice(%arg3, %{{.+}}) : {{.*}}, !cute.coord<"(_,1,0)">
// CHECK:         cute.gemm(%arg0,
// CHECK:         cute.slice(%arg3, %{{.+}}) : {{.*}}, !cute.coord<"(_,2,0)">
// CHECK:         cute.gemm(%arg0,
// CHECK:         cute.slice(%arg3, %{{.+}}) : {{.*}}, !cute.coord<"(_,3,0)">
// CHECK:         cute.gemm(%arg0,
// CHECK:         cute.slice(%arg3, %{{.+}}) : {{.*}}, !cute.coord<"(_,2,1)">
// CHECK:         cute.gemm(%arg0,
// CHECK:         cute.slice(%arg3, %{{.+}}) : {{.*}}, !cute.coord<"(_,3,1)">
// CHECK:         cute.gemm(%arg0,
// CHECK-NOT:     cute.gemm
// CHECK:         return
// REMARK: analysis: gemm 0 (cute-zero-mma.mlir:{{[0-9]+}}): zero tiles B n0-1k1
// REMARK: analysis: assumed for gemms 0: operand B is upper-triangular: the user says so
// REMARK: analysis: zero-mma-order = k (forced: asked for by the user) from gemm=0, element=bf16, place=alone, atoms=8, remaining=6
// REMARK: passed: gemm 0 (cute-zero-mma.mlir:{{[0-9]+}}): 2 of 8 atoms left out, order k
// order=n: one accumulator after the other.
// BY-N:          cute.slice(%arg3, %{{.+}}) : {{.*}}, !cute.coord<"(_,2,0)">
// BY-N:          cute.slice(%arg3, %{{.+}}) : {{.*}}, !cute.coord<"(_,2,1)">
// BY-N:          cute.slice(%arg3, %{{.+}}) : {{.*}}, !cute.coord<"(_,3,0)">
func.func @upper(%mma: !mma, %d: !d, %a: !a, %b: !b) {
  cute.gemm(%mma, %d, %a, %b, %d) : (!mma, !d, !a, !b, !d)
  return
}
