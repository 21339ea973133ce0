// RUN: not tilepass-opt 2>&1 | %filecheck %s --check-prefix=NOTHING
// RUN: not tilepass-opt %s %s 2>&1 | %filecheck %s --check-prefix=TWO
// RUN: not tilepass-opt %s -p cse --canonicalize 2>&1 | %filecheck %s --check-prefix=BOTH
// RUN: not tilepass-opt %s --emit ugly 2>&1 | %filecheck %s --check-prefix=EMIT

// NOTHING: usage: tilepass-opt FILE|- [-p PIPELINE] [options]
// NOTHING: error: a FILE is missing (use - for standard input)
// TWO:     error: unexpected argument '{{.+}}usage-errors.mlir'
// BOTH:    error: give the passes either in -p or as flags, not in both
// EMIT:    error: argument --emit: invalid choice: 'ugly' (choose from
tt.func @f() { tt.return }
