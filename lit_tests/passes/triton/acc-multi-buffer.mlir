// RUN: tilepass-opt %s --target cuda:100 -p 'acc-multi-buffer{mode=disallow}' | %filecheck %s --check-prefixes=CHECK,DISALLOW
// RUN: tilepass-opt %s --target cuda:100 -p 'acc-multi-buffer{mode=allow}' | %filecheck %s --check-prefixes=CHECK,ALLOW
// RUN: tilepass-opt %s --target cuda:100 -p 'acc-multi-buffer' -Rpass=. 2>&1 | %filecheck %s --check-prefixes=CHECK,AUTO
// RUN: tilepass-opt %s --target cuda:90 -p 'acc-multi-buffer' 2>&1 | %filecheck %s --check-prefixes=CHECK,HOPPER
// RUN: not tilepass-opt %s --target cuda:90 -p 'acc-multi-buffer{mode=allow}' 2>&1 | %filecheck %s --check-prefix=ERROR
// RUN: not tilepass-opt %s --target cuda:100 -p 'acc-multi-buffer{mode=no}' 2>&1 | %filecheck %s --check-prefix=OPTION

// ERROR:  acc-multi-buffer.mlir:[[#]]:{{.*}}: error: mode=allow has no effect on this loop: cuda:90 keeps accumulators in registers
// OPTION: error: pass 'acc-multi-buffer', option 'mode': 'no' is not one of auto, allow, disallow
// AUTO:   remark: [acc-multi-buffer] passed: acc-multi-buffer = allow (cost-model: two accumulators fit into tensor memory) from columns=128
// AUTO:   remark: [acc-multi-buffer] passed: acc-multi-buffer = disallow (cost-model: two accumulators do not fit into 512 columns of tensor memory) from columns=512
// HOPPER: remark: [acc-multi-buffer] missed: cuda:90 keeps accumulators in registers

// 128 of 512 columns.
// CHECK-LABEL:   tt.func @fits
// CHECK:           scf.for
// CHECK:             scf.for
// DISALLOW:          } {tt.disallow_acc_multi_buffer}
// ALLOW-NOT:         tt.disallow_acc_multi_buffer
// AUTO-NOT:          tt.disallow_acc_multi_buffer
// HOPPER:          } {tt.disallow_acc_multi_buffer}
tt.func @fits(%x: tensor<128x64xbf16>, %y: tensor<64x128xbf16>, %c: tensor<128x128x!tt.ptr<f32>>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  scf.for %tile = %c0 to %n step %c1 : i32 {
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %next = tt.dot %x, %y, %acc : tensor<128x64xbf16> * tensor<64x128xbf16> -> tensor<128x128xf32>
      scf.yield %next : tensor<128x128xf32>
    }
    tt.store %c, %d : tensor<128x128x!tt.ptr<f32>>
  } {tt.disallow_acc_multi_buffer}
  tt.return
}

// 256 x 256: 512 columns, two do not fit. Every loop around the dot says so.
// CHECK-LABEL:   tt.func @does_not_fit
// CHECK:           scf.for
// CHECK:             scf.for
// DISALLOW:          } {tt.disallow_acc_multi_buffer}
// DISALLOW:        } {tt.disallow_acc_multi_buffer}
// ALLOW-NOT:         tt.disallow_acc_multi_buffer
// AUTO:              } {tt.disallow_acc_multi_buffer}
// AUTO:            } {tt.disallow_acc_multi_buffer}
// HOPPER-NOT:      tt.disallow_acc_multi_buffer
tt.func @does_not_fit(%x: tensor<256x64xbf16>, %y: tensor<64x256xbf16>, %c: tensor<256x256x!tt.ptr<f32>>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<256x256xf32>
  scf.for %tile = %c0 to %n step %c1 : i32 {
    %d = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<256x256xf32>) : i32 {
      %next = tt.dot %x, %y, %acc : tensor<256x64xbf16> * tensor<64x256xbf16> -> tensor<256x256xf32>
      scf.yield %next : tensor<256x256xf32>
    }
    tt.store %c, %d : tensor<256x256x!tt.ptr<f32>>
  }
  tt.return
}

// A dot in no loop has no second accumulator.
// CHECK-LABEL:   tt.func @no_loop
// CHECK-NOT:       tt.disallow_acc_multi_buffer
tt.func @no_loop(%x: tensor<128x64xbf16>, %y: tensor<64x128xbf16>, %c: tensor<128x128x!tt.ptr<f32>>) {
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %d = tt.dot %x, %y, %zero : tensor<128x64xbf16> * tensor<64x128xbf16> -> tensor<128x128xf32>
  tt.store %c, %d : tensor<128x128x!tt.ptr<f32>>
  tt.return
}
