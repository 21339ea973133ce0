"""Where operations stand: users, places in a block, what runs before what."""

from __future__ import annotations

from tilepass.ir import engine
from tilepass.ir.engine import Operation, ir


def users(value: ir.Value) -> list[Operation]:
    """The operations that use a value, one entry a use."""
    return [use.owner.operation for use in value.uses]


def nested(operation: Operation) -> list[Operation]:
    """The operations in the regions of an operation, at any depth, itself left out."""
    return engine.operations(operation)[1:]


def ancestor_in(block: ir.Block, operation: Operation) -> Operation | None:
    """The operation of `block` that is or contains `operation`, None if it is elsewhere."""
    current = operation
    while (parent := current.parent) is not None:
        if current.block == block:
            return current
        current = parent.operation
    return None


def dominates(first: Operation, second: Operation) -> bool:
    """Whether `first` runs before `second` whenever `second` runs.

    Structured control flow only: true if an ancestor of `second` follows `first` in its block.
    """
    ancestor = ancestor_in(first.block, second)
    return ancestor is not None and ancestor != first and first.is_before_in_block(ancestor)
