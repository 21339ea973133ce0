// RUN: tilepass-opt %s -p cute-vectorize-copies -Rpass=vectorize -Rpass-missed=vectorize -o %t 2> %t.remarks
// RUN: %filecheck %s --input-file %t
// RUN: %filecheck %s --input-file %t.remarks --check-prefix=REMARK
// RUN: tilepass-opt %s -p 'cute-vectorize-copies{bytes=8}' | %filecheck %s --check-prefix=EIGHT
// RUN: not tilepass-opt %s -p 'cute-vectorize-copies{bytes=12}' 2>&1 | %filecheck %s --check-prefix=BYTES

// BYTES: error: {{.*}}bytes=12: vectors have 2, 4, 8 or 16 bytes

!coordinates = !cute.coord_tensor<"(?,?{div=2})", "((2,2),1,2):((1@1,8@0),0,8@1)">
!registers = !cute.memref<f32, rmem, align<32>, "((2,2),1,2):((1,2),0,4)">
!memory = !cute.memref<f32, gmem, align<16>, "(128,128):(1,128)">
!rows = !cute.memref<f32, gmem, align<16>, "(128,128):(128,1)">
!line = !cute.memref<f32, gmem, align<16>, "8:1">
!half = !cute.memref<f32, gmem, align<4>, "8:1">
!places = !cute.coord_tensor<"(?{div=4})", "(8):(1@0)">
!mixed = !cute.memref<f32, smem, align<16>, S<3,2,3>, "8:1">
!flat = !cute.memref<f32, rmem, align<32>, "8:1">

// What an accumulator holds of two neighbours in memory: pairs, at an even column of 8-byte
// alignment; the rows are 128 elements apart.
// CHECK-LABEL: func.func @store
// CHECK:         cute.get_iter(%arg0)
// CHECK:         %[[ROW:.+]] = cute.get_scalars(%e0
// CHECK:         arith.muli %{{.+}}, %{{.+}}
// CHECK:         cute.assume(%{{.+}}) : (i32) -> !cute.i32<divby 2>
// CHECK:         %[[BEGIN:.+]] = cute.add_offset(%{{.+}}, %{{.+}}) : {{.*}} -> !cute.ptr<f32, gmem, align<8>>
// CHECK:         %[[FIRST:.+]] = cute.memref.load_vec(%{{.+}}) : {{.*}} -> vector<2xf32>
// CHECK-NEXT:    cute.memref.store_vec(%[[FIRST]], %{{.+}})
// CHECK:         cute.make_int_tuple() : () -> !cute.int_tuple<"1024">
// CHECK:         cute.memref.store_vec
// CHECK:         cute.make_int_tuple() : () -> !cute.int_tuple<"8">
// CHECK:         cute.memref.store_vec
// CHECK:         cute.make_int_tuple() : () -> !cute.int_tuple<"1032">
// CHECK:         cute.memref.store_vec
// CHECK-NOT:     scf.for
// CHECK:         return
// REMARK: passed: copy loop, 8 elements of 4 bytes: 4 vectors of 8 bytes
func.func @store(%registers: !registers, %memory: !memory, %coordinates: !coordinates) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %last = scf.for %i = %c0 to %c8 step %c1 iter_args(%each = %memory) -> (!memory) : i32 {
    %at = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
    %element = cute.slice(%coordinates, %at) : !coordinates, !cute.coord<"?">
    %place = cute.get_iter(%element) : !cute.coord_tensor<"(?,?)", "():()">
    %pair = cute.deref_arith_tuple_iter(%place) : !cute.arith_tuple_iter<"(?,?)">
    %row, %column = cute.get_leaves(%pair) : !cute.int_tuple<"(?,?)">
    %x = cute.memref.load(%registers, %at) : (!registers, !cute.coord<"?">) -> f32
    %to = cute.make_coord(%column, %row) : (!cute.int_tuple<"?">, !cute.int_tuple<"?">) -> !cute.coord<"(?,?)">
    cute.memref.store(%each, %to, %x) : (!memory, !cute.coord<"(?,?)">, f32) -> ()
    scf.yield %each : !memory
  }
  return
}

// The same from memory.
// CHECK-LABEL: func.func @load
// CHECK-COUNT-4: cute.memref.load_vec(%{{.+}}) : (!memref_gmem_{{.+}}) -> vector<2xf32>
// CHECK-NOT:     scf.for
// CHECK:         return
// REMARK: passed: copy loop, 8 elements of 4 bytes: 4 vectors of 8 bytes
func.func @load(%registers: !registers, %memory: !memory, %coordinates: !coordinates) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  scf.for %i = %c0 to %c8 step %c1 : i32 {
    %at = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
    %element = cute.slice(%coordinates, %at) : !coordinates, !cute.coord<"?">
    %place = cute.get_iter(%element) : !cute.coord_tensor<"(?,?)", "():()">
    %pair = cute.deref_arith_tuple_iter(%place) : !cute.arith_tuple_iter<"(?,?)">
    %row, %column = cute.get_leaves(%pair) : !cute.int_tuple<"(?,?)">
    %from = cute.make_coord(%column, %row) : (!cute.int_tuple<"?">, !cute.int_tuple<"?">) -> !cute.coord<"(?,?)">
    %x = cute.memref.load(%memory, %from) : (!memory, !cute.coord<"(?,?)">) -> f32
    cute.memref.store(%registers, %at, %x) : (!registers, !cute.coord<"?">, f32) -> ()
  }
  return
}

// Counted by the loop on both sides: as wide as the alignment allows.
// CHECK-LABEL: func.func @line
// CHECK-COUNT-2: vector<4xf32>
// CHECK-NOT:     scf.for
// CHECK:         return
// EIGHT-LABEL: func.func @line
// EIGHT-COUNT-4: load_vec{{.*}} -> vector<2xf32>
// REMARK: passed: copy loop, 8 elements of 4 bytes: 2 vectors of 16 bytes
func.func @line(%registers: !flat, %memory: !line) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  scf.for %i = %c0 to %c8 step %c1 : i32 {
    %at = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
    %x = cute.memref.load(%memory, %at) : (!line, !cute.coord<"?">) -> f32
    cute.memref.store(%registers, %at, %x) : (!flat, !cute.coord<"?">, f32) -> ()
  }
  return
}

// Coordinates of one dimension, in a tensor that the loop carries: what it is outside is used.
// CHECK-LABEL: func.func @one_dimension
// CHECK:         cute.get_iter(%arg2) : !cute.coord_tensor<"(?{div=4})"
// CHECK-COUNT-2: vector<4xf32>
// CHECK-NOT:     scf.for
// CHECK:         return
// REMARK: passed: copy loop, 8 elements of 4 bytes: 2 vectors of 16 bytes
func.func @one_dimension(%registers: !flat, %memory: !line, %coordinates: !places) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %last = scf.for %i = %c0 to %c8 step %c1 iter_args(%each = %coordinates) -> (!places) : i32 {
    %at = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
    %element = cute.slice(%each, %at) : !places, !cute.coord<"?">
    %place = cute.get_iter(%element) : !cute.coord_tensor<"(?)", "():()">
    %one = cute.deref_arith_tuple_iter(%place) : !cute.arith_tuple_iter<"(?)">
    %column = cute.get_leaves(%one) : !cute.int_tuple<"(?)">
    %x = cute.memref.load(%registers, %at) : (!flat, !cute.coord<"?">) -> f32
    %to = cute.make_coord(%column) : (!cute.int_tuple<"?">) -> !cute.coord<"?">
    cute.memref.store(%memory, %to, %x) : (!line, !cute.coord<"?">, f32) -> ()
    scf.yield %each : !places
  }
  return
}

// A tensor of very many elements, of which the loop takes the first ones.
// CHECK-LABEL: func.func @of_many
// CHECK-COUNT-2: vector<4xf32>
// CHECK-NOT:     scf.for
// CHECK:         return
// REMARK: passed: copy loop, 8 elements of 4 bytes: 2 vectors of 16 bytes
func.func @of_many(%registers: !flat, %memory: !cute.memref<f32, gmem, align<16>, "(65536,16384):(1,65536)">) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  scf.for %i = %c0 to %c8 step %c1 : i32 {
    %at = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
    %x = cute.memref.load(%registers, %at) : (!flat, !cute.coord<"?">) -> f32
    cute.memref.store(%memory, %at, %x) : (!cute.memref<f32, gmem, align<16>, "(65536,16384):(1,65536)">, !cute.coord<"?">, f32) -> ()
  }
  return
}

// In what follows the loops stay. Of a row of registers only the second number is counted:
// CHECK-LABEL: func.func @a_row
// CHECK:         scf.for
// REMARK: missed: copy loop: its elements are not counted by the loop
func.func @a_row(%registers: !cute.memref<f32, rmem, align<32>, "(4,4):(1,4)">, %memory: !line) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  scf.for %i = %c0 to %c4 step %c1 : i32 {
    %at = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
    %from = cute.make_coord(%i) : (i32) -> !cute.coord<"(0,?)">
    %x = cute.memref.load(%registers, %from) : (!cute.memref<f32, rmem, align<32>, "(4,4):(1,4)">, !cute.coord<"(0,?)">) -> f32
    cute.memref.store(%memory, %at, %x) : (!line, !cute.coord<"?">, f32) -> ()
  }
  return
}

// CHECK-LABEL: func.func @no_trip
// CHECK:         scf.for
// REMARK: missed: copy loop: it counts from 0 to -4 by 1; taken are loops from 0 upwards by 1
func.func @no_trip(%registers: !flat, %memory: !line) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %end = arith.constant -4 : i32
  scf.for %i = %c0 to %end step %c1 : i32 {
    %at = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
    %x = cute.memref.load(%registers, %at) : (!flat, !cute.coord<"?">) -> f32
    cute.memref.store(%memory, %at, %x) : (!line, !cute.coord<"?">, f32) -> ()
  }
  return
}

// A stride that 32 bits do not hold, as the index is counted.
// CHECK-LABEL: func.func @far
// CHECK:         scf.for
// REMARK: missed: copy loop: a stride of 4294967296 does not fit 32 bits
func.func @far(%registers: !registers, %memory: !cute.memref<f32, gmem, align<16>, "(128,128):(1,4294967296)">, %coordinates: !coordinates) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  scf.for %i = %c0 to %c8 step %c1 : i32 {
    %at = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
    %element = cute.slice(%coordinates, %at) : !coordinates, !cute.coord<"?">
    %place = cute.get_iter(%element) : !cute.coord_tensor<"(?,?)", "():()">
    %pair = cute.deref_arith_tuple_iter(%place) : !cute.arith_tuple_iter<"(?,?)">
    %row, %column = cute.get_leaves(%pair) : !cute.int_tuple<"(?,?)">
    %x = cute.memref.load(%registers, %at) : (!registers, !cute.coord<"?">) -> f32
    %to = cute.make_coord(%column, %row) : (!cute.int_tuple<"?">, !cute.int_tuple<"?">) -> !cute.coord<"(?,?)">
    cute.memref.store(%memory, %to, %x) : (!cute.memref<f32, gmem, align<16>, "(128,128):(1,4294967296)">, !cute.coord<"(?,?)">, f32) -> ()
  }
  return
}

// The swizzle takes neighbours apart.
// CHECK-LABEL: func.func @swizzled
// CHECK:         scf.for
// REMARK: missed: copy loop, 8 elements of 4 bytes: in smem S<3,2,3> keeps only 4 bytes together
func.func @swizzled(%registers: !flat, %memory: !mixed) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  scf.for %i = %c0 to %c8 step %c1 : i32 {
    %at = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
    %x = cute.memref.load(%registers, %at) : (!flat, !cute.coord<"?">) -> f32
    cute.memref.store(%memory, %at, %x) : (!mixed, !cute.coord<"?">, f32) -> ()
  }
  return
}

// Columns lie 128 elements apart.
// CHECK-LABEL: func.func @other_way
// CHECK:         scf.for
// REMARK: missed: copy loop, 8 elements of 4 bytes: in gmem the second lies 128 elements behind the first
func.func @other_way(%registers: !registers, %memory: !rows, %coordinates: !coordinates) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  scf.for %i = %c0 to %c8 step %c1 : i32 {
    %at = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
    %element = cute.slice(%coordinates, %at) : !coordinates, !cute.coord<"?">
    %place = cute.get_iter(%element) : !cute.coord_tensor<"(?,?)", "():()">
    %pair = cute.deref_arith_tuple_iter(%place) : !cute.arith_tuple_iter<"(?,?)">
    %row, %column = cute.get_leaves(%pair) : !cute.int_tuple<"(?,?)">
    %x = cute.memref.load(%registers, %at) : (!registers, !cute.coord<"?">) -> f32
    %to = cute.make_coord(%column, %row) : (!cute.int_tuple<"?">, !cute.int_tuple<"?">) -> !cute.coord<"(?,?)">
    cute.memref.store(%memory, %to, %x) : (!rows, !cute.coord<"(?,?)">, f32) -> ()
  }
  return
}

// The pointer may lie at any multiple of 4 bytes.
// CHECK-LABEL: func.func @unaligned
// CHECK:         scf.for
// REMARK: missed: copy loop, 8 elements of 4 bytes: in gmem the first is only known to be aligned to 4
func.func @unaligned(%registers: !flat, %memory: !half) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  scf.for %i = %c0 to %c8 step %c1 : i32 {
    %at = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
    %x = cute.memref.load(%registers, %at) : (!flat, !cute.coord<"?">) -> f32
    cute.memref.store(%memory, %at, %x) : (!half, !cute.coord<"?">, f32) -> ()
  }
  return
}

// CHECK-LABEL: func.func @unknown_count
// CHECK:         scf.for
// REMARK: missed: copy loop: the number of elements is not a constant
func.func @unknown_count(%registers: !flat, %memory: !line, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %at = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
    %x = cute.memref.load(%registers, %at) : (!flat, !cute.coord<"?">) -> f32
    cute.memref.store(%memory, %at, %x) : (!line, !cute.coord<"?">, f32) -> ()
  }
  return
}

// It computes: no copy loop, and nothing is said.
// CHECK-LABEL: func.func @scaled
// CHECK:         scf.for
// REMARK-NOT: copy loop
func.func @scaled(%registers: !flat, %memory: !line, %factor: f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  scf.for %i = %c0 to %c8 step %c1 : i32 {
    %at = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
    %x = cute.memref.load(%registers, %at) : (!flat, !cute.coord<"?">) -> f32
    %y = arith.mulf %x, %factor : f32
    cute.memref.store(%memory, %at, %y) : (!line, !cute.coord<"?">, f32) -> ()
  }
  return
}
