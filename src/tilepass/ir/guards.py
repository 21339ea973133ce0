"""Turning misuses that crash the process into exceptions, while a pass runs.

The bindings are a thin layer over C++ built without assertions. Erasing an operation whose results
are still used leaves dangling uses; deleting a property of an operation of an unregistered dialect
leaves a null attribute. Both crash later, in the verifier or the printer, where no message can be
given any more. An exception in a callback crashes at once (see ir.callbacks).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from tilepass.ir.callbacks import raising, stand_ins
from tilepass.ir.engine import ir
from tilepass.ir.values import plain_values

_lock = threading.Lock()
_operation_base: Any = ir.Operation.__mro__[1]
_attribute_map: Any = ir.OpAttributeMap
_stock_erase: Any = _operation_base.erase
_stock_delete: Any = _attribute_map.__delitem__
_depth = 0


def _renew() -> None:
    """In a forked child: the threads inside guarded blocks are not there."""
    global _lock, _depth
    _lock, _depth = threading.Lock(), 0
    _enter(0)


@contextmanager
def guarded() -> Generator[None]:
    """Inside the block, in all threads, the misuses raise ValueError, and callbacks may raise."""
    _enter(+1)
    try:
        # For callbacks that were called by a function that was taken before the block.
        with raising():
            yield
    finally:
        _enter(-1)


def delete_unchecked(attributes: ir.OpAttributeMap, name: str) -> None:
    """Delete an attribute without the check."""
    _stock_delete(attributes, name)


def _enter(change: int) -> None:
    global _depth
    with _lock:
        _depth += change
        for owner, name, stock, guard in _GUARDS:
            setattr(owner, name, guard if _depth else stock)


os.register_at_fork(after_in_child=_renew)


def _erase(self: ir.Operation) -> None:
    operation = self.operation
    with plain_values():
        results = list(operation.results)
    for number, result in enumerate(results):
        for use in result.uses:
            raise ValueError(
                f"erasing '{operation.name}': its result {number} is still used by "
                f"'{use.owner.operation.name}' (replace the uses or erase the users first)"
            )
    _stock_erase(self)


def _delete(self: ir.OpAttributeMap, name: str) -> None:
    if name in self and name not in list(self):
        raise ValueError(
            f"deleting attribute '{name}': it is a property of the operation; "
            "use tilepass.ir.build.remove_attribute"
        )
    _stock_delete(self, name)


_GUARDS = [
    (owner, name, getattr(owner, name), guard)
    for owner, name, guard in (
        (_operation_base, "erase", _erase),
        (_attribute_map, "__delitem__", _delete),
        *stand_ins(),
    )
]
