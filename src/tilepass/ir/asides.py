"""What the CuTe DSL builds when a module is only read.

Where the DSL is loaded, the bindings hand out a tensor's value as an object of the DSL, and
making that object builds operations (`cute.get_iter`) at the current insertion point. Without one
they hang in the air, as users of the module's values that are freed in any order: memory is
corrupted. `operands_of`, `results_of` and `arguments_of` leave nothing behind; `asides_apart` keeps
a pass that reads `operands` itself from the worst, but such a pass must not write bytecode.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from tilepass.ir.engine import Module, Operation, ir, plain

# Taken at import: `ir.guards` replaces it by one that looks at the results.
_operation_base: Any = ir.Operation.__mro__[1]
_erase: Any = _operation_base.erase


@contextmanager
def asides_apart(module: Module) -> Generator[None]:
    """Inside the block such operations go to a place of their own; they are gone after it."""
    with _apart(module.context):
        yield


def operands_of(operation: Operation) -> list[ir.Value]:
    """The operands as plain values; reading them leaves no operation behind."""
    with _apart(operation.context):
        return [plain(operand) for operand in operation.operands]


def results_of(operation: Operation) -> list[ir.Value]:
    """The results as plain values; reading them leaves no operation behind."""
    with _apart(operation.context):
        return [plain(result) for result in operation.results]


def arguments_of(block: ir.Block, context: ir.Context) -> list[ir.Value]:
    """The arguments of a block as plain values; reading them leaves no operation behind."""
    with _apart(context):
        return [plain(argument) for argument in block.arguments]


@contextmanager
def _apart(context: ir.Context) -> Generator[None]:
    with context, ir.Location.unknown():
        apart = ir.Module.create()
        with ir.InsertionPoint(apart.body):
            try:
                yield
            finally:
                for operation in reversed(list(apart.body.operations)):
                    _erase(operation.operation)
