// RUN: not tilepass check %s --shapes 64,k=3 2>&1 | %filecheck %s --check-prefix=NAME
// RUN: not tilepass check %s --shapes 64,n=x 2>&1 | %filecheck %s --check-prefix=ENTRY
// RUN: not tilepass check %s --shapes n=4x4 2>&1 | %filecheck %s --check-prefix=NUMBER
// RUN: not tilepass check %s --no-protocol --shapes n=8 2>&1 | %filecheck %s --check-prefix=MULTIPLE
// RUN: not tilepass check %s --grid 1,2,3,4 2>&1 | %filecheck %s --check-prefix=GRID
// RUN: not tilepass check %s --seeds 0 2>&1 | %filecheck %s --check-prefix=SEEDS
// RUN: not tilepass check %s --tolerance=-1 2>&1 | %filecheck %s --check-prefix=TOLERANCE
// RUN: not tilepass check %s --shapes out=1000000000 2>&1 | %filecheck %s --check-prefix=LARGE
// RUN: not tilepass check %s --shapes=-5,n=-3 2>&1 | %filecheck %s --check-prefix=NEGATIVE
// RUN: not tilepass check %s --kernel other 2>&1 | %filecheck %s --check-prefix=KERNEL
// RUN: not tilepass check %t.missing 2>&1 | %filecheck %s --check-prefix=MISSING

// NAME:     error: the kernel has no parameter 'k'{{.*}}(parameters: out, n)
// ENTRY:    error: shapes '64,n=x': 'n=x' is neither SIZE, NAME=NUMBER nor NAME=128x64
// NUMBER:   error: parameter n is a number, not an array
// MULTIPLE: error: parameter n: the kernel was compiled for multiples of 16, not for 8
// GRID:     error: --grid '1,2,3,4': expected X[,Y[,Z]], each at least 1
// SEEDS:    error: argument --seeds: '0' is not a positive number
// TOLERANCE: error: argument --tolerance: '-1' is not a number from 0 on
// LARGE:    error: parameter out: an array of 1000000000 elements cannot be made, at most 134217728
// NEGATIVE: error: shapes '-5,n=-3': the size -5 is below 0
// KERNEL:   error: the module holds no function 'other'
// MISSING:  error: {{.*}}missing: No such file or directory
tt.func @kernel(%out: !tt.ptr<i32> loc("out"), %n: i32 {tt.divisibility = 16 : i32} loc("n")) {
  tt.store %out, %n : !tt.ptr<i32>
  tt.return
}
