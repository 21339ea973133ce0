"""Which reads of an asynchronous dot's result are not covered by a wait.

`ttng.warp_group_dot {isAsync}` returns before its result is there (one wgmma commit group);
`ttng.warp_group_dot_wait {pendings = n}` waits until at most the last n such dots are unfinished. A
dot after which k others were issued is finished behind a wait if k >= n. The analysis carries k,
the age, along with every value: through loops, conditions and the values that they carry.

`%next = arith.select %last, %zero, %v` is how a flattened loop resets its accumulator. With an
`scf.if %last` of the same block that waits for %v this is not a read: LLVM makes the select a value
of that branch, and on the other way nothing is done to the registers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tilepass.ir.engine import Operation, ir
from tilepass.ir.loops import FOR, Loop
from tilepass.ir.walks import users

_SELECT = "arith.select"
# One of their regions runs, and yields their results.
_CHOICES = ("scf.if", "scf.index_switch")
DOT = "ttng.warp_group_dot"
WAIT = "ttng.warp_group_dot_wait"
# Position of the operand that a select gives where its condition is false.
_KEPT = 2
# Position of the accumulator: the next dot may add to what the last one has not finished.
_ACCUMULATOR = 2
# No wait leaves as many dots unfinished; ages above make no difference, and loops come to an end.
_OLDEST = 64


@dataclass(frozen=True)
class Pending:
    """A value that a dot may still be writing: the least number of dots issued after that one,
    over all ways that lead here, and the dots it may come from."""

    age: int
    dots: tuple[Operation, ...]


@dataclass(frozen=True)
class UncoveredRead:
    """`operation` reads its operand `position` while a dot may be writing it."""

    operation: Operation
    position: int
    pending: Pending

    @property
    def value(self) -> ir.Value:
        """What is read."""
        return self.operation.operands[self.position]

    @property
    def is_reset(self) -> bool:
        """Whether the reading operation is a select, which a branch may cover."""
        return self.operation.name == _SELECT


State = dict[int, Pending]
"""By the hash of the value that is being written."""


@dataclass
class DotWaits:
    """The result of `find_uncovered_reads`. `ages` holds, for every wait and each of its operands,
    the age before the wait."""

    reads: list[UncoveredRead] = field(default_factory=list[UncoveredRead])
    ages: dict[tuple[Operation, int], int] = field(default_factory=dict[tuple[Operation, int], int])
    left_over: dict[Operation, str] = field(default_factory=dict[Operation, str])
    """Dots that are not followed, and behind what: they are unfinished at the end of a block of
    several, or an operation that is not known hands their results on."""


def find_uncovered_reads(function: Operation) -> DotWaits:
    """Analyse a `tt.func`. Reads come in the order of the text, each once."""
    found = DotFlow()
    blocks = list(function.regions[0].blocks)
    for block in blocks:
        state, _ = found.block(block, {})
        if len(blocks) > 1:
            found.leave(state.values(), "an early return")
    result = found.result
    result.reads = [read for read in found.reads.values() if not _covered_by_branch(read, result)]
    return result


def _covered_by_branch(read: UncoveredRead, result: DotWaits) -> bool:
    """Whether a condition of the same block takes the select's first choice and waits there."""
    select = read.operation
    if not read.is_reset or read.position != _KEPT:
        return False
    waits = [
        (view.operation, position)
        for user in users(select.operands[0])
        if user.name == "scf.if" and user.block == select.block
        for view in user.regions[0].blocks[0].operations
        if view.name == WAIT
        for position, operand in enumerate(view.operands)
        if operand == read.value
    ]
    return any(pendings_of(wait) <= result.ages.get((wait, at), -1) for wait, at in waits)


class DotFlow:
    """One walk over a function; loops are walked until nothing changes."""

    def __init__(self) -> None:
        self.result = DotWaits()
        self.reads: dict[tuple[Operation, int], UncoveredRead] = {}
        # Loops are walked more than once, and handing out operations is what costs.
        self._blocks: dict[ir.Block, list[Operation]] = {}

    def _operations_of(self, block: ir.Block) -> list[Operation]:
        if block not in self._blocks:
            self._blocks[block] = [view.operation for view in block.operations]
        return self._blocks[block]

    def block(self, block: ir.Block, state: State) -> tuple[State, list[Pending | None]]:
        """The state at the end of a block, and that of its terminator's operands."""
        operations = self._operations_of(block)
        last = operations[-1]
        for operation in operations[:-1]:
            # Most operations run while no dot is unfinished.
            if state or operation.name == DOT or len(operation.regions):
                self.operation(operation, state)
        self.terminator(last, state)
        return state, [state.get(hash(operand)) for operand in last.operands]

    def terminator(self, operation: Operation, state: State) -> None:
        """The last operation of a block."""
        if operation.name == "tt.return":
            self._read(operation, state)

    def operation(self, operation: Operation, state: State) -> None:
        """Any other; `state` is changed to what holds behind it."""
        if operation.name == DOT:
            self._dot(operation, state)
        elif operation.name == WAIT:
            self._wait(operation, state)
        elif operation.name == FOR:
            self._for(Loop(operation), state)
        elif operation.name == "scf.while":
            self._while(operation, state)
        elif operation.name in _CHOICES:
            self._choice(operation, state)
        elif operation.name == _SELECT:
            self._read(operation, state)
            chosen = [state.get(hash(operand)) for operand in operation.operands]
            _assign(state, operation.results, [_either(chosen[1], chosen[2])])
        else:
            self._read(operation, state)
            self._regions(operation, state)

    def leave(self, pendings: Iterable[Pending | None], behind: str) -> None:
        """Dots whose results are not followed any more."""
        for pending in filter(None, pendings):
            self.result.left_over |= dict.fromkeys(pending.dots, behind)

    def _regions(self, operation: Operation, state: State) -> None:
        """The regions of an operation that is not known: where their values go neither is."""
        before, ends = dict(state), list[State]()
        for region in operation.regions:
            for block in region.blocks:
                end, handed_on = self.block(block, dict(before))
                ends.append(end)
                self.leave(handed_on, operation.name)
                if len(region.blocks) > 1:
                    self.leave((end[key] for key in end.keys() - before.keys()), operation.name)
        _join(state, *ends)

    def _read(self, operation: Operation, state: State, but: int = -1) -> None:
        for position, operand in enumerate(operation.operands):
            pending = state.get(hash(operand))
            if pending is not None and position != but:
                place = operation, position
                self.reads[place] = UncoveredRead(operation, position, pending)

    def _dot(self, dot: Operation, state: State) -> None:
        self._read(dot, state, but=_ACCUMULATOR)
        asynchronous = dot.attributes.get("isAsync")
        if not (isinstance(asynchronous, ir.BoolAttr) and asynchronous.value):
            # Issued and waited for at once, and with it everything issued before.
            state.clear()
            return
        for key, pending in state.items():
            state[key] = Pending(min(pending.age + 1, _OLDEST), pending.dots)
        state[hash(dot.results[0])] = Pending(0, (dot,))

    def _wait(self, wait: Operation, state: State) -> None:
        for position, operand in enumerate(wait.operands):
            if pending := state.get(hash(operand)):
                self.result.ages[wait, position] = pending.age
        for key, pending in list(state.items()):
            if pending.age >= pendings_of(wait):
                del state[key]
        _assign(state, wait.results, [state.get(hash(operand)) for operand in wait.operands])

    def _for(self, loop: Loop, state: State) -> None:
        for operand in list(loop.operation.operands)[:3]:
            assert hash(operand) not in state, "a loop bound that a dot computes"
        arguments = [carried.argument for carried in loop.carried]
        entering = [state.get(hash(carried.initial)) for carried in loop.carried]
        header = dict(state)
        _assign(header, arguments, entering)
        while True:
            end, yielded = self.block(loop.body, dict(header))
            merged = dict(header)
            _join(merged, end)
            again = [
                _either(header.get(hash(argument)), value)
                for argument, value in zip(arguments, yielded, strict=True)
            ]
            _assign(merged, arguments, again)
            if merged == header:
                break
            header = merged
        _join(state, end)
        leaving = [_either(one, other) for one, other in zip(entering, yielded, strict=True)]
        _assign(state, loop.operation.results, leaving)

    def _while(self, loop: Operation, state: State) -> None:
        before, after = (region.blocks[0] for region in loop.regions)
        header = dict(state)
        _assign(header, before.arguments, [state.get(hash(each)) for each in loop.operands])
        while True:
            checked, (_, *handed_on) = self.block(before, dict(header))
            inside = dict(checked)
            _assign(inside, after.arguments, handed_on)
            end, yielded = self.block(after, inside)
            merged = dict(header)
            _join(merged, end)
            again = [
                _either(header.get(hash(argument)), value)
                for argument, value in zip(before.arguments, yielded, strict=True)
            ]
            _assign(merged, before.arguments, again)
            if merged == header:
                break
            header = merged
        state.clear()
        state.update(checked)
        _assign(state, loop.results, handed_on)

    def _choice(self, operation: Operation, state: State) -> None:
        ends: list[State] = []
        merged: list[Pending | None] | None = None
        for region in operation.regions:
            branch = dict(state)
            if len(region.blocks):
                branch, values = self.block(region.blocks[0], branch)
                pairs = zip(merged or values, values, strict=True)
                merged = [_either(one, other) for one, other in pairs]
            ends.append(branch)
        state.clear()
        _join(state, *ends)
        if len(operation.results):
            _assign(state, operation.results, merged or [])


def pendings_of(wait: Operation) -> int:
    """How many dots a wait leaves unfinished."""
    attribute = wait.attributes["pendings"]
    assert isinstance(attribute, ir.IntegerAttr)
    return attribute.value


def _either(one: Pending | None, other: Pending | None) -> Pending | None:
    """What holds where one or the other may."""
    if one is None or other is None:
        return one or other
    new = tuple(dot for dot in other.dots if dot not in one.dots)
    return Pending(min(one.age, other.age), one.dots + new)


def _join(state: State, *others: State) -> None:
    for other in others:
        for key, pending in other.items():
            merged = _either(state.get(key), pending)
            if merged is not None:
                state[key] = merged


def _assign(state: State, values: Iterable[ir.Value], pendings: list[Pending | None]) -> None:
    for value, pending in zip(values, pendings, strict=True):
        if pending is None:
            state.pop(hash(value), None)
        else:
            state[hash(value)] = pending
