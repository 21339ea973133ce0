// RUN: tilepass-opt %s --split-input-file --verify-diagnostics --target cuda:90 -p 'flatten-loops{mode=on}'
// RUN: not tilepass-opt %s --split-input-file --target cuda:75 -p 'flatten-loops{mode=on}' 2>&1 | %filecheck %s --check-prefix=TARGET
// RUN: not tilepass-opt %s --target cuda:90 -p 'flatten-loops{mode=maybe}' 2>&1 | %filecheck %s --check-prefix=OPTION

// A forced decision that cannot be carried out is an error.
// TARGET: flatten-loops-errors.mlir:[[#]]:3: error: mode=on, but this loop cannot be flattened: Triton fuses no loops for cuda:75
// OPTION: error: pass 'flatten-loops', option 'mode': 'maybe' is not one of auto, on, off
tt.func @bound_from_memory(%a: tensor<128x64x!tt.ptr<bf16>>, %b: tensor<64x128x!tt.ptr<bf16>>, %c: tensor<128x128x!tt.ptr<f32>>, %tiles: i32, %steps: i32, %p: !tt.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %pid = tt.get_program_id x : i32
  // expected-error@+1 {{mode=on, but this loop cannot be flattened: the inner loop's bound is read from memory in the tile loop}}
  scf.for %tile = %pid to %tiles step %c1 : i32 {
    %n = tt.load %p : !tt.ptr<i32>
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %x = tt.load %a : tensor<128x64x!tt.ptr<bf16>>
      %y = tt.load %b : tensor<64x128x!tt.ptr<bf16>>
      %next = tt.dot %x, %y, %acc : tensor<128x64xbf16> * tensor<64x128xbf16> -> tensor<128x128xf32>
      scf.yield %next : tensor<128x128xf32>
    }
    tt.store %c, %d : tensor<128x128x!tt.ptr<f32>>
  }
  tt.return
}

// -----

// A nest that runs once per program: what the author of its huge step wants is not what `on` wants.
tt.func @runs_once(%a: tensor<128x64x!tt.ptr<bf16>>, %b: tensor<64x128x!tt.ptr<bf16>>, %c: tensor<128x128x!tt.ptr<f32>>, %tiles: i32, %steps: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %huge = arith.constant 1073741824 : i32
  %pid = tt.get_program_id x : i32
  // expected-error@+1 {{mode=on, but this loop cannot be flattened: the outer loop runs at most once}}
  scf.for %tile = %pid to %tiles step %huge : i32 {
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

// -----

// A dot loop alone is not a nest: there is nothing that `on` could mean, which is said.
tt.func @no_nest(%a: tensor<128x64x!tt.ptr<bf16>>, %b: tensor<64x128x!tt.ptr<bf16>>, %c: tensor<128x128x!tt.ptr<f32>>, %steps: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  // expected-remark@+1 {{not flattened: the loop has no inner loop to flatten}}
  %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
    %x = tt.load %a : tensor<128x64x!tt.ptr<bf16>>
    %y = tt.load %b : tensor<64x128x!tt.ptr<bf16>>
    %next = tt.dot %x, %y, %acc : tensor<128x64xbf16> * tensor<64x128xbf16> -> tensor<128x128xf32>
    scf.yield %next : tensor<128x128xf32>
  }
  tt.store %c, %d : tensor<128x128x!tt.ptr<f32>>
  tt.return
}
