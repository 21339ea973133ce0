// REQUIRES: triton-3.8+
// RUN: not tilepass-opt %s 2>&1 | %filecheck %s

// CHECK: tensordesc-wrapped.mlir:7:{{[0-9]+}}: error:
// CHECK: the text spells tensor descriptors as !tt.tensordesc<tensor<128x64xbf16>> (Triton 3.6 and 3.7); the installed Triton 3.{{[89].*}} wants !tt.tensordesc<128x64xbf16> (Triton 3.8 and 3.9)

tt.func @f(%d: !tt.tensordesc<tensor<16x16xf16>>) { tt.return }
