// RUN: rm -rf %t && mkdir %t
// RUN: tilepass-opt %s -o %t/out.mlir > %t/stdout
// RUN: %filecheck %s < %t/out.mlir
// RUN: %python -c "import sys; sys.exit(open(sys.argv[1]).read() != '')" %t/stdout
// RUN: not tilepass-opt %s -o %t 2>&1 | %filecheck %s --check-prefix=FOLDER
// RUN: not tilepass-opt %s -o %t/none/out.mlir 2>&1 | %filecheck %s --check-prefix=NONE

// CHECK:  tt.func @f
// FOLDER: error: -o {{.*}}output-file.mlir.tmp: Is a directory
// NONE:   error: -o {{.*}}out.mlir: No such file or directory
tt.func @f() { tt.return }
