// RUN: rm -rf %t && mkdir %t
// RUN: tilepass-opt %s -o %t/out.mlir > %t/stdout
// RUN: %filecheck %s < %t/out.mlir
// RUN: %python -c "import sys; sys.exit(open(sys.argv[1]).read() != '')" %t/stdout
// RUN: not tilepass-opt %s -o %t 2>&1 | %filecheck %s --check-prefix=FOLDER
// RUN: tilepass-opt %s -o %t/new/folder/out.mlir && %filecheck %s < %t/new/folder/out.mlir
// RUN: not tilepass-opt %s -o %t/out.mlir/out.mlir 2>&1 | %filecheck %s --check-prefix=NOFOLDER

// CHECK:  tt.func @f
// FOLDER: error: -o {{.*}}output-file.mlir.tmp: Is a directory
// NOFOLDER: error: -o {{.*}}out.mlir/out.mlir: {{(File exists|Not a directory)}}
tt.func @f() { tt.return }
