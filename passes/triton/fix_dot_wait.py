"""`fix-dot-wait`: let waits cover reads of a dot's result and writes to its registers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tilepass.analysis.dot_registers import Overwrite, find_not_followed, find_overwrites
from tilepass.analysis.dot_waits import (
    DOT,
    WAIT,
    DotWaits,
    UncoveredRead,
    find_uncovered_reads,
    pendings_of,
)
from tilepass.core.anchor import Anchor
from tilepass.core.pass_base import Pass, PassContext
from tilepass.core.refusal import Refusal, attempt
from tilepass.core.registry import register
from tilepass.ir import engine
from tilepass.ir.engine import Module, Operation, ir
from tilepass.ir.loops import defining_operation, is_inside
from tilepass.ir.walks import ancestors, dominates

# Its ptxas (CUDA 13.4) keeps registers that are in flight over a loop's back edge.
_REPAIRED = (3, 9)


@dataclass(frozen=True)
class LowerWait:
    """Let an existing wait leave fewer dots unfinished."""

    wait: Operation
    pendings: int
    read: UncoveredRead


@dataclass(frozen=True)
class InsertWait:
    """Wait before a read; `buffers` are what the awaited dots read from shared memory."""

    read: UncoveredRead
    buffers: tuple[ir.Value, ...]


@register
class FixDotWait(Pass):
    """Repair waits that leave a dot unfinished whose result is read next, or whose registers are
    written next.

    Before:
        %d = ttng.warp_group_dot %a, %b, %acc {isAsync = true}
        %w = ttng.warp_group_dot_wait %d {pendings = 3 : i32}
        %next = arith.select %last, %zero, %w
    After:
        %d = ttng.warp_group_dot %a, %b, %acc {isAsync = true}
        %w = ttng.warp_group_dot_wait %d {pendings = 0 : i32}
        %next = arith.select %last, %zero, %w

    Triton splits a dot with A in registers into pieces along K and waits after each, the last one
    included, until as many as there are pieces are unfinished less one. Where the loop is flattened
    its body then reads the accumulator that the last piece may be writing. ptxas notices (C7515)
    and serializes every wgmma.

    Sound: a wait computes nothing, and waiting for more changes no result. The smallest change is
    made: where the value read comes from a wait of the same block, that wait's `pendings` are
    lowered to the number of dots issued after the one that made the value; else a wait is put
    before the read. Adding to an unfinished accumulator by another dot is not a read.

    The second rule (`registers`) is about dots with A in registers that are unfinished at the back
    edge of a loop whose next iteration computes A anew.

    Before:
        scf.for ... iter_args(%acc) {
          %words = ttg.local_load %buffer
          %a = <dequantise %words>
          %d = ttng.warp_group_dot %a, %b, %acc {isAsync = true}
          %w = ttng.warp_group_dot_wait %d {pendings = 1 : i32}
          scf.yield %w
    After:
          %words = ttg.local_load %buffer
          %f:2 = ttng.warp_group_dot_wait %acc, %words {pendings = 0 : i32}
          %a = <dequantise %f#1>
          %d = ttng.warp_group_dot %a, %b, %f#0 {isAsync = true}

    PTX forbids writing these registers before a wait. ptxas up to CUDA 12.9 gives them to the next
    iteration's values, with the copies that Triton 3.8 makes against this (#9514) too: results are
    then a matter of timing. The wait stands before the first operation that computes something
    for A, behind the loads, and hands on their results, so that nothing moves ahead of it; where A
    is loaded as it is, or from bytes, before the load. `auto` applies the rule before Triton
    3.9.

    The anchor is the end of the stage: nothing moves operations between the wait and the read any
    more. Not followed, with a remark: dots that are unfinished at the end of a block of a function
    with several blocks (early returns), or whose results an operation with regions other than
    `scf.for`, `scf.while`, `scf.if` and `scf.index_switch` hands on; the registers of A in
    `scf.while`.
    """

    name = "fix-dot-wait"
    anchor = Anchor.end_of("ttgir")
    touches = (DOT,)

    @dataclass(frozen=True)
    class Options:
        registers: Literal["auto", "on", "off"] = "auto"

    options: Options

    def run(self, module: Module, context: PassContext) -> None:
        for view in module.body.operations:
            if view.operation.name == "tt.func" and view.operation.regions[0].blocks:
                _repair(view.operation, context)
                if self._protects_registers(context):
                    _protect_registers(view.operation, context)

    def _protects_registers(self, context: PassContext) -> bool:
        if self.options.registers == "auto":
            return context.compiler.version < _REPAIRED
        return self.options.registers == "on"


def _repair(function: Operation, context: PassContext) -> None:
    waits = attempt(find_uncovered_reads, function, at=function)
    if isinstance(waits, Refusal):
        context.refuse(waits, "reads of dots were not checked")
        return
    while waits.reads:
        # A wait in the branch that a reset belongs to covers the reset too.
        waits.reads.sort(key=lambda read: read.is_reset)
        reads = [read for read in waits.reads if read.is_reset == waits.reads[0].is_reset]
        lowered = [change for read in reads if (change := _match_wait(read, waits))]
        if lowered:
            _lower(lowered, context)
        else:
            _insert(_match_place(reads[0]), context)
        waits = find_uncovered_reads(function)
    for dot, behind in waits.left_over.items():
        context.remarks.missed(dot, f"reads of this dot's result behind {behind} were not checked")


def _match_wait(read: UncoveredRead, waits: DotWaits) -> LowerWait | None:
    """The wait of the same block that the value comes from, None if it comes from elsewhere."""
    wait = defining_operation(read.value)
    if wait is None or wait.name != WAIT or wait.block != read.operation.block:
        return None
    position = ir.OpResult(read.value).result_number
    return LowerWait(wait, waits.ages[wait, position], read)


def _match_place(read: UncoveredRead) -> InsertWait:
    operands = [operand for dot in read.pending.dots for operand in dot.operands]
    buffers = [each for each in operands if str(each.type).startswith("!ttg.memdesc")]
    visible = [each for each in buffers if _visible(each, read.operation)]
    return InsertWait(read, tuple(_distinct(visible)))


def _visible(value: ir.Value, operation: Operation) -> bool:
    source = defining_operation(value)
    if source is not None:
        return dominates(source, operation)
    owner = ir.BlockArgument(value).owner.owner.operation
    return owner in ancestors(operation) and not is_inside(value, operation)


def _distinct(values: list[ir.Value]) -> list[ir.Value]:
    return list(dict.fromkeys(values))


def _lower(changes: list[LowerWait], context: PassContext) -> None:
    for change in changes:
        old = pendings_of(change.wait)
        if change.pendings >= old:
            continue
        _set_pendings(change.wait, change.pendings)
        context.remarks.passed(
            change.wait,
            f"wait for all but {change.pendings} dots instead of {old}: "
            f"{change.read.operation.name} reads what the last may be writing",
        )


def _insert(change: InsertWait, context: PassContext) -> None:
    read, value = change.read, change.read.value
    wait = _create_wait(read.operation, [value, *change.buffers], read.pending.age)
    for use in list(value.uses):
        user = use.owner.operation
        if user != wait and (user == read.operation or dominates(wait, user)):
            user.operands[use.operand_number] = wait.results[0]
    context.remarks.passed(
        read.operation,
        f"inserted a wait for all but {read.pending.age} dots before "
        f"{read.operation.name}, which reads what a dot may be writing",
    )


def _protect_registers(function: Operation, context: PassContext) -> None:
    overwrites = attempt(find_overwrites, function, at=function)
    if isinstance(overwrites, Refusal):
        context.refuse(overwrites, "dots' registers were not checked")
        return
    while overwrites:
        for overwrite in overwrites:
            _finish_dots(overwrite, context)
        overwrites = find_overwrites(function)
    for dot in find_not_followed(function):
        context.remarks.missed(
            dot,
            "it may be unfinished where the next iteration of scf.while writes A's registers: "
            "this was not checked",
        )


def _finish_dots(overwrite: Overwrite, context: PassContext) -> None:
    values = [*overwrite.accumulators, *overwrite.sources]
    wait = _create_wait(overwrite.place, values, 0)
    for value, waited in zip(values, wait.results, strict=True):
        for use in list(value.uses):
            user = use.owner.operation
            if user != wait and dominates(wait, user):
                user.operands[use.operand_number] = waited
    context.remarks.passed(
        overwrite.writer,
        f"inserted a wait for all dots before {overwrite.writer.name}, which may write "
        "registers that a dot of the last iteration still reads",
    )


def _create_wait(before: Operation, values: list[ir.Value], pendings: int) -> Operation:
    return Operation.create(
        WAIT,
        results=[value.type for value in values],
        operands=values,
        attributes={"pendings": _pendings(pendings, before)},
        loc=before.location,
        ip=ir.InsertionPoint(before),
    )


def _set_pendings(wait: Operation, pendings: int) -> None:
    wait.attributes["pendings"] = _pendings(pendings, wait)


def _pendings(count: int, operation: engine.Operation) -> ir.IntegerAttr:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32, operation.context), count)
