// A version that is too old is told before the package is imported, which may fail.
// RUN: rm -rf %t && mkdir -p %t/old/cutlass
// RUN: echo "__version__ = '4.5.2'" > %t/old/cutlass/__init__.py
// RUN: echo "1 / 0" >> %t/old/cutlass/__init__.py
// Before what the .pth file of nvidia-cutlass-dsl puts in front.
// RUN: echo "import sys; sys.path.insert(0, '%t/old')" > %t/sitecustomize.py
// RUN: not env PYTHONPATH=%t tilepass-opt %s -p flatten-loops 2>&1 | %filecheck %s

// CHECK:     error: nvidia-cutlass-dsl 4.5.2 is not supported (tilepass needs nvidia-cutlass-dsl >= 4.6)
// CHECK-NOT: {{Traceback|ZeroDivisionError}}
tt.func @f() { tt.return }
