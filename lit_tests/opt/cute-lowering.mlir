// RUN: tilepass-opt %s --load %S/../../tests/cute_passes.py -p drop-gemms -Rpass=. 2>&1 | %filecheck %s
// RUN: tilepass-opt %s --load %S/../../tests/cute_passes.py -p look-gemms --target cuda:90 -Rpass-analysis=. 2>&1 | %filecheck %s --check-prefix=LOOK
// RUN: not tilepass-opt %s --load %S/../../tests/cute_passes.py -p look-gemms 2>&1 | %filecheck %s --check-prefix=TARGET
// RUN: not tilepass-opt %s --load %S/../../tests/cute_passes.py -p look-gemms --target hip:gfx942 2>&1 | %filecheck %s --check-prefix=AMD
// RUN: tilepass-opt %s --emit generic | tilepass-opt - | %filecheck %s --check-prefix=TRIP

// CHECK:     cute-lowering.mlir:29:7: remark: [drop-gemms] passed: a gemm is dropped
// CHECK:     cuda.kernel @product
// CHECK-NOT: cute.gemm

// A pass may look at a lowered copy, and at the figures of a compiled one.
// LOOK:   remark: [look-gemms] analysis: lowered to 1 loops of mma
// LOOK:   remark: [look-gemms] analysis: compiled to 0 mma
// LOOK:   cute.gemm

// TARGET: error: pass 'look-gemms': compiles a copy of the module: give --target (cuda:90)
// AMD:    error: pass 'look-gemms': CuTe modules are compiled for cuda targets, not for hip:gfx942
// TRIP:   cute.gemm(%{{.+}}, %[[C:.+]], %{{.+}}, %{{.+}}, %[[C]])
!a = !cute.memref<bf16, rmem, align<16>, "((2,2,2),1,2):((1,2,4),0,8)">
!b = !cute.memref<bf16, rmem, align<8>, "((2,2),2,2):((1,2),8,4)">
!c = !cute.memref<f32, rmem, align<16>, "((2,2),1,2):((1,2),0,4)">
!mma = !cute.tiled_mma<!cute_nvgpu.sm80.mma<16x8x16, elem_type = (bf16, bf16, f32) >, atom_layout_MNK = <"(1,1,1):(0,0,0)">, permutation_MNK = <"[_;_;_]">>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    cuda.kernel @product(%mma: !mma) attributes {cute.kernel, gpu.kernel, nvvm.reqntid = array<i32: 32>} {
      %a = cute.memref.alloca() : !a
      %b = cute.memref.alloca() : !b
      %c = cute.memref.alloca() : !c
      cute.gemm(%mma, %c, %a, %b, %c) : (!mma, !c, !a, !b, !c)
      cuda.return
    }
  }
}
