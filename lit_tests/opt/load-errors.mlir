// RUN: not tilepass-opt %s --load %t.none.py 2>&1 | %filecheck %s --check-prefix=MISSING
// RUN: not tilepass-opt %s --load %s 2>&1 | %filecheck %s --check-prefix=KIND
// RUN: echo "x = 1" > %t.empty.py
// RUN: not tilepass-opt %s --load %t.empty.py 2>&1 | %filecheck %s --check-prefix=NOTHING
// RUN: echo "1 / 0" > %t.raises.py
// RUN: not tilepass-opt %s --load %t.raises.py 2>&1 | %filecheck %s --check-prefix=RAISES

// MISSING: error: --load {{.+}}.none.py: no such file
// KIND:    error: --load {{.+}}load-errors.mlir: not a Python file
// NOTHING: error: --load {{.+}}.empty.py: the file registers no pass (use @register)
// RAISES:  error: --load {{.+}}.raises.py: ZeroDivisionError: division by zero
tt.func @f() { tt.return }
