// RUN: tilepass-opt %s -p 'cute-zero-mma{mode=assume,tiles=n0k1,sites=0+1+2}' -Rpass-missed=zero -o %t 2> %t.remarks
// RUN: %filecheck %s --input-file %t
// RUN: %filecheck %s --input-file %t.remarks --check-prefix=REMARK

!mma = !cute.tiled_mma<!cute_nvgpu.sm80.mma<16x8x16, elem_type = (bf16, bf16, f32) >, atom_layout_MNK = <"(8,1,1):(1,0,0)">, permutation_MNK = <"[128:1;32:1;32:1]">>
!d = !cute.memref<f32, rmem, align<32>, "((2,2),1,4):((1,2),0,4)">
!a = !cute.memref<bf16, rmem, align<32>, "((2,2,2),1,2):((1,2,4),0,8)">
!b = !cute.memref<bf16, rmem, align<8>, "((2,2),4,2):((1,2),8,4)">

!atom = !cute_nvgpu.sm80.mma<16x8x16, elem_type = (bf16, bf16, f32) >
!d1 = !cute.memref<f32, rmem, align<32>, "((2,2),1,1):((1,2),0,0)">
!a1 = !cute.memref<bf16, rmem, align<32>, "((2,2,2),1):((1,2,4),0)">
!b1 = !cute.memref<bf16, rmem, align<8>, "((2,2),1):((1,2),0)">
!wgmma = !cute.tiled_mma<!cute_nvgpu.sm90.mma<64x64x16, ab_major = (k, k), elem_type = (bf16, bf16, f32), frag_kind = ss>, atom_layout_MNK = <"(1,1,1):(0,0,0)">, permutation_MNK = <"[_;_;_]">>
!dw = !cute.memref<f32, rmem, align<32>, "((2,2,8),1,1):((1,2,4),0,0)">
!descriptors = !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1,4):(0,0,2)">

// CHECK-LABEL: func.func @other_accumulator
// CHECK:         cute.gemm(%arg0, %arg1, %arg2, %arg3, %arg4)
// REMARK: refused.mlir:{{[0-9]+}}:3: {{.*}} missed: gemm 0: C and D are different tensors; only an accumulator updated in place is supported
func.func @other_accumulator(%mma: !mma, %d: !d, %a: !a, %b: !b, %c: !d) {
  cute.gemm(%mma, %d, %a, %b, %c) : (!mma, !d, !a, !b, !d)
  return
}

// CHECK-LABEL: func.func @one_atom
// CHECK:         cute.gemm(%arg0, %arg1, %arg2, %arg3, %arg1)
// REMARK: missed: gemm 1: operand A is !cute.memref<{{.*}}>, expected a register fragment with a static layout (value, tile, tile)
func.func @one_atom(%mma: !atom, %d: !d1, %a: !a1, %b: !b1) {
  cute.gemm(%mma, %d, %a, %b, %d) : (!atom, !d1, !a1, !b1, !d1)
  return
}

// CHECK-LABEL: func.func @warpgroup
// CHECK:         cute.gemm(%arg0, %arg1, %arg2, %arg3, %arg1)
// REMARK: missed: gemm 2: out of reach: a wgmma reads B from shared memory by a descriptor and covers all of N and a whole warp group in one instruction
func.func @warpgroup(%mma: !wgmma, %d: !dw, %a: !descriptors, %b: !descriptors) {
  cute.gemm(%mma, %d, %a, %b, %d) : (!wgmma, !dw, !descriptors, !descriptors, !dw)
  return
}
