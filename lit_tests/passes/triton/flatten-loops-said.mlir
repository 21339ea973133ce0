// REQUIRES: triton-3.6
// RUN: tilepass-opt %s --split-input-file --target cuda:90 -p flatten-loops -Rpass=. -Rpass-missed=. 2>&1 | %filecheck %s
// RUN: tilepass-opt %s --split-input-file --target cuda:90 -p flatten-loops | %filecheck %s --check-prefix=IR
// RUN: not tilepass-opt %s --split-input-file --target cuda:90 -p 'flatten-loops{mode=on}' -Rpass=. 2>&1 | %filecheck %s --check-prefix=ON

// The fused loop would not have what the author said of the dot loop.
// CHECK: missed: unchanged: flatten = off (source: not on: disable_licm of the dot loop would be lost; say mode=on or mode=off) from {{.*}}dot_loop.disable_licm=True
// ON:    passed: flatten = on {{.*}}; lost: disable_licm of the dot loop
// IR-LABEL: tt.func @said
// IR-NOT:     tt.flatten
tt.func @said(%a: !tt.tensordesc<tensor<128x64xbf16>>, %b: !tt.tensordesc<tensor<64x256xbf16>>, %c: !tt.tensordesc<tensor<128x256xbf16>>, %tiles: i32, %steps: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x256xf32>
  %pid = tt.get_program_id x : i32
  scf.for %tile = %pid to %tiles step %c1 : i32 {
    %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<128x256xf32>) : i32 {
      %x = tt.descriptor_load %a[%tile, %k] : !tt.tensordesc<tensor<128x64xbf16>> -> tensor<128x64xbf16>
      %y = tt.descriptor_load %b[%k, %tile] : !tt.tensordesc<tensor<64x256xbf16>> -> tensor<64x256xbf16>
      %next = tt.dot %x, %y, %acc : tensor<128x64xbf16> * tensor<64x256xbf16> -> tensor<128x256xf32>
      scf.yield %next : tensor<128x256xf32>
    } {llvm.loop_annotation = #llvm.loop_annotation<licm = <disable = true>>}
    %e = arith.truncf %d : tensor<128x256xf32> to tensor<128x256xbf16>
    tt.descriptor_store %c[%tile, %tile], %e : !tt.tensordesc<tensor<128x256xbf16>>, tensor<128x256xbf16>
  }
  tt.return
}

// -----

// Nothing speaks against this one, and no compiler is at hand to try it.
// CHECK: passed: flatten = on (cost-model: {{.*}}; no trial) from {{.*}}dot_loop.num_stages=3, fused_shared_bytes=212992
// ON:    passed: flatten = on (forced
// IR-LABEL: tt.func @fits
// IR:         } {tt.flatten}
tt.func @fits(%a: !tt.tensordesc<tensor<128x64xbf16>>, %b: !tt.tensordesc<tensor<64x256xbf16>>, %c: !tt.tensordesc<tensor<128x256xbf16>>, %tiles: i32, %steps: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x256xf32>
  %pid = tt.get_program_id x : i32
  scf.for %tile = %pid to %tiles step %c1 : i32 {
    %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<128x256xf32>) : i32 {
      %x = tt.descriptor_load %a[%tile, %k] : !tt.tensordesc<tensor<128x64xbf16>> -> tensor<128x64xbf16>
      %y = tt.descriptor_load %b[%k, %tile] : !tt.tensordesc<tensor<64x256xbf16>> -> tensor<64x256xbf16>
      %next = tt.dot %x, %y, %acc : tensor<128x64xbf16> * tensor<64x256xbf16> -> tensor<128x256xf32>
      scf.yield %next : tensor<128x256xf32>
    } {tt.num_stages = 3 : i32}
    %e = arith.truncf %d : tensor<128x256xf32> to tensor<128x256xbf16>
    tt.descriptor_store %c[%tile, %tile], %e : !tt.tensordesc<tensor<128x256xbf16>>, tensor<128x256xbf16>
  }
  tt.return
}

// -----

// A residual tile on top: 3 stages, C's tile and the residual's are in use at once.
// CHECK: missed: unchanged: flatten = off (source: not on: the fused loop takes at least 278528 bytes of shared memory of 232448)
// ON:    error: mode=on, but this loop cannot be flattened: the fused loop takes at least 278528 bytes of shared memory of 232448
// IR-LABEL: tt.func @residual
// IR-NOT:     tt.flatten
tt.func @residual(%a: !tt.tensordesc<tensor<128x64xbf16>>, %b: !tt.tensordesc<tensor<64x256xbf16>>, %c: !tt.tensordesc<tensor<128x256xbf16>>, %r: !tt.tensordesc<tensor<128x256xbf16>>, %tiles: i32, %steps: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x256xf32>
  %pid = tt.get_program_id x : i32
  scf.for %tile = %pid to %tiles step %c1 : i32 {
    %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<128x256xf32>) : i32 {
      %x = tt.descriptor_load %a[%tile, %k] : !tt.tensordesc<tensor<128x64xbf16>> -> tensor<128x64xbf16>
      %y = tt.descriptor_load %b[%k, %tile] : !tt.tensordesc<tensor<64x256xbf16>> -> tensor<64x256xbf16>
      %next = tt.dot %x, %y, %acc : tensor<128x64xbf16> * tensor<64x256xbf16> -> tensor<128x256xf32>
      scf.yield %next : tensor<128x256xf32>
    } {tt.num_stages = 3 : i32}
    %e = arith.truncf %d : tensor<128x256xf32> to tensor<128x256xbf16>
    %f = tt.descriptor_load %r[%tile, %tile] : !tt.tensordesc<tensor<128x256xbf16>> -> tensor<128x256xbf16>
    %g = arith.addf %e, %f : tensor<128x256xbf16>
    tt.descriptor_store %c[%tile, %tile], %g : !tt.tensordesc<tensor<128x256xbf16>>, tensor<128x256xbf16>
  }
  tt.return
}
