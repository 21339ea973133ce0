// RUN: not tilepass-opt %s -p 'cute-zero-mma{tiles=n0k1}' 2>&1 | %filecheck %s --check-prefix=AUTO
// RUN: not tilepass-opt %s -p 'cute-zero-mma{mode=assume}' 2>&1 | %filecheck %s --check-prefix=TILES
// RUN: not tilepass-opt %s -p 'cute-zero-mma{mode=assume,tiles=n0k1}' 2>&1 | %filecheck %s --check-prefix=SITES
// RUN: not tilepass-opt %s -p 'cute-zero-mma{mode=assume,tiles=triangle,sites=0}' 2>&1 | %filecheck %s --check-prefix=STRUCTURE
// RUN: not tilepass-opt %s -p 'cute-zero-mma{mode=assume,tiles=block-diagonal:0,sites=0}' 2>&1 | %filecheck %s --check-prefix=STRUCTURE
// RUN: not tilepass-opt %s -p 'cute-zero-mma{mode=assume,tiles=n4k0,sites=0}' 2>&1 | %filecheck %s --check-prefix=GRID
// RUN: not tilepass-opt %s -p 'cute-zero-mma{mode=assume,tiles=n0k1,sites=7}' 2>&1 | %filecheck %s --check-prefix=INDEX
// RUN: not tilepass-opt %s -p 'cute-zero-mma{mode=assume,tiles=n0k1,sites="+"}' 2>&1 | %filecheck %s --check-prefix=NONE
// RUN: not tilepass-opt %s -p 'cute-zero-mma{mode=assume,tiles=n3-1k0,sites=0}' 2>&1 | %filecheck %s --check-prefix=RANGE
// RUN: not tilepass-opt %s -p 'cute-zero-mma{mode=assume,tiles=n0k1,sites=errors.mlir:1}' 2>&1 | %filecheck %s --check-prefix=LINE
// RUN: not tilepass-opt %s -p 'cute-zero-mma{mode=assume,tiles=upper-triangular,sites=1}' 2>&1 | %filecheck %s --check-prefix=PERMUTED
// RUN: not tilepass-opt %s -p 'cute-zero-mma{mode=check,tiles=m0n1,sites=0}' 2>&1 | %filecheck %s --check-prefix=UNREAD
// RUN: not tilepass-opt %s -p 'cute-zero-mma{mode=assume,tiles=n0k1,sites=0,order=k-serpentin}' 2>&1 | %filecheck %s --check-prefix=ORDER
// RUN: not tilepass-opt %s -p 'cute-zero-mma{mode=assume,tiles=n0k1,sites=0,order=x:k}' 2>&1 | %filecheck %s --check-prefix=ORDER-INDEX
// RUN: not tilepass-opt %s -p 'cute-zero-mma{mode=assume,tiles=n0k1,sites=0,order=1:k}' 2>&1 | %filecheck %s --check-prefix=NO-ZERO
// RUN: not tilepass-opt %s -p 'cute-zero-mma{mode=assume,tiles=n0k1,sites=0,order=k+n4}' 2>&1 | %filecheck %s --check-prefix=ORDER-TWICE

// AUTO:        tiles= names an assumption: it needs mode=assume or mode=check
// TILES:       mode=assume needs tiles=..., the structure to assume (mode=auto proves it)
// SITES:       tiles='n0k1' is an assumption: name the gemms that it is about by sites=...
// STRUCTURE:   expected upper-triangular, lower-triangular, block-diagonal:SIZE, band:WIDTH
// GRID:        gemm 0 (cute-zero-mma-errors.mlir:{{[0-9]+}}) has no tile n4k0: its tiles are m0-0, n0-3, k0-1
// INDEX:       sites='7': no gemm matches '7'; gemms 0 to 1
// NONE:        sites='+' names no gemm; gemms 0 to 1
// RANGE:       tiles: 'n3-1k0' names no tile: a range counts upwards (n0-1k2)
// LINE:        sites='errors.mlir:1': no gemm matches 'errors.mlir:1'; gemms 0 to 1
// PERMUTED:    gemm 1 (cute-zero-mma-errors.mlir:{{[0-9]+}}): its tiled MMA permutes the tiles, so that 'upper-triangular' does not say which are zero
// UNREAD:      mode=check can look at operands only, not at who reads accumulator tiles
// ORDER:       order='k-serpentin': unknown order 'k-serpentin'; did you mean 'k-serpentine'
// ORDER-INDEX: order='x:k': 'x' is not the index of a gemm
// ORDER-TWICE: order='k+n4': two orders for all gemms: k and n4
// NO-ZERO:     order: gemm 1 has no zero tile to leave out (gemms that have: 0)

!mma = !cute.tiled_mma<!cute_nvgpu.sm80.mma<16x8x16, elem_type = (bf16, bf16, f32) >, atom_layout_MNK = <"(8,1,1):(1,0,0)">, permutation_MNK = <"[128:1;32:1;32:1]">>
!d = !cute.memref<f32, rmem, align<32>, "((2,2),1,4):((1,2),0,4)">
!a = !cute.memref<bf16, rmem, align<32>, "((2,2,2),1,2):((1,2,4),0,8)">
!b = !cute.memref<bf16, rmem, align<8>, "((2,2),4,2):((1,2),8,4)">

!permuted = !cute.tiled_mma<!cute_nvgpu.sm80.mma<16x8x16, elem_type = (bf16, bf16, f32) >, atom_layout_MNK = <"(8,1,1):(1,0,0)">, permutation_MNK = <"[128:1;(8,2,2):(1,16,8);16:1]">>
func.func @two(%mma: !mma, %other: !permuted, %d: !d, %a: !a, %b: !b) {
  cute.gemm(%mma, %d, %a, %b, %d) : (!mma, !d, !a, !b, !d)
  cute.gemm(%other, %d, %a, %b, %d) : (!permuted, !d, !a, !b, !d)
  return
}
