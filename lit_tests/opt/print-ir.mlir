// RUN: tilepass-opt %s -p 'cse,canonicalize' --mlir-print-ir-after-all 2>&1 >/dev/null | %filecheck %s --check-prefixes=CSE,CANON
// RUN: tilepass-opt %s -p 'cse,canonicalize' -mlir-print-ir-after=canonicalize 2>&1 >/dev/null | %filecheck %s --check-prefix=ONE
// RUN: tilepass-opt %s -p 'cse,canonicalize' -mlir-print-ir-before=canonicalize 2>&1 >/dev/null | %filecheck %s --check-prefix=BEFORE
// RUN: tilepass-opt %s -p 'canonicalize,cse,canonicalize' --mlir-print-ir-after-change 2>&1 >/dev/null | %filecheck %s --check-prefix=CHANGE
// RUN: tilepass-opt %s --load %test_passes -p 'test-rename-attribute,cse' --mlir-print-ir-before-all 2>&1 >/dev/null | %filecheck %s --check-prefix=ALL
// RUN: tilepass-opt %s -p cse --emit generic --mlir-print-ir-after-all 2>&1 >/dev/null | %filecheck %s --check-prefix=GENERIC
// RUN: not tilepass-opt %s -p 'cse,canonicalize' --mlir-print-ir-after=sce 2>&1 | %filecheck %s --check-prefix=UNKNOWN

// CSE:          // -----// IR Dump After cse //----- //
// CSE:          tt.func @f
// CSE-COUNT-1:  arith.addi
// CANON:        // -----// IR Dump After canonicalize //----- //

// ONE-NOT:      cse
// ONE:          // -----// IR Dump After canonicalize //----- //
// ONE-NOT:      IR Dump

// BEFORE-NOT:   cse
// BEFORE:       // -----// IR Dump Before canonicalize //----- //
// BEFORE-NOT:   IR Dump

// CHANGE-NOT:   canonicalize
// CHANGE:       // -----// IR Dump After cse //----- //
// CHANGE-NOT:   canonicalize

// ALL:          // -----// IR Dump Before test-rename-attribute //----- //
// ALL:          {test.old
// ALL:          // -----// IR Dump Before cse //----- //
// ALL:          {test.new

// GENERIC:      "tt.func"

// UNKNOWN:      error: --mlir-print-ir-after=sce: the pipeline does not run it; did you mean 'cse'?
tt.func @f(%x: i32) -> i32 {
  %0 = arith.addi %x, %x {test.old} : i32
  %1 = arith.addi %x, %x {test.old} : i32
  %2 = arith.muli %0, %1 : i32
  tt.return %2 : i32
}
