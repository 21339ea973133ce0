# RUN: tilepass explain %s -p flatten-loops -- --tile 32 2> %t.err | %filecheck %s
# RUN: %filecheck %s --check-prefix=OUTPUT < %t.err
# RUN: not tilepass explain %s -p flatten-loops -- --tile 0 2>&1 | %filecheck %s --check-prefix=FAIL
# RUN: not tilepass explain %s -p flatten-loops -- --tile x > %t.out 2> %t.err
# RUN: %filecheck %s --check-prefix=RAISES < %t.err
# RUN: rm -rf %t && mkdir %t && cp %s %t/program.py && cp %S/Inputs/beside_explain.py %t
# RUN: sed -i 's/^import triton$/import beside_explain, triton/' %t/program.py
# RUN: tilepass explain %t/program.py -p flatten-loops -- --tile 32 > %t.out 2>&1
# RUN: %filecheck %s --check-prefix=BESIDE < %t.out

# CHECK:  explain-program.py:{{[0-9]+:[0-9]+}}: flatten =
# CHECK:  tile_k = 32
# OUTPUT: compiled for tile 32
# RAISES: error: {{.*}}explain-program.py raised ValueError: invalid literal for int(){{.+}}'x'
# RAISES-SAME: ({{.*}}explain-program.py:{{[0-9]+}}, in main)
# BESIDE: imported what lies beside the program
# BESIDE: flatten =
# FAIL:   error: {{.*}}explain-program.py exited with 3
"""A program of a user's: compiles a persistent matmul with a tile from the command line."""

import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def matmul(a, b, c, tiles, steps, T: tl.constexpr):
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        accumulator = tl.zeros((T, T), dtype=tl.float32)
        for step in range(0, steps):
            x = a.load([tile * T, step * T])
            y = b.load([step * T, tile * T])
            accumulator = tl.dot(x, y, accumulator)
        c.store([tile * T, 0], accumulator.to(tl.float16))


def main() -> int:
    tile = int(sys.argv[sys.argv.index("--tile") + 1])
    if tile < 16:
        return 3
    descriptor = f"tensordesc<fp16[{tile},{tile}]>"
    signature = {"a": descriptor, "b": descriptor, "c": descriptor}
    signature |= {"tiles": "i32", "steps": "i32", "T": "constexpr"}
    source = ASTSource(matmul, signature, constexprs={"T": tile})
    triton.compile(source, target=GPUTarget("cuda", 90, 32))
    print("compiled for tile", tile)
    return 0


if __name__ == "__main__":
    sys.exit(main())
