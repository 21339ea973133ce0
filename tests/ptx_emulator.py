"""The few PTX instructions that the kernels' inline assembly uses, executed by numpy.

Lets Triton's interpreter run those kernels, and proves the assembly without a GPU. Semantics are
those of the PTX ISA; anything else raises NotImplementedError.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]


def lop3(a: Words, b: Words, c: Words, table: int) -> Words:
    """Bit by bit, bit 4a + 2b + c of `table`."""
    result = np.zeros_like(a)
    for row in range(8):
        if table >> row & 1:
            terms = [x if row >> n & 1 else ~x for x, n in ((a, 2), (b, 1), (c, 0))]
            result |= terms[0] & terms[1] & terms[2]
    return result


def prmt(a: Words, b: Words, selector: int) -> Words:
    """Byte n of the result is the byte of b:a that nibble n of `selector` names, 0 the lowest of a.
    The nibble's top bit, which repeats the sign, is not used here."""
    if selector & 0x8888:
        raise NotImplementedError(f"prmt selector {selector:#06x}")
    bytes_of = [source >> np.uint32(8 * n) & np.uint32(0xFF) for source in (a, b) for n in range(4)]
    result = np.zeros_like(a)
    for n in range(4):
        result |= bytes_of[selector >> 4 * n & 7] << np.uint32(8 * n)
    return result


def multiply_bf16x2(a: Words, b: Words) -> Words:
    """Both halves, round to nearest even, subnormals kept."""
    halves: list[Words] = []
    for shift in (0, 16):
        x, y = (bf16_value(v >> np.uint32(shift)) for v in (a, b))
        bits = (x * y).astype(ml_dtypes.bfloat16).view(np.uint16)
        halves.append(bits.astype(np.uint32) << np.uint32(shift))
    return halves[0] | halves[1]


def bf16_value(bits: Words) -> NDArray[np.float32]:
    """The low 16 bits as a bf16. A product of two is exact in fp32 where it does not underflow."""
    return (bits << np.uint32(16)).view(np.float32)


BINARY: dict[str, Callable[[Words, Words], Words]] = {
    "and.b32": lambda a, b: a & b,
    "shl.b32": lambda a, b: a << b,
    "shr.u32": lambda a, b: a >> b,
    "mul.rn.bf16x2": multiply_bf16x2,
}


def run_ptx(assembly: str, inputs: Sequence[Words], outputs: int) -> list[NDArray[Any]]:
    """The outputs $0..$outputs-1 of an inline assembly text, uint32 or uint16 as the instruction
    writes them; the inputs follow."""
    shape = np.broadcast_shapes(*(x.shape for x in inputs))
    registers: dict[str, Any] = {
        f"${outputs + n}": np.broadcast_to(x, shape).astype(np.uint32) for n, x in enumerate(inputs)
    }

    def value(name: str) -> Words:
        if name in registers:
            return registers[name]
        return np.full(shape, int(name, 0), dtype=np.uint32)

    for statement in assembly.strip().strip("{}").split(";"):
        operation, _, rest = statement.strip().partition(" ")
        if operation in ("", ".reg", "wgmma.wait_group.sync.aligned"):
            continue  # Here a dot has finished before the next operation begins.
        names = re.findall(r"[\w$]+", rest)
        if operation == "mov.b32" and len(names) == 2:
            registers[names[0]] = value(names[1])
        elif operation == "mov.b32":
            low, high, source = names
            registers[low] = value(source).astype(np.uint16)
            registers[high] = (value(source) >> np.uint32(16)).astype(np.uint16)
        elif operation == "lop3.b32":
            target, a, b, c, table = names
            registers[target] = lop3(value(a), value(b), value(c), int(table, 0))
        elif operation == "prmt.b32":
            target, a, b, selector = names
            registers[target] = prmt(value(a), value(b), int(selector, 0))
        elif operation == "tanh.approx.f32":
            target, a = names
            # To the nearest float; the hardware's is within 2^-11 of it.
            result = np.tanh(value(a).view(np.float32)).astype(np.float32)
            registers[target] = result.view(np.uint32)
        elif operation in BINARY:
            target, a, b = names
            registers[target] = BINARY[operation](value(a), value(b))
        else:
            raise NotImplementedError(f"PTX instruction {operation}")
    return [registers[f"${n}"] for n in range(outputs)]
