// RUN: tilepass-opt %s --target cuda:90 -p 'flatten-loops{mode=on}' | %filecheck %s --check-prefixes=CHECK,ON
// RUN: tilepass-opt %s --target cuda:90 -p 'flatten-loops{mode=off}' | %filecheck %s --check-prefixes=CHECK,OFF
// RUN: tilepass-opt %s --target cuda:90 -p 'flatten-loops' | %filecheck %s --check-prefixes=CHECK,AUTO
// RUN: tilepass-opt %s --target cuda:100 -p 'flatten-loops' | %filecheck %s --check-prefixes=CHECK,KEEP
// RUN: tilepass-opt %s --target cuda:90 -p 'flatten-loops{mode=off}' -Rpass=. 2>&1 >/dev/null | %filecheck %s --check-prefix=OFF-REMARK
// RUN: tilepass-opt %s --target cuda:90 -p 'flatten-loops' -Rpass=. 2>&1 >/dev/null | %filecheck %s --check-prefix=AUTO-REMARK

// Both operands in shared memory and a large epilogue: flattening pays on Hopper.
// CHECK-LABEL: tt.func @shared
// CHECK:         scf.for
// CHECK:           scf.for
// ON:            } {tt.flatten}
// OFF-NOT:       tt.flatten
// AUTO:          } {tt.flatten}
// KEEP-NOT:      tt.flatten
// AUTO-REMARK:   flatten-loops.mlir:[[#]]:3: remark: [flatten-loops] passed: flatten = on (cost-model: {{.*}}dot=shared, tile_m=128, tile_n=128, tile_k=64, epilogue_bytes=65536
tt.func @shared(%a: tensor<128x64x!tt.ptr<bf16>>, %b: tensor<64x128x!tt.ptr<bf16>>, %c: tensor<128x128x!tt.ptr<f32>>, %tiles: i32, %steps: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %known = arith.cmpi sgt, %steps, %c0 : i32
  llvm.intr.assume %known : i1
  %pid = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  scf.for %tile = %pid to %tiles step %programs : i32 {
    %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %x = tt.load %a : tensor<128x64x!tt.ptr<bf16>>
      %y = tt.load %b : tensor<64x128x!tt.ptr<bf16>>
      %next = tt.dot %x, %y, %acc : tensor<128x64xbf16> * tensor<64x128xbf16> -> tensor<128x128xf32>
      scf.yield %next : tensor<128x128xf32>
    }
    tt.store %c, %d : tensor<128x128x!tt.ptr<f32>>
  }
  tt.return
}

// A is computed, so that it goes through registers: flattening costs.
// CHECK-LABEL: tt.func @register_a
// CHECK:         scf.for
// CHECK:           scf.for
// ON:            } {tt.flatten}
// OFF-NOT:       tt.flatten
// AUTO-NOT:      tt.flatten
// KEEP:          } {tt.flatten}
// OFF-REMARK:    remark: [flatten-loops] passed: flatten = off (forced: asked for by the user)
// AUTO-REMARK:   remark: [flatten-loops] passed: flatten = off (cost-model: {{.*}}dot=register-a
tt.func @register_a(%a: tensor<128x64x!tt.ptr<i8>>, %b: tensor<64x128x!tt.ptr<bf16>>, %c: tensor<128x128x!tt.ptr<f32>>, %tiles: i32, %steps: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %known = arith.cmpi sgt, %steps, %c0 : i32
  llvm.intr.assume %known : i1
  %pid = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  scf.for %tile = %pid to %tiles step %programs : i32 {
    %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %q = tt.load %a : tensor<128x64x!tt.ptr<i8>>
      %x = arith.sitofp %q : tensor<128x64xi8> to tensor<128x64xbf16>
      %y = tt.load %b : tensor<64x128x!tt.ptr<bf16>>
      %next = tt.dot %x, %y, %acc : tensor<128x64xbf16> * tensor<64x128xbf16> -> tensor<128x128xf32>
      scf.yield %next : tensor<128x128xf32>
    }
    tt.store %c, %d : tensor<128x128x!tt.ptr<f32>>
  } {tt.flatten}
  tt.return
}

// No loop of interest: left alone without a word.
// CHECK-LABEL: tt.func @no_dot
// CHECK-NOT:     tt.flatten
tt.func @no_dot(%p: !tt.ptr<i32>, %tiles: i32, %steps: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %pid = tt.get_program_id x : i32
  scf.for %tile = %pid to %tiles step %c1 : i32 {
    scf.for %k = %c0 to %steps step %c1 : i32 {
      tt.store %p, %k : !tt.ptr<i32>
    }
  }
  tt.return
}
