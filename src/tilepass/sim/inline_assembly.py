"""The few PTX instructions of inline assembly that are executed; every other text is refused.

Semantics are those of the PTX ISA. Registers are arrays of 32-bit words; one that holds 16 bits has
them in the low half.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tilepass.sim import casts
from tilepass.sim.site import CannotSimulate

Words = NDArray[np.uint32]
Registers = dict[str, Words]
Instruction = Callable[[Registers], None]

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_OPERAND = re.compile(r"[\w$]+")
_HALF = np.uint32(16)
_LOW = np.uint32(0xFFFF)


def compile_assembly(
    text: str, inputs: int, outputs: Sequence[np.dtype[Any]]
) -> Callable[[Sequence[Any]], list[Any]]:
    """A function from the input arrays to the outputs ($0, $1, ...; the inputs are numbered on).

    Raises CannotSimulate, naming the instruction, for one that is not known.
    """
    bare = _COMMENT.sub("", text).strip().strip("{}")
    statements = [part.strip() for part in bare.split(";")]
    program = [_instruction(each) for each in statements if each and not each.startswith(".reg")]

    def run(given: Sequence[Any]) -> list[Any]:
        registers: Registers = {}
        for index, array in enumerate(given):
            registers[f"${len(outputs) + index}"] = _words(np.asarray(array))
        for instruction in program:
            instruction(registers)
        shape = np.shape(given[0])
        return [
            _elements(np.broadcast_to(registers[f"${index}"], shape), dtype)
            for index, dtype in enumerate(outputs)
        ]

    return run


def _words(array: NDArray[Any]) -> Words:
    packed = np.ascontiguousarray(array).reshape(array.shape)
    return packed.view(f"u{array.dtype.itemsize}").astype(np.uint32)


def _elements(words: Words, dtype: np.dtype[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(words.astype(f"u{dtype.itemsize}")).view(dtype)


def _instruction(statement: str) -> Instruction:
    name, _, rest = statement.partition(" ")
    operands = _OPERAND.findall(rest)
    make = _INSTRUCTIONS.get(name)
    if make is None:
        raise CannotSimulate(f"inline assembly with instruction '{name}'")
    return make(operands)


def _value(registers: Registers, name: str) -> Words:
    return registers[name] if name in registers else np.asarray(int(name, 0), np.uint32)


_Compute = (
    Callable[[Words], Words]
    | Callable[[Words, Words], Words]
    | Callable[[Words, Words, Words], Words]
    | Callable[[Words, Words, Words, Words], Words]
)


def _computing(function: _Compute) -> Callable[[list[str]], Instruction]:
    """An instruction whose first operand is the register that gets the result."""

    compute: Callable[..., Words] = function

    def make(operands: list[str]) -> Instruction:
        target, *sources = operands

        def run(registers: Registers) -> None:
            registers[target] = compute(*[_value(registers, each) for each in sources])

        return run

    return make


def _move(operands: list[str]) -> Instruction:
    if len(operands) == 2:
        return _computing(lambda word: word)(operands)
    if len(operands) != 3:
        raise CannotSimulate("inline assembly with a mov of this form")
    low, high, source = operands

    def run(registers: Registers) -> None:
        word = _value(registers, source)
        registers[low], registers[high] = word & _LOW, word >> _HALF

    return run


def _lop3(a: Words, b: Words, c: Words, table: Words) -> Words:
    """Bit by bit, bit 4a + 2b + c of the table."""
    result = np.zeros_like(a)
    for row in range(8):
        if int(table) >> row & 1:
            terms = [x if row >> at & 1 else ~x for x, at in ((a, 2), (b, 1), (c, 0))]
            result = result | terms[0] & terms[1] & terms[2]
    return result


def _prmt(a: Words, b: Words, selector: Words) -> Words:
    """Byte n of the result is the byte of b:a that nibble n names; its top bit repeats the sign."""
    sources = [word >> np.uint32(8 * at) & np.uint32(0xFF) for word in (a, b) for at in range(4)]
    result = np.zeros_like(a)
    for at in range(4):
        nibble = int(selector) >> 4 * at & 15
        byte = sources[nibble & 7]
        if nibble & 8:
            byte = (byte >> np.uint32(7)) * np.uint32(0xFF)
        result = result | byte << np.uint32(8 * at)
    return result


def _multiply_bf16x2(a: Words, b: Words) -> Words:
    result = np.zeros_like(a)
    for shift in (np.uint32(0), _HALF):
        x, y = ((word >> shift << _HALF).view(np.float32) for word in (a, b))
        bits = (x * y).astype(ml_dtypes.bfloat16).view(np.uint16)
        result = result | bits.astype(np.uint32) << shift
    return result


def _round_to_tf32(word: Words) -> Words:
    return casts.nearest_tf32(word.view(np.float32)).view(np.uint32)


def _tanh(word: Words) -> Words:
    """To the nearest float; the hardware's is within 2^-11 of it."""
    return np.tanh(word.view(np.float32)).astype(np.float32).view(np.uint32)


def _nothing(_: list[str]) -> Instruction:
    """A wait for what has already happened here."""
    return lambda _: None


_INSTRUCTIONS: dict[str, Callable[[list[str]], Instruction]] = {
    "and.b32": _computing(lambda a, b: a & b),
    "or.b32": _computing(lambda a, b: a | b),
    "xor.b32": _computing(lambda a, b: a ^ b),
    "shl.b32": _computing(lambda a, b: a << b),
    "shr.u32": _computing(lambda a, b: a >> b),
    "lop3.b32": _computing(_lop3),
    "prmt.b32": _computing(_prmt),
    "mul.rn.bf16x2": _computing(_multiply_bf16x2),
    "cvt.rna.tf32.f32": _computing(_round_to_tf32),
    "tanh.approx.f32": _computing(_tanh),
    "mov.b32": _move,
    "wgmma.wait_group.sync.aligned": _nothing,
}
