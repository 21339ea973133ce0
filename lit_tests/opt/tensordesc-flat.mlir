// UNSUPPORTED: triton-3.8+
// RUN: not tilepass-opt %s 2>&1 | %filecheck %s

// CHECK: tensordesc-flat.mlir:7:{{[0-9]+}}: error:
// CHECK: the text spells tensor descriptors as !tt.tensordesc<128x64xbf16> (Triton 3.8 and 3.9); the installed Triton 3.{{[67].*}} wants !tt.tensordesc<tensor<128x64xbf16>> (Triton 3.6 and 3.7)

tt.func @f(%d: !tt.tensordesc<16x16xf16>) { tt.return }
