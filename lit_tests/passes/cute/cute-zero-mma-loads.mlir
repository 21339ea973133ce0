// RUN: tilepass-opt %s -p 'cute-zero-mma{mode=assume,tiles=upper-triangular,sites=0+1+2+3+4+5+6+8+9+10+11,order=k}' -Rpass=zero -o %t 2> %t.remarks
// RUN: %filecheck %s --input-file %t
// RUN: %filecheck %s --input-file %t.remarks --check-prefix=REMARK
// RUN: tilepass-opt %s -p 'cute-zero-mma{mode=assume,tiles=upper-triangular,sites=0,order=k,loads=keep}' | %filecheck %s --check-prefix=KEEP

// B is 32 x 32, in tiles of 16 (k) x 8 (n): of its 8 tiles (n, k), (0, 1) and (1, 1) are zero. One
// ldmatrix of four matrices brings two tiles that are neighbours in n.

!mma = !cute.tiled_mma<!cute_nvgpu.sm80.mma<16x8x16, elem_type = (bf16, bf16, f32) >, atom_layout_MNK = <"(8,1,1):(1,0,0)">, permutation_MNK = <"[128:1;32:1;32:1]">>
!d = !cute.memref<f32, rmem, align<32>, "((2,2),1,4):((1,2),0,4)">
!a = !cute.memref<bf16, rmem, align<32>, "((2,2,2),1,2):((1,2,4),0,8)">
!b = !cute.memref<bf16, rmem, align<8>, "((2,2),4,2):((1,2),8,4)">
!tiled = !cute.tiled_copy<!cute_nvgpu.atom.ldsm<val_type = bf16, mode = <"(8,8)">, sz_pattern = u16, num_matrices = 4, n>, layout_copy_tv = <"((4,8,8),((2,2),(4,2))):((64,1,0),((32,256),(8,512)))">, tiler_mn = <"[32:1;32:1]">>
!ldmatrix = !cute_nvgpu.atom.ldsm<val_type = bf16, mode = <"(8,8)">, sz_pattern = u16, num_matrices = 4, n>
!plain = !cute_nvgpu.atom.universal_copy<bf16, 64 b>
!retiled = !cute.memref<bf16, rmem, align<8>, "(((4,2),(2,2)),1,1):(((1,8),(16,4)),0,0)">
!grouped = !cute.memref<bf16, rmem, align<8>, "(((4,2),(2,2)),(1,1)):(((1,8),(16,4)),(0,0))">
!flat = !cute.memref<bf16, rmem, align<8>, "(((4,2),1),(2,2)):(((1,8),0),(16,4))">
!single = !cute.memref<bf16, rmem, align<8>, "((4,1),(4,2)):((1,0),(8,4))">
!shared = !cute.memref<bf16, smem, align<16>, S<3,4,3>, "((8,(2,2)),(1,1)):((1,(1024,16)),(0,0))">
!rows = !cute.memref<bf16, smem, align<16>, "((8,1),(2,2)):((1,0),(1024,16))">
!row = !cute.memref<bf16, smem, align<16>, "((8,1),2):((1,0),1024)">
!half = !cute.memref<bf16, rmem, align<8>, "(((4,2),1),2):(((1,8),0),16)">
!once = !cute.memref<bf16, smem, align<16>, "((8,1),(1)):((1,0),(0))">
!piece = !cute.memref<bf16, rmem, align<8>, "(((4,2),1),(1)):(((1,8),0),(0))">
!apart = !cute.memref<bf16, rmem, align<8>, "((2,2),4,2):((1,16),2,32)">
!strided = !cute.memref<bf16, smem, align<16>, "((8,1),(2,2)):((1,0),(?{div=8},16))">
!cells = !cute.memref<bf16, smem, align<8>, "((4,1),(4,2)):((1,0),(512,16))">

// A tiled copy: the values of one execution stand first, then all executions. The third of four
// brings the zero tiles; the others stay in their order.
// CHECK-LABEL: func.func @tiled
// CHECK:         cute.get_iter(%arg4)
// CHECK-NEXT:    cute.get_iter(%grouped)
// CHECK-NEXT:    cute.make_int_tuple() : () -> !cute.int_tuple<"0">
// CHECK:         cute.copy(
// CHECK-NEXT:    %[[FROM:.+]] = cute.make_int_tuple() : () -> !cute.int_tuple<"1024">
// CHECK-NEXT:    cute.add_offset(%{{.+}}, %[[FROM]]) : {{.*}} -> !cute.ptr<bf16, smem, align<16>, S<3,4,3>>
// CHECK:         %[[INTO:.+]] = cute.make_int_tuple() : () -> !cute.int_tuple<"16">
// CHECK-NEXT:    cute.add_offset(%{{.+}}, %[[INTO]]) : {{.*}} -> !cute.ptr<bf16, rmem, align<8>>
// CHECK:         cute.copy(
// CHECK-NEXT:    cute.make_int_tuple() : () -> !cute.int_tuple<"1040">
// CHECK:         cute.make_int_tuple() : () -> !cute.int_tuple<"20">
// CHECK:         cute.copy(
// CHECK-NOT:     cute.copy(
// CHECK:         return
// REMARK: passed: gemm 0 ({{.+}}): 1 of 4 loads of B left out: no atom reads them
// KEEP-LABEL: func.func @tiled
// KEEP:          cute.copy(
// KEEP-NOT:      cute.copy(
// KEEP:          return
func.func @tiled(%mma: !mma, %d: !d, %a: !a, %copy: !tiled, %source: !shared) {
  %layout = cute.static : !cute.layout<"((2,2),4,2):((1,2),8,4)">
  %b = cute.memref.alloca(%layout) : !b
  %retiled = cute.tiled.copy.retile(%copy, %b) : (!tiled, !b) -> !retiled
  %grouped = cute.group_modes(%retiled) <1, 3> : (!retiled) -> !grouped
  cute.copy(%copy, %source, %grouped) : (!tiled, !shared, !grouped)
  cute.gemm(%mma, %d, %a, %b, %d) : (!mma, !d, !a, !b, !d)
  return
}

// The copy atom alone: its executions are the second mode.
// CHECK-LABEL: func.func @atom
// CHECK-COUNT-3: cute.copy(
// CHECK-NOT:     cute.copy(
// CHECK:         return
// REMARK: passed: gemm 1 ({{.+}}): 1 of 4 loads of B left out: no atom reads them
func.func @atom(%mma: !mma, %d: !d, %a: !a, %copy: !ldmatrix, %source: !rows) {
  %layout = cute.static : !cute.layout<"((2,2),4,2):((1,2),8,4)">
  %b = cute.memref.alloca(%layout) : !b
  %iter = cute.get_iter(%b) : !b
  %modes = cute.static : !cute.layout<"(((4,2),1),(2,2)):(((1,8),0),(16,4))">
  %flat = cute.make_view(%iter, %modes) : !flat
  cute.copy(%copy, %source, %flat) : (!ldmatrix, !rows, !flat)
  cute.gemm(%mma, %d, %a, %b, %d) : (!mma, !d, !a, !b, !d)
  return
}

// Plain copies of one tile each.
// CHECK-LABEL: func.func @plain
// CHECK-COUNT-6: cute.copy(
// CHECK-NOT:     cute.copy(
// CHECK:         return
// REMARK: passed: gemm 2 ({{.+}}): 2 of 8 loads of B left out: no atom reads them
func.func @plain(%mma: !mma, %d: !d, %a: !a, %copy: !plain, %source: !cells) {
  %layout = cute.static : !cute.layout<"((2,2),4,2):((1,2),8,4)">
  %b = cute.memref.alloca(%layout) : !b
  %iter = cute.get_iter(%b) : !b
  %modes = cute.static : !cute.layout<"((4,1),(4,2)):((1,0),(8,4))">
  %single = cute.make_view(%iter, %modes) : !single
  cute.copy(%copy, %source, %single) : (!plain, !cells, !single)
  cute.gemm(%mma, %d, %a, %b, %d) : (!mma, !d, !a, !b, !d)
  return
}

// One copy for each k, as pipelined kernels have it: of the second k the first ldmatrix goes.
// CHECK-LABEL: func.func @by_k
// CHECK:         cute.copy(%arg3, %arg4,
// CHECK-NOT:     cute.copy(
// CHECK:         cute.make_int_tuple() : () -> !cute.int_tuple<"1024">
// CHECK:         cute.make_int_tuple() : () -> !cute.int_tuple<"16">
// CHECK:         cute.copy(
// CHECK-NOT:     cute.copy(
// CHECK:         return
// REMARK: passed: gemm 3 ({{.+}}): 1 of 2 loads of B left out: no atom reads them
func.func @by_k(%mma: !mma, %d: !d, %a: !a, %copy: !ldmatrix, %first: !row, %second: !row) {
  %layout = cute.static : !cute.layout<"((2,2),4,2):((1,2),8,4)">
  %b = cute.memref.alloca(%layout) : !b
  %iter = cute.get_iter(%b) : !b
  %modes = cute.static : !cute.layout<"(((4,2),1),2,2):(((1,8),0),16,4)">
  %all = cute.make_view(%iter, %modes) : !cute.memref<bf16, rmem, align<8>, "(((4,2),1),2,2):(((1,8),0),16,4)">
  %k0 = cute.make_coord() : () -> !cute.coord<"(_,_,0)">
  %k1 = cute.make_coord() : () -> !cute.coord<"(_,_,1)">
  %into0 = cute.slice(%all, %k0) : !cute.memref<bf16, rmem, align<8>, "(((4,2),1),2,2):(((1,8),0),16,4)">, !cute.coord<"(_,_,0)">
  %into1 = cute.slice(%all, %k1) : !cute.memref<bf16, rmem, align<8>, "(((4,2),1),2,2):(((1,8),0),16,4)">, !cute.coord<"(_,_,1)">
  cute.copy(%copy, %first, %into0) : (!ldmatrix, !row, !half)
  cute.copy(%copy, %second, %into1) : (!ldmatrix, !row, !half)
  cute.gemm(%mma, %d, %a, %b, %d) : (!mma, !d, !a, !b, !d)
  return
}

// A part that begins elsewhere is followed too: the loads of the second k fill it.
// CHECK-LABEL: func.func @part
// CHECK-COUNT-3: cute.copy(
// CHECK-NOT:     cute.copy(
// CHECK:         return
// REMARK-DAG: passed: gemm 4 ({{.+}}): 1 of 4 loads of B left out: no atom reads them
// REMARK-DAG: passed: gemm 4 ({{.+}}): 1 of 1 loads of B left out: no atom reads them
func.func @part(%mma: !mma, %d: !d, %a: !a, %copy: !ldmatrix, %all: !rows, %again: !once) {
  %layout = cute.static : !cute.layout<"((2,2),4,2):((1,2),8,4)">
  %b = cute.memref.alloca(%layout) : !b
  %iter = cute.get_iter(%b) : !b
  %modes = cute.static : !cute.layout<"(((4,2),1),(2,2)):(((1,8),0),(16,4))">
  %flat = cute.make_view(%iter, %modes) : !flat
  cute.copy(%copy, %all, %flat) : (!ldmatrix, !rows, !flat)
  %four = cute.make_int_tuple() : () -> !cute.int_tuple<"4">
  %second = cute.add_offset(%iter, %four) : (!cute.ptr<bf16, rmem, align<8>>, !cute.int_tuple<"4">) -> !cute.ptr<bf16, rmem, align<8>>
  %one = cute.static : !cute.layout<"(((4,2),1),(1)):(((1,8),0),(0))">
  %into = cute.make_view(%second, %one) : !piece
  cute.copy(%copy, %again, %into) : (!ldmatrix, !once, !piece)
  cute.gemm(%mma, %d, %a, %b, %d) : (!mma, !d, !a, !b, !d)
  return
}

// In what follows all loads stay. Another operation reads the fragment:
// REMARK-NOT: loads of
// CHECK-LABEL: func.func @read_elsewhere
// CHECK:         cute.copy(%arg3, %arg4,
// CHECK-NOT:     cute.copy(
// CHECK:         return
func.func @read_elsewhere(%mma: !mma, %d: !d, %a: !a, %copy: !ldmatrix, %source: !rows) -> vector<32xbf16> {
  %layout = cute.static : !cute.layout<"((2,2),4,2):((1,2),8,4)">
  %b = cute.memref.alloca(%layout) : !b
  %iter = cute.get_iter(%b) : !b
  %modes = cute.static : !cute.layout<"(((4,2),1),(2,2)):(((1,8),0),(16,4))">
  %flat = cute.make_view(%iter, %modes) : !flat
  cute.copy(%copy, %source, %flat) : (!ldmatrix, !rows, !flat)
  cute.gemm(%mma, %d, %a, %b, %d) : (!mma, !d, !a, !b, !d)
  %all = cute.memref.load_vec(%b) : (!b) -> vector<32xbf16>
  return %all : vector<32xbf16>
}

// A gemm that stays dense reads it.
// CHECK-LABEL: func.func @dense_too
// CHECK:         cute.copy(%arg3, %arg4,
// CHECK-NOT:     cute.copy(
// CHECK:         return
func.func @dense_too(%mma: !mma, %d: !d, %a: !a, %copy: !ldmatrix, %source: !rows) {
  %layout = cute.static : !cute.layout<"((2,2),4,2):((1,2),8,4)">
  %b = cute.memref.alloca(%layout) : !b
  %iter = cute.get_iter(%b) : !b
  %modes = cute.static : !cute.layout<"(((4,2),1),(2,2)):(((1,8),0),(16,4))">
  %flat = cute.make_view(%iter, %modes) : !flat
  cute.copy(%copy, %source, %flat) : (!ldmatrix, !rows, !flat)
  cute.gemm(%mma, %d, %a, %b, %d) : (!mma, !d, !a, !b, !d)
  cute.gemm(%mma, %d, %a, %b, %d) : (!mma, !d, !a, !b, !d)
  return
}

// It goes around a loop.
// CHECK-LABEL: func.func @carried
// CHECK:         cute.copy(%arg3, %arg4,
// CHECK-NOT:     cute.copy(
// CHECK:         return
func.func @carried(%mma: !mma, %d: !d, %a: !a, %copy: !ldmatrix, %source: !rows, %n: index) {
  %layout = cute.static : !cute.layout<"((2,2),4,2):((1,2),8,4)">
  %b = cute.memref.alloca(%layout) : !b
  %iter = cute.get_iter(%b) : !b
  %modes = cute.static : !cute.layout<"(((4,2),1),(2,2)):(((1,8),0),(16,4))">
  %flat = cute.make_view(%iter, %modes) : !flat
  cute.copy(%copy, %source, %flat) : (!ldmatrix, !rows, !flat)
  cute.gemm(%mma, %d, %a, %b, %d) : (!mma, !d, !a, !b, !d)
  %last = scf.for %i = %n to %n step %n iter_args(%each = %b) -> (!b) {
    scf.yield %each : !b
  }
  return
}

// It comes from elsewhere, so that others may look at it.
// CHECK-LABEL: func.func @an_argument
// CHECK:         cute.copy(%arg3, %arg4,
// CHECK-NOT:     cute.copy(
// CHECK:         return
func.func @an_argument(%mma: !mma, %d: !d, %a: !a, %copy: !ldmatrix, %source: !rows, %b: !b) {
  %iter = cute.get_iter(%b) : !b
  %modes = cute.static : !cute.layout<"(((4,2),1),(2,2)):(((1,8),0),(16,4))">
  %flat = cute.make_view(%iter, %modes) : !flat
  cute.copy(%copy, %source, %flat) : (!ldmatrix, !rows, !flat)
  cute.gemm(%mma, %d, %a, %b, %d) : (!mma, !d, !a, !b, !d)
  return
}

// Rows at strides that are not known.
// CHECK-LABEL: func.func @dynamic
// CHECK:         cute.copy(%arg3, %arg4,
// CHECK-NOT:     cute.copy(
// CHECK:         return
func.func @dynamic(%mma: !mma, %d: !d, %a: !a, %copy: !ldmatrix, %source: !strided) {
  %layout = cute.static : !cute.layout<"((2,2),4,2):((1,2),8,4)">
  %b = cute.memref.alloca(%layout) : !b
  %iter = cute.get_iter(%b) : !b
  %modes = cute.static : !cute.layout<"(((4,2),1),(2,2)):(((1,8),0),(16,4))">
  %flat = cute.make_view(%iter, %modes) : !flat
  cute.copy(%copy, %source, %flat) : (!ldmatrix, !strided, !flat)
  cute.gemm(%mma, %d, %a, %b, %d) : (!mma, !d, !a, !b, !d)
  return
}

// The values of a tile of B do not lie side by side, but the compiler reads them as if they did.
// CHECK-LABEL: func.func @not_dense
// CHECK:         cute.copy(%arg3, %arg4,
// CHECK-NOT:     cute.copy(
// CHECK:         return
func.func @not_dense(%mma: !mma, %d: !d, %a: !a, %copy: !plain, %source: !cells) {
  %layout = cute.static : !cute.layout<"((2,2),4,2):((1,16),2,32)">
  %b = cute.memref.alloca(%layout) : !apart
  %iter = cute.get_iter(%b) : !apart
  %modes = cute.static : !cute.layout<"((4,1),(4,2)):((1,0),(4,32))">
  %single = cute.make_view(%iter, %modes) : !cute.memref<bf16, rmem, align<8>, "((4,1),(4,2)):((1,0),(4,32))">
  cute.copy(%copy, %source, %single) : (!plain, !cells, !cute.memref<bf16, rmem, align<8>, "((4,1),(4,2)):((1,0),(4,32))">)
  cute.gemm(%mma, %d, %a, %b, %d) : (!mma, !d, !a, !apart, !d)
  return
}
