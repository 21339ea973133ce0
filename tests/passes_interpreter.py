"""Running scalar TTIR on integers: enough to compare a loop nest with its fused form."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from tilepass.ir import engine
from tilepass.ir.engine import ir

_BINARY: dict[str, Callable[[int, int], int]] = {
    "arith.addi": operator.add,
    "arith.subi": operator.sub,
    "arith.muli": operator.mul,
    "arith.maxsi": max,
    "arith.minsi": min,
    "arith.andi": lambda a, b: a & b,
    "arith.divsi": lambda a, b: int(a / b),
    "arith.remsi": lambda a, b: a - b * int(a / b),
    "arith.ceildivsi": lambda a, b: -(-a // b),
    "tt.addptr": operator.add,
}
_COMPARE: tuple[Callable[[int, int], bool], ...] = (
    operator.eq,
    operator.ne,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
)


@dataclass
class Machine:
    """Memory and the trace of accesses: ("load" or "store", address, value)."""

    program_id: int = 0
    memory: dict[int, int] = field(default_factory=dict[int, int])
    trace: list[tuple[str, int, int]] = field(default_factory=list[tuple[str, int, int]])

    def call(self, function: engine.Operation, arguments: Sequence[int]) -> None:
        """Run a `tt.func` without results."""
        block = function.regions[0].blocks[0]
        values = dict(zip(map(_key, block.arguments), arguments, strict=True))
        self._block(block, values)

    def _block(self, block: ir.Block, values: dict[int, int]) -> list[int]:
        for view in block:
            operands = [values[_key(operand)] for operand in view.operands]
            if view.name in ("scf.yield", "tt.return"):
                return operands
            results = self._operation(view.operation, operands, values)
            values.update(zip(map(_key, view.results), results, strict=True))
        return []

    def _operation(
        self, operation: engine.Operation, operands: list[int], values: dict[int, int]
    ) -> Sequence[int]:
        name, attributes = operation.name, cast("Any", operation.attributes)
        if binary := _BINARY.get(name):
            return [binary(*operands)]
        if name == "arith.constant":
            return [int(cast("int", attributes["value"].value))]
        if name == "arith.cmpi":
            predicate = cast("int", attributes["predicate"].value)
            return [int(_COMPARE[predicate](*operands))]
        if name == "arith.select":
            return [operands[1] if operands[0] else operands[2]]
        if name == "arith.extui":
            return operands
        if name == "tt.get_program_id":
            return [self.program_id]
        if name == "ub.poison":
            return [0x7EAD]
        if name == "llvm.intr.assume":
            assert operands[0], "an assumption does not hold"
            return []
        if name in ("tt.load", "tt.store"):
            return self._access(name, operands)
        if name == "scf.if":
            region = operation.regions[0 if operands[0] else 1]
            return self._block(region.blocks[0], values) if len(region.blocks) else []
        assert name == "scf.for", name
        return self._for(operation, operands, values)

    def _access(self, name: str, operands: list[int]) -> list[int]:
        address = operands[0]
        if name == "tt.store":
            self.memory[address] = operands[1]
            self.trace.append(("store", address, operands[1]))
            return []
        value = self.memory.get(address, address * 7919 % 1009)
        self.trace.append(("load", address, value))
        return [value]

    def _for(
        self, operation: engine.Operation, operands: list[int], values: dict[int, int]
    ) -> list[int]:
        lower, upper, step, *carried = operands
        block = operation.regions[0].blocks[0]
        keys = [_key(argument) for argument in block.arguments]
        for index in range(lower, upper, step):
            values.update(zip(keys, [index, *carried], strict=True))
            carried = self._block(block, values)
        return carried


def _key(value: ir.Value) -> int:
    return ir.Value.__hash__(value)
