"""Where operations stand: users, what is around and inside, what runs before what."""

from __future__ import annotations

from collections.abc import Iterator

from tilepass.ir import engine
from tilepass.ir.engine import Operation, ir


def users(value: ir.Value) -> list[Operation]:
    """The operations that use a value, one entry a use."""
    return [use.owner.operation for use in value.uses]


def is_used(operation: Operation) -> bool:
    """Whether anything uses a result of an operation."""
    return any(True for result in operation.results for _ in result.uses)


def nested(operation: Operation) -> list[Operation]:
    """The operations in the regions of an operation, at any depth, itself left out."""
    return engine.operations(operation)[1:]


def ancestors(operation: Operation) -> Iterator[Operation]:
    """The operations that one is in a region of, at any depth, the innermost first."""
    around = operation.parent
    while around is not None:
        yield around.operation
        around = around.operation.parent


def function_of(operation: Operation) -> Operation:
    """The function that an operation is in or is; the outermost operation where there is none."""
    around = [operation, *ancestors(operation)]
    return next((each for each in around if each.name == "tt.func"), around[-1])


def module_integer(operation: Operation, name: str) -> int | None:
    """An integer attribute of the module that an operation is in, None where there is none."""
    *_, module = operation, *ancestors(operation)
    attribute = module.attributes.get(name)
    return attribute.value if isinstance(attribute, ir.IntegerAttr) else None


def ancestor_in(block: ir.Block, operation: Operation) -> Operation | None:
    """The operation of `block` that is or contains `operation`, None if it is elsewhere."""
    current = operation
    for around in ancestors(operation):
        if current.block == block:
            return current
        current = around
    return None


def dominates(first: Operation, second: Operation) -> bool:
    """Whether `first` runs before `second` whenever `second` runs.

    Structured control flow only: true if an ancestor of `second` follows `first` in its block.
    """
    ancestor = ancestor_in(first.block, second)
    return ancestor is not None and ancestor != first and first.is_before_in_block(ancestor)
