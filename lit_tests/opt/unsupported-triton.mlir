// RUN: rm -rf %t && mkdir -p %t/triton
// RUN: echo "__version__ = '3.5.1'" > %t/triton/__init__.py
// RUN: not env PYTHONPATH=%t tilepass-opt %s -p cse 2>&1 | %filecheck %s

// CHECK:     error: Triton 3.5.1 is not supported (tilepass needs triton >= 3.6, < 3.10)
// CHECK-NOT: Traceback
tt.func @f() { tt.return }
