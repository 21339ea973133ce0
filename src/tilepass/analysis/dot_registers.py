"""Which registers that an asynchronous dot reads may be written while it still reads them.

The operand A of `ttng.warp_group_dot` is a tensor where it is in registers. Until a wait covers the
dot they may not be touched (PTX ISA, wgmma.wait_group), in a loop not by the next iteration either,
which computes the operand anew. Triton's pipeliner waits only for the dots whose results or buffers
it needs again.

Followed backwards from A, tensors are moved (reshaped, split, ...) or computed, until they come out
of a load, a dot, or the values that a loop carries. What is computed from those counts as written,
and so does whatever A's registers come out of by moves alone: a load, or the end of an iteration
where the loop carries A. A load of bytes counts as well: a wait cannot hand them on, and so has to
stand before it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tilepass.analysis.dot_waits import DOT, WAIT, DotFlow, State
from tilepass.ir import engine
from tilepass.ir.engine import Operation, ir
from tilepass.ir.loops import FOR, Loop, defining_operation, is_inside
from tilepass.ir.walks import ancestor_in, ancestors

_WAIT_FOR_ALL = re.compile(r"wgmma\.wait_group\.sync\.aligned\s+0\s*;")


@dataclass(frozen=True)
class Unfinished:
    """What may be unfinished before an operation: dots, and the values they are writing."""

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


_LOADS = ("ttg.local_load", "tt.load", "tt.descriptor_load")
# Their results may be in the registers that their operands are in.
_MOVES = (
    "tt.bitcast",
    "tt.broadcast",
    "tt.expand_dims",
    "tt.join",
    "tt.reshape",
    "tt.split",
    "tt.trans",
    "ttg.convert_layout",
)


@dataclass(frozen=True)
class Overwrite:
    """`writer` is the first operation of an iteration of `loop` that may write registers which
    unfinished dots read; at `place`, which is or holds it, they must have finished.

    `accumulators` are the values that unfinished dots may be writing and that are visible there;
    `sources` the tensors that the operands of these dots are computed from, as far as they are
    there already.
    """

    loop: Loop
    writer: Operation
    place: Operation
    accumulators: tuple[ir.Value, ...]
    sources: tuple[ir.Value, ...]


def find_overwrites(function: Operation) -> list[Overwrite]:
    """One for each loop of a `tt.func` with such a write."""
    dots = [each for each in engine.operations(function) if _reads_registers(each)]
    if not dots:
        return []
    unfinished = find_unfinished(function)
    writers: dict[Loop, dict[Operation, Operation]] = {}
    graph = _Graph()
    for dot in dots:
        for writer in _writers_of(dot, graph):
            if writer not in unfinished or dot not in unfinished[writer].dots:
                continue
            if loop := _loop_around(writer):
                place = _place(writer, dot, loop, unfinished)
                writers.setdefault(loop, {})[writer] = place
    return [_overwrite(loop, found, unfinished) for loop, found in writers.items()]


def find_not_followed(function: Operation) -> list[Operation]:
    """The dots with A in registers that are unfinished at the end of an iteration of a `scf.while`,
    whose next iteration may write them: loops of this kind are not looked into.
    """
    dots = {each for each in engine.operations(function) if _reads_registers(each)}
    found: dict[Operation, None] = {}
    for operation, unfinished in find_unfinished(function).items() if dots else ():
        if operation.name == "scf.yield" and _parent_name(operation) == "scf.while":
            found |= dict.fromkeys(each for each in unfinished.dots if each in dots)
    return list(found)


def _parent_name(operation: Operation) -> str:
    return "" if operation.parent is None else operation.parent.operation.name


def _place(
    writer: Operation, dot: Operation, loop: Loop, unfinished: dict[Operation, Unfinished]
) -> Operation:
    """What holds the writer in the loop's body, if the dot is unfinished there already."""
    around = ancestor_in(loop.body, writer)
    return around if around in unfinished and dot in unfinished[around].dots else writer


def _reads_registers(operation: Operation) -> bool:
    return operation.name == DOT and _is_tensor(operation.operands[0])


def _is_tensor(value: ir.Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType)


def _can_wait(value: ir.Value) -> bool:
    """Whether a wait can hand on a tensor: Triton's lowering has no registers for bytes."""
    element = ir.RankedTensorType(value.type).element_type
    return isinstance(element, ir.IntegerType | ir.FloatType) and element.width in (16, 32, 64)


def _loop_around(operation: Operation) -> Loop | None:
    return next((Loop(each) for each in ancestors(operation) if each.name == FOR), None)


class _Graph:
    """Definitions, operands and results, each asked for once: the pieces of a dot share nearly all
    of them, and handing them out is what costs."""

    def __init__(self) -> None:
        self._definitions: dict[ir.Value, Operation | None] = {}
        self._tensors_read: dict[Operation, list[ir.Value]] = {}
        self._results: dict[Operation, list[ir.Value]] = {}

    def definition(self, value: ir.Value) -> Operation | None:
        """The operation that a value is a result of."""
        if value not in self._definitions:
            self._definitions[value] = defining_operation(value)
        return self._definitions[value]

    def tensors_read_by(self, operation: Operation) -> list[ir.Value]:
        if operation not in self._tensors_read:
            self._tensors_read[operation] = list(_tensors_read_by(operation))
        return self._tensors_read[operation]

    def results(self, operation: Operation) -> list[ir.Value]:
        if operation not in self._results:
            self._results[operation] = list(operation.results)
        return self._results[operation]


def _writers_of(dot: Operation, graph: _Graph) -> list[Operation]:
    """The operations that write registers for A of `dot`."""
    origin = _Origin(graph)
    origin.follow(dot.operands[0])
    return origin.writers()


@dataclass
class _Origin:
    """What a value is computed from."""

    graph: _Graph
    ends: dict[Operation, None] = field(default_factory=dict[Operation, None])
    """Write registers that get into the value by moves alone."""
    sources: list[ir.Value] = field(default_factory=list[ir.Value])
    """Results of loads and dots, and values that a loop carries."""
    readers: dict[ir.Value, list[Operation]] = field(
        default_factory=dict[ir.Value, list[Operation]]
    )
    """The operations between the sources and the value, by what they read."""

    def follow(self, value: ir.Value) -> None:
        """Go backwards from `value`."""
        waiting, seen = [(value, True)], set[tuple[ir.Value, bool]]()
        while waiting:
            value, moved = waiting.pop()
            if (value, moved) in seen:
                continue
            seen.add((value, moved))
            operation = self.graph.definition(value)
            if operation is None:
                waiting += self._argument(ir.BlockArgument(value), moved)
            elif operation.name in _LOADS:
                first = moved or not _can_wait(value)
                self._source(value, operation if first else None)
            elif operation.name in (DOT, WAIT) or is_waiting_assembly(operation):
                self._source(value, None)
            else:
                waiting += self._computed(operation, moved)

    def writers(self) -> list[Operation]:
        """`ends`, and what is computed from the sources."""
        found, waiting = dict(self.ends), list(self.sources)
        reached = set(waiting)
        while waiting:
            for reader in self.readers.get(waiting.pop(), ()):
                if reader.name not in _MOVES:
                    found[reader] = None
                new = [each for each in self.graph.results(reader) if each not in reached]
                reached.update(new)
                waiting += new
        return list(found)

    def _source(self, value: ir.Value, end: Operation | None) -> None:
        self.sources.append(value)
        if end is not None:
            self.ends[end] = None

    def _argument(self, argument: ir.BlockArgument, moved: bool) -> list[tuple[ir.Value, bool]]:
        around = argument.owner.owner.operation
        if around.name != FOR:
            return []
        # The next iteration's registers are written where this one ends.
        loop = Loop(around)
        self._source(argument, loop.terminator if moved else None)
        carried = loop.carried[argument.arg_number - 1]
        arriving = [(carried.initial, True), (carried.yielded, True)]
        return arriving if moved else []

    def _computed(self, operation: Operation, moved: bool) -> list[tuple[ir.Value, bool]]:
        moves = operation.name in _MOVES
        if moved and not moves:
            self.ends[operation] = None
        read = self.graph.tensors_read_by(operation)
        for each in read:
            self.readers.setdefault(each, []).append(operation)
        return [(each, moved and moves) for each in read]


def _tensors_read_by(operation: Operation) -> list[ir.Value]:
    """Operands, those of operations inside included, that come from outside."""
    if not len(operation.regions):
        return [each for each in operation.operands if _is_tensor(each)]
    inside = [operand for each in engine.operations(operation) for operand in each.operands]
    return [each for each in inside if _is_tensor(each) and not is_inside(each, operation)]


def _overwrite(
    loop: Loop, places: dict[Operation, Operation], unfinished: dict[Operation, Unfinished]
) -> Overwrite:
    body = [view.operation for view in loop.body.operations]
    order = {writer: body.index(ancestor_in(loop.body, writer) or writer) for writer in places}
    writer = min(places, key=lambda each: order[each])
    state = unfinished[places[writer]]
    visible: list[ir.Value] = list(loop.body.arguments)
    for operation in body[: order[writer]]:
        visible += operation.results
    accumulators = [each for each in visible if state.writes(each)]
    # Where an iteration ends nothing is computed that would have to stay behind a wait.
    reading = [each for each in places if each != loop.terminator]
    needed = {value for each in reading for value in _tensors_read_by(each)}
    sources = [
        each for each in visible if each in needed and _can_wait(each) and not state.writes(each)
    ]
    return Overwrite(loop, writer, places[writer], tuple(accumulators), tuple(sources))
