// RUN: tilepass-opt %s --target cuda:90 -p 'cute-zero-mma{order=k}' -Rpass=zero -Rpass-missed=zero -Rpass-analysis=zero -o %t 2> %t.remarks
// RUN: %filecheck %s --input-file %t
// RUN: %filecheck %s --input-file %t.remarks --check-prefix=REMARK
// RUN: tilepass-opt %s --target cuda:90 -p 'cute-zero-mma{mode=check}' | %filecheck %s --check-prefix=TRAP
// RUN: not tilepass-opt %s -p cute-zero-mma 2>&1 | %filecheck %s --check-prefix=TARGET

!mma = !cute.tiled_mma<!cute_nvgpu.sm80.mma<16x8x16, elem_type = (bf16, bf16, f32) >, atom_layout_MNK = <"(1,1,1):(0,0,0)">, permutation_MNK = <"[_;_;_]">>
!out = !cute.memref<f32, generic, "(32):(1)">
!in = !cute.memref<bf16, generic, "(32):(1)">
!d = !cute.memref<f32, rmem, align<32>, "((2,2),1,2):((1,2),0,4)">
!a = !cute.memref<bf16, rmem, align<16>, "((2,2,2),1,2):((1,2,4),0,8)">
!b = !cute.memref<bf16, rmem, align<8>, "((2,2),2,2):((1,2),4,8)">
!b1 = !cute.memref<bf16, rmem, align<8>, "((2,2),2):((1,2),4)">

// The second half of B (k = 1) is overwritten with zeros, so that two of four atoms remain.
// CHECK-LABEL: cuda.kernel @half_zero
// CHECK:         %[[B:.+]] = cute.mma.make_fragment B
// CHECK:         cute.slice(%[[B]], %{{.+}}) : {{.*}}, !cute.coord<"(_,0,0)">
// CHECK:         cute.gemm
// CHECK:         cute.slice(%[[B]], %{{.+}}) : {{.*}}, !cute.coord<"(_,1,0)">
// CHECK:         cute.gemm
// CHECK-NOT:     cute.gemm
// CHECK:         return
// REMARK: analysis: gemm 0 (cute-zero-mma-auto.mlir:{{[0-9]+}}): zero tiles B n0-1k1
// REMARK: analysis: gemm 0 (cute-zero-mma-auto.mlir:{{[0-9]+}}): evidence 1,
// REMARK: missed: gemm 1 (cute-zero-mma-auto.mlir:{{[0-9]+}}): A and B: {{.+}}.mlir:{{[0-9]+}}:12: the operand is loaded from memory other than shared, past any mask
// REMARK: analysis: assumed for gemms 0: the other operand's values are finite
// REMARK: passed: gemm 0 (cute-zero-mma-auto.mlir:{{[0-9]+}}): 2 of 4 atoms left out, order k
// TRAP-LABEL: cuda.kernel @half_zero
// TRAP:         tile n0k1 is not zero
// TRAP:         tile n1k1 is not zero
// TRAP:         cute.gemm
// TRAP-LABEL: cuda.kernel @no_zero
// TRAP-NOT:     is not zero
// TARGET: error: pass 'cute-zero-mma': compiles a copy of the module: give --target (cuda:90)
module attributes {gpu.container_module} {
  gpu.module @kernels {
    cuda.kernel @half_zero(%out: !out, %in: !in) attributes {cute.kernel, gpu.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
      %thread = nvvm.read.ptx.sreg.tid.x : i32
      %atom = cute.make_atom() : () -> !cute_nvgpu.sm80.mma<16x8x16, elem_type = (bf16, bf16, f32) >
      %mma = cute.make_tiled_mma(%atom) : !mma
      %shape_a = cute.make_shape() : () -> !cute.shape<"((2,2,2),1,2)">
      %a = cute.mma.make_fragment A (%mma, %shape_a) : (!mma, !cute.shape<"((2,2,2),1,2)">) -> !a
      %shape_b = cute.make_shape() : () -> !cute.shape<"((2,2),2,2)">
      %b = cute.mma.make_fragment B (%mma, %shape_b) : (!mma, !cute.shape<"((2,2),2,2)">) -> !b
      %shape_d = cute.make_shape() : () -> !cute.shape<"((2,2),1,2)">
      %layout_d = cute.make_layout(%shape_d) : !cute.layout<"((2,2),1,2):((1,2),0,4)">
      %d = cute.memref.alloca(%layout_d) : !d
      %zeros_d = arith.constant dense<0.0> : vector<8xf32>
      cute.memref.store_vec(%zeros_d, %d) : (vector<8xf32>, !d) -> ()
      %at = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %x = cute.memref.load(%in, %at) : (!in, !cute.coord<"?">) -> bf16
      %xs = vector.broadcast %x : bf16 to vector<16xbf16>
      cute.memref.store_vec(%xs, %a) : (vector<16xbf16>, !a) -> ()
      cute.memref.store_vec(%xs, %b) : (vector<16xbf16>, !b) -> ()
      %half = cute.make_coord() : () -> !cute.coord<"(_,_,1)">
      %b1 = cute.slice(%b, %half) : !b, !cute.coord<"(_,_,1)">
      %zeros_b = arith.constant dense<0.0> : vector<8xbf16>
      cute.memref.store_vec(%zeros_b, %b1) : (vector<8xbf16>, !b1) -> ()
      cute.gemm(%mma, %d, %a, %b, %d) : (!mma, !d, !a, !b, !d)
      %sums = cute.memref.load_vec(%d) : (!d) -> vector<8xf32>
      %sum = vector.reduction <add>, %sums : vector<8xf32> into f32
      cute.memref.store(%out, %at, %sum) : (!out, !cute.coord<"?">, f32) -> ()
      return
    }
    cuda.kernel @no_zero(%out: !out, %in: !in) attributes {cute.kernel, gpu.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
      %thread = nvvm.read.ptx.sreg.tid.x : i32
      %atom = cute.make_atom() : () -> !cute_nvgpu.sm80.mma<16x8x16, elem_type = (bf16, bf16, f32) >
      %mma = cute.make_tiled_mma(%atom) : !mma
      %shape_a = cute.make_shape() : () -> !cute.shape<"((2,2,2),1,2)">
      %a = cute.mma.make_fragment A (%mma, %shape_a) : (!mma, !cute.shape<"((2,2,2),1,2)">) -> !a
      %shape_b = cute.make_shape() : () -> !cute.shape<"((2,2),2,2)">
      %b = cute.mma.make_fragment B (%mma, %shape_b) : (!mma, !cute.shape<"((2,2),2,2)">) -> !b
      %shape_d = cute.make_shape() : () -> !cute.shape<"((2,2),1,2)">
      %layout_d = cute.make_layout(%shape_d) : !cute.layout<"((2,2),1,2):((1,2),0,4)">
      %d = cute.memref.alloca(%layout_d) : !d
      %zeros_d = arith.constant dense<0.0> : vector<8xf32>
      cute.memref.store_vec(%zeros_d, %d) : (vector<8xf32>, !d) -> ()
      %at = cute.make_coord(%thread) : (i32) -> !cute.coord<"?">
      %x = cute.memref.load(%in, %at) : (!in, !cute.coord<"?">) -> bf16
      %xs = vector.broadcast %x : bf16 to vector<16xbf16>
      cute.memref.store_vec(%xs, %a) : (vector<16xbf16>, !a) -> ()
      cute.memref.store_vec(%xs, %b) : (vector<16xbf16>, !b) -> ()
      cute.gemm(%mma, %d, %a, %b, %d) : (!mma, !d, !a, !b, !d)
      %sums = cute.memref.load_vec(%d) : (!d) -> vector<8xf32>
      %sum = vector.reduction <add>, %sums : vector<8xf32> into f32
      cute.memref.store(%out, %at, %sum) : (!out, !cute.coord<"?">, f32) -> ()
      return
    }
  }
}
