// RUN: rm -rf %t && mkdir %t && cd %t
// RUN: tilepass-opt %s -canonicalize | %filecheck %s
// RUN: tilepass-opt %s -print-ir | %filecheck %s
// RUN: tilepass-opt %s -cse -o=out.mlir && %filecheck %s < out.mlir && rm out.mlir
// RUN: not tilepass-opt %s -print-irr=x 2>&1 | %filecheck %s --check-prefix=NEAREST
// RUN: not tilepass-opt %s -prepare-it 2>&1 | %filecheck %s --check-prefix=PASS
// RUN: not tilepass-opt %s -oout.mlir 2>&1 | %filecheck %s --check-prefix=OUTPUT
// RUN: not tilepass-opt %s -hoist 2>&1 | %filecheck %s --check-prefix=HELP
// RUN: not tilepass dump-ir %s -only-changed 2>&1 | %filecheck %s --check-prefix=DUMP
// RUN: not tilepass explain %s -pipeline cse 2>&1 | %filecheck %s --check-prefix=EXPLAIN
// Nothing was written under a part of a flag's name.
// RUN: %python -c "import os; assert not os.listdir(), os.listdir()"

// CHECK:   tt.func @f
// NEAREST: error: unknown flag or pass '--print-irr'; did you mean 'print-ir'
// PASS:    error: unknown flag or pass '--prepare-it'{{.*}} (--list-passes lists all passes; the value of -p follows after a blank)
// OUTPUT:  error: unknown flag or pass '--oout.mlir'{{.*}} (--list-passes lists all passes; the value of -o follows after a blank)
// HELP:    error: unknown flag or pass '--hoist'
// DUMP:    error: '-only-changed' has two dashes: --only-changed
// EXPLAIN: error: '-pipeline' has two dashes: --pipeline
tt.func @f() { tt.return }
