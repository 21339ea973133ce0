// RUN: not tilepass check %s --no-protocol --shapes 8,in=8 --grid 2 2>&1 | %filecheck %s

// CHECK:      bounds.mlir:11:8: error: tt.load: reads element 8 of in, which holds 8 of type f32
// CHECK-NEXT: note: in program (1, 0, 0) of grid (2, 1, 1)
// CHECK-NEXT: note: with shapes 8,in=8, seed 0, grid 2
tt.func @reads_past_the_end(%in: !tt.ptr<f32> loc("in"), %out: !tt.ptr<f32> loc("out")) {
  %pid = tt.get_program_id x : i32
  %c8 = arith.constant 8 : i32
  %first = arith.muli %pid, %c8 : i32
  %p = tt.addptr %in, %first : !tt.ptr<f32>, i32
  %x = tt.load %p : !tt.ptr<f32>
  tt.store %out, %x : !tt.ptr<f32>
  tt.return
}
