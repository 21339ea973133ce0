"""How many threads a kernel is launched with, from its lowered module."""

from __future__ import annotations

import re

from tilepass.ir.engine import Module, Operation, ir, operations

_FACTS = re.compile(r"exact_block_dim = array<i64: (\d+), (\d+), (\d+)>")
_REQUIRED = re.compile(r"array<i32: (\d+), (\d+), (\d+)>")
_LAUNCH = "cuda.launch_ex"
_CONFIGURATION = "cuda.launch_cfg.create"


def block_of(module: Module, kernel: Operation) -> tuple[int, int, int] | None:
    """The extents of a block in x, y and z; None where they are not constants of the module.

    Taken from what the DSL notes on the kernel, else from `nvvm.reqntid`, else from the launches in
    the module if they agree. `nvvm.maxntid` is an upper bound only and says nothing here.
    """
    noted = _attribute(kernel, "cutlass_launch_facts")
    if match := _FACTS.search(noted):
        return int(match[1]), int(match[2]), int(match[3])
    if match := _REQUIRED.search(_attribute(kernel, "nvvm.reqntid")):
        return int(match[1]), int(match[2]), int(match[3])
    return _launched(module, kernel)


def _attribute(operation: Operation, name: str) -> str:
    return str(operation.attributes[name]) if name in operation.attributes else ""


def _launched(module: Module, kernel: Operation) -> tuple[int, int, int] | None:
    name = ir.StringAttr(kernel.attributes["sym_name"]).value
    found = set[tuple[int, int, int] | None]()
    with module.context, ir.Location.unknown(module.context):
        for operation in operations(module):
            if operation.name != _LAUNCH or f"@{name}" not in _attribute(operation, "callee"):
                continue
            owner = ir.Value(operation.operands[0]).owner
            configuration = (
                owner if isinstance(owner, Operation) else getattr(owner, "operation", None)
            )
            found.add(_extents(configuration))
    return found.pop() if len(found) == 1 else None


def _extents(configuration: Operation | None) -> tuple[int, int, int] | None:
    if configuration is None or configuration.name != _CONFIGURATION:
        return None
    numbers = list[int]()
    for position in range(3):
        owner = ir.Value(configuration.operands[position]).owner
        operation = owner if isinstance(owner, Operation) else getattr(owner, "operation", None)
        if operation is None or operation.name not in ("arith.constant", "llvm.mlir.constant"):
            return None
        numbers.append(ir.IntegerAttr(operation.attributes["value"]).value)
    return numbers[0], numbers[1], numbers[2]
