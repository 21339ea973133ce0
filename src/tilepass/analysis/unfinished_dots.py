"""Which asynchronous dots may be unfinished in front of an operation."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tilepass.analysis.dot_waits import DotFlow, State
from tilepass.ir.engine import Operation, ir

_WAIT_FOR_ALL = re.compile(r"wgmma\.wait_group\.sync\.aligned\s+0\s*;")


@dataclass(frozen=True)
class Unfinished:
    """What may be unfinished in front of an operation: dots, and the values they are writing."""

    dots: frozenset[Operation]
    values: frozenset[int]

    def writes(self, value: ir.Value) -> bool:
        """Whether one of the dots may be writing `value`."""
        return hash(value) in self.values


def find_unfinished(function: Operation) -> dict[Operation, Unfinished]:
    """The operations of a `tt.func`, terminators included, that may run while dots are unfinished.

    Inline assembly that waits for all wgmmas counts as a wait here. (A read of a dot's result that
    relies on such assembly is still uncovered: nothing says that the value goes through it.)
    """
    found = _Recorder()
    for block in function.regions[0].blocks:
        found.block(block, {})
    return found.unfinished


def is_waiting_assembly(operation: Operation) -> bool:
    """Whether this is inline assembly that waits for all wgmmas."""
    if operation.name != "tt.elementwise_inline_asm":
        return False
    text = operation.attributes["asm_string"]
    return isinstance(text, ir.StringAttr) and bool(_WAIT_FOR_ALL.search(text.value))


class _Recorder(DotFlow):
    """Keeps what it meets. The last walk over a loop sees most, and overwrites what others saw."""

    def __init__(self) -> None:
        super().__init__()
        self.unfinished: dict[Operation, Unfinished] = {}

    def terminator(self, operation: Operation, state: State) -> None:
        self._record(operation, state)

    def operation(self, operation: Operation, state: State) -> None:
        self._record(operation, state)
        super().operation(operation, state)
        if is_waiting_assembly(operation):
            state.clear()

    def _record(self, operation: Operation, state: State) -> None:
        dots = frozenset(dot for pending in state.values() for dot in pending.dots)
        if dots:
            self.unfinished[operation] = Unfinished(dots, frozenset(state))
