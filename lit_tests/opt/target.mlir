// RUN: tilepass-opt %s --load %test_passes -p test-remarks -Rpass-analysis=. 2>&1 | %filecheck %s --check-prefix=MODULE
// RUN: tilepass-opt %s --load %test_passes -p test-remarks -Rpass-analysis=. --target hip:gfx1100 2>&1 | %filecheck %s --check-prefix=FLAG
// RUN: not tilepass-opt %s --target sm_90 2>&1 | %filecheck %s --check-prefix=WRONG
// RUN: not tilepass-opt %s --target cuda:gfx942 2>&1 | %filecheck %s --check-prefix=WRONG
// RUN: not tilepass-opt %s --target hip:90 2>&1 | %filecheck %s --check-prefix=WRONG

// A pass learns the target that the module names, unless the command line says another.
// MODULE: analysis: target is cuda:100
// FLAG:   analysis: target is hip:gfx1100
// WRONG:  error: --target {{.+}}: expected cuda:NUMBER (cuda:90) or hip:gfxNAME (hip:gfx942)
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:100"} {
  tt.func @f(%x: i32) -> i32 {
    %0 = arith.addi %x, %x : i32
    tt.return %0 : i32
  }
}
