// RUN: tilepass-opt %s --target cuda:90 -p flatten-loops 2>&1 | %filecheck %s --check-prefix=HOPPER
// RUN: tilepass-opt %s --target cuda:90 -p 'flatten-loops{mode=on}' | %filecheck %s --check-prefix=ON

// sm_90 warp specializes only loops that are not flattened: auto leaves the author's choice alone.
// HOPPER:       remark: [flatten-loops] missed: not flattened: the loop asks for warp specialization
// HOPPER-LABEL: tt.func @specialized
// HOPPER:         } {tt.warp_specialize}
// ON:             } {tt.flatten, tt.warp_specialize}
module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func @specialized(%a: tensor<128x64x!tt.ptr<bf16>>, %b: tensor<64x128x!tt.ptr<bf16>>, %c: tensor<128x128x!tt.ptr<f32>>, %tiles: i32, %steps: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %pid = tt.get_program_id x : i32
    scf.for %tile = %pid to %tiles step %c1 : i32 {
      %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
        %x = tt.load %a : tensor<128x64x!tt.ptr<bf16>>
        %y = tt.load %b : tensor<64x128x!tt.ptr<bf16>>
        %next = tt.dot %x, %y, %acc : tensor<128x64xbf16> * tensor<64x128xbf16> -> tensor<128x128xf32>
        scf.yield %next : tensor<128x128xf32>
      }
      tt.store %c, %d : tensor<128x128x!tt.ptr<f32>>
    } {tt.warp_specialize}
    tt.return
  }
}
