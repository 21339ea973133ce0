"""PTX as text: the instructions of one kernel, their operands and its parameters."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

_STATEMENT = re.compile(
    r"(?:@(?P<guard>!?%p\d+)\s+)?(?P<code>[a-z][\w.:]*)\s*(?P<operands>.*)", re.S
)
_DECLARED = re.compile(r"\.(?:reg|pragma|loc|file|maxntid|reqntid|minnctapersm)\b")


@dataclass(frozen=True)
class Instruction:
    """`@guard code operands`; a vector operand `{a, b}` is a tuple of its elements."""

    code: tuple[str, ...]
    operands: tuple[str | tuple[str, ...], ...]
    guard: str | None
    negated: bool
    text: str

    def name(self, index: int) -> str:
        """Operand `index`, which is not a vector."""
        operand = self.operands[index]
        if isinstance(operand, tuple):
            raise TypeError(f"{self.text}: operand {index} is a vector")
        return operand

    def names(self, index: int) -> tuple[str, ...]:
        """Operand `index` as a vector, of one element where it is none."""
        operand = self.operands[index]
        return operand if isinstance(operand, tuple) else (operand,)


@dataclass(frozen=True)
class Kernel:
    """Instructions in order, and the instruction that each label stands before."""

    name: str
    instructions: tuple[Instruction, ...]
    labels: dict[str, int]
    threads: int


def parse_kernel(ptx: str) -> Kernel:
    """The only kernel of a PTX module. Raises ValueError where there is none or another."""
    heads = re.findall(r"\.entry\s+(\w+)\s*\(", ptx)
    if len(heads) != 1:
        raise ValueError(f"one kernel expected, found {heads}")
    found = re.search(r"\.reqntid\s+(\d+)(?:, 1, 1)?\s*$", ptx, re.M)
    if found is None:
        raise ValueError("the kernel does not say its number of threads")
    body = ptx[ptx.index("{", found.end()) + 1 : ptx.rindex("}")]
    body = re.sub(r"//.*", "", body)
    instructions: list[Instruction] = []
    labels: dict[str, int] = {}
    # A label ends in a colon; everything else in a semicolon.
    for statement in re.split(r";|(?<=[\w]):(?=\s)", body):
        text = " ".join(statement.split())
        if text.startswith("$L"):
            labels[text] = len(instructions)
        elif text and not _DECLARED.match(text):
            instructions.append(_instruction(text))
    return Kernel(heads[0], tuple(instructions), labels, int(found.group(1)))


def _instruction(text: str) -> Instruction:
    found = _STATEMENT.fullmatch(text)
    if found is None:
        raise ValueError(f"not an instruction: {text}")
    guard = found["guard"]
    return Instruction(
        code=tuple(found["code"].split(".")),
        operands=tuple(_operands(found["operands"])),
        guard=guard.lstrip("!") if guard else None,
        negated=bool(guard) and guard.startswith("!"),
        text=text,
    )


def _operands(text: str) -> list[str | tuple[str, ...]]:
    result: list[str | tuple[str, ...]] = []
    for vector, single in re.findall(r"\{([^}]*)\}|([^,{}]+)", text):
        if vector:
            result.append(tuple(part.strip() for part in vector.split(",")))
        elif single.strip():
            result.append(single.strip())
    return result


@cache
def constant(text: str) -> int | None:
    """The bits of a literal (an integer, 0f... or 0d...), or None where it is not a literal."""
    if re.fullmatch(r"0[fF][0-9A-Fa-f]{8}|0[dD][0-9A-Fa-f]{16}", text):
        return int(text[2:], 16)
    if re.fullmatch(r"-?\d+|-?0x[0-9a-fA-F]+", text):
        return int(text, 0)
    return None


@cache
def address(text: str) -> tuple[str, int]:
    """`[base+offset]`: base and offset."""
    found = re.fullmatch(r"\[(.+?)(?:\+(-?\d+))?\]", text)
    if found is None:
        raise ValueError(f"not an address: {text}")
    return found[1], int(found[2] or 0)
