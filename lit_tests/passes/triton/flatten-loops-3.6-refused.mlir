// REQUIRES: triton-3.6
// RUN: tilepass-opt %s --split-input-file --verify-diagnostics --target cuda:90 -p flatten-loops

// Fusing turns these into invalid IR on Triton 3.6.
tt.func @carried_twice(%a: tensor<128x64x!tt.ptr<bf16>>, %b: tensor<64x128x!tt.ptr<bf16>>, %c: tensor<128x128x!tt.ptr<f32>>, %tiles: i32, %steps: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %pid = tt.get_program_id x : i32
  // expected-remark@+1 {{removed tt.flatten: two carried values get one result of the epilogue, which triton 3.6.0 turns into invalid IR (#11620)}}
  %r:2 = scf.for %tile = %pid to %tiles step %c1 iter_args(%u = %c0, %v = %c0) -> (i32, i32) : i32 {
    %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %x = tt.load %a : tensor<128x64x!tt.ptr<bf16>>
      %y = tt.load %b : tensor<64x128x!tt.ptr<bf16>>
      %next = tt.dot %x, %y, %acc : tensor<128x64xbf16> * tensor<64x128xbf16> -> tensor<128x128xf32>
      scf.yield %next : tensor<128x128xf32>
    }
    tt.store %c, %d : tensor<128x128x!tt.ptr<f32>>
    %e = arith.addi %u, %tile : i32
    scf.yield %e, %e : i32, i32
  } {tt.flatten}
  tt.return
}

// -----

tt.func @ends_with_a_condition(%a: tensor<128x64x!tt.ptr<bf16>>, %b: tensor<64x128x!tt.ptr<bf16>>, %c: tensor<128x128x!tt.ptr<f32>>, %tiles: i32, %steps: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %pid = tt.get_program_id x : i32
  // expected-remark@+1 {{removed tt.flatten: the tile ends with scf.if, which triton 3.6.0 turns into invalid IR}}
  scf.for %tile = %pid to %tiles step %c1 : i32 {
    %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %x = tt.load %a : tensor<128x64x!tt.ptr<bf16>>
      %y = tt.load %b : tensor<64x128x!tt.ptr<bf16>>
      %next = tt.dot %x, %y, %acc : tensor<128x64xbf16> * tensor<64x128xbf16> -> tensor<128x128xf32>
      scf.yield %next : tensor<128x128xf32>
    }
    %o = arith.negf %d : tensor<128x128xf32>
    %even = arith.cmpi slt, %tile, %steps : i32
    scf.if %even {
      tt.store %c, %o : tensor<128x128x!tt.ptr<f32>>
    }
  } {tt.flatten}
  tt.return
}
