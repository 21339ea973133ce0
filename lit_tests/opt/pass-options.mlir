// RUN: tilepass-opt %s -p 'convert-triton-to-tritongpu{target=cuda:80 num-warps=8}' | %filecheck %s --check-prefix=W8
// RUN: tilepass-opt %s -p 'convert-triton-to-tritongpu{target=cuda:80,num-warps=2}' | %filecheck %s --check-prefix=W2
// RUN: tilepass-opt %s -convert-triton-to-tritongpu='target=cuda:80 num-warps=2' | %filecheck %s --check-prefix=W2
// RUN: tilepass-opt %s -p 'convert-triton-to-tritongpu' --target cuda:90 | %filecheck %s --check-prefix=CUDA
// RUN: tilepass-opt %s -p 'convert-triton-to-tritongpu' --target hip:gfx942 | %filecheck %s --check-prefix=HIP
// RUN: not tilepass-opt %s -p 'convert-triton-to-tritongpu' 2>&1 | %filecheck %s --check-prefix=NONE

// W8:   "ttg.num-warps" = 8 : i32, ttg.target = "cuda:80"
// W2:   "ttg.num-warps" = 2 : i32, ttg.target = "cuda:80"
// CUDA: ttg.target = "cuda:90", "ttg.threads-per-warp" = 32
// HIP:  ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64
// NONE: error: pass 'convert-triton-to-tritongpu' needs its option 'target', or a target to take it from (--target cuda:90)
tt.func @f() {
  tt.return
}
