"""Sketching a kernel: which way a program goes and which part of its arrays it touches.

Scalars are computed, and tensors of indices and pointers where extents are asked for; all other
values stay unknown. That is a hundred times cheaper than executing: many sizes can be tried.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import add, gt, itemgetter
from typing import Any

import numpy as np

from tilepass.core.errors import ParseError
from tilepass.ir import engine
from tilepass.ir.engine import ir
from tilepass.sim.arguments import bind
from tilepass.sim.compiler import Function, FunctionCompiler, Program
from tilepass.sim.coverage import Coverage, Spot
from tilepass.sim.effects import Effects
from tilepass.sim.elements import ValueType, element_of
from tilepass.sim.inputs import Shapes, make_arguments
from tilepass.sim.memory import GlobalMemory
from tilepass.sim.ops_ttg import ring
from tilepass.sim.parameter_groups import Group, grouped
from tilepass.sim.poison import Poison
from tilepass.sim.protocol.problems import Place, reads_numbers, rounded
from tilepass.sim.protocol.recorder import Recorder
from tilepass.sim.protocol.steps import TENSOR, make_step
from tilepass.sim.site import OPERATIONS, CannotSimulate, Site
from tilepass.sim.state import Frame, Step, Suspending

_SPAN_BITS = 42
_ARRAYS_OF_NUMBERS = 64

_LOADS_AND_STORES = ("tt.load", "tt.store", "tt.atomic_rmw", "tt.atomic_cas",
                     "ttg.async_copy_global_to_local")  # fmt: skip
_BOXES = ("tt.descriptor_load", "tt.descriptor_store", "tt.descriptor_reduce",
          "ttng.async_tma_copy_global_to_local", "ttng.async_tma_copy_local_to_global",
          "ttng.async_tma_reduce")  # fmt: skip
_ARRAYS = ("tt.make_tensor_descriptor", "tt.make_tensor_ptr")


@dataclass(frozen=True)
class _HostBox:
    """A descriptor parameter."""

    name: str


@dataclass(frozen=True)
class _Described:
    """A descriptor that the kernel made."""

    shape: tuple[int, ...]


@dataclass
class Reach:
    """How far programs reach: bytes of each pointer's array, ends of each descriptor's boxes.

    `unknown`: addresses came from memory, so there may be more.
    """

    bytes: dict[int, int] = field(default_factory=dict[int, int])
    boxes: dict[tuple[str, Spot], tuple[tuple[int, int], ...]] = field(
        default_factory=dict[tuple[str, Spot], tuple[tuple[int, int], ...]]
    )
    """(end, size) of the farthest box in each dimension."""
    unknown: bool = False

    def add(self, address: int, end: int) -> None:
        """Bytes from an address of a buffer's span on."""
        number = (address >> _SPAN_BITS) - 1
        offset = end - ((number + 1) << _SPAN_BITS) - (1 << (_SPAN_BITS - 1))
        self.bytes[number] = max(self.bytes.get(number, 0), offset)

    def merge(self, other: Reach) -> None:
        """Include another program's."""
        for number, size in other.bytes.items():
            self.bytes[number] = max(self.bytes.get(number, 0), size)
        for key, ends in other.boxes.items():
            self.boxes[key] = _farthest(self.boxes.get(key), ends)
        self.unknown |= other.unknown


def _farthest(
    known: tuple[tuple[int, int], ...] | None, ends: tuple[tuple[int, int], ...]
) -> tuple[tuple[int, int], ...]:
    return ends if known is None else tuple(map(max, known, ends))


@dataclass
class _Sketcher(Recorder):
    """The state of a program that is being sketched."""

    deep: bool = False
    reach: Reach = field(default_factory=Reach)


@dataclass(frozen=True)
class Sketch:
    """What one program does. `steps` counts operations."""

    coverage: Coverage
    reach: Reach
    steps: int


class SketchProgram(Program):
    """A kernel, compiled for sketching.

    Operations that nobody knows are taken to return something unknown.
    """

    def __init__(self, module: engine.Module, kernel: str | None = None) -> None:
        super().__init__(module, kernel)
        self.groups = grouped(self.parameters)
        self._reads_numbers = reads_numbers(self)

    def _compiler(self, function: Function) -> FunctionCompiler:
        return _Compiler(self, function)

    def sketch(
        self, shapes: Shapes, program: Place, grid: Place, limit: int, *, deep: bool = False
    ) -> Sketch:
        """Sketch a program of a grid. With `deep`, also what it reaches through pointers.

        Raises Fault where control flow depends on something unknown, the program does something
        undefined, or takes more than `limit` steps.
        """
        values, memory = self._bind(shapes)
        state = _Sketcher(memory, Effects(), program, grid, limit, deep=deep)
        frame = self.entry.frame(state)
        with np.errstate(all="ignore"):
            self.entry.body.enter(frame, values)
        return Sketch(state.coverage, state.reach, limit - state.budget)

    def number_of(self, group: Group) -> int:
        """The number of a pointer's array in `Reach.bytes`."""
        return [each.name for each in self.groups].index(group.name)

    def _bind(self, shapes: Shapes) -> tuple[list[Any], GlobalMemory]:
        memory = GlobalMemory()
        if self._reads_numbers:
            small = dict(shapes.named.items())
            arguments = make_arguments(
                self.parameters, Shapes(min(shapes.size, _ARRAYS_OF_NUMBERS), small), 0
            )
            values = bind(self.parameters, arguments, memory).values
        else:
            values = [self._value(group, at, shapes) for group, at in self._numbered()]
            values = [each for some in values for each in some]
        place = 0
        for group in self.groups:
            if group.parameter.type.form == "descriptor":
                values[place] = _HostBox(group.name)
            place += 1 + len(group.replaced) + len(group.sizes) + len(group.strides)
        return values, memory

    def _numbered(self) -> list[tuple[Group, int]]:
        return [(group, number) for number, group in enumerate(self.groups)]

    def _value(self, group: Group, number: int, shapes: Shapes) -> list[Any]:
        parameter = group.parameter
        base = ((number + 1) << _SPAN_BITS) + (1 << (_SPAN_BITS - 1))
        if group.rank is not None:
            extents = shapes.named.get(group.name)
            if not isinstance(extents, tuple):
                extents = (shapes.size,) * group.rank
            strides = [int(np.prod(extents[axis + 1 :])) for axis in range(group.rank)]
            own = [*extents, *strides, False, False][: len(group.replaced)]
            behind = [*extents, *strides] if group.sizes else []
            return [base, *own, *behind]
        type_ = parameter.type
        if type_.form != "scalar" or type_.element is None:
            return [None]
        if type_.of.kind == "pointer":
            return [base]
        given = shapes.named.get(parameter.name)
        if type_.of.kind == "float":
            return [type_.of.scalar(0.5 if isinstance(given, tuple) or given is None else given)]
        number_ = given if isinstance(given, int) else shapes.size
        return [type_.of.scalar(rounded(number_, parameter))]


class _Compiler(FunctionCompiler):
    program: SketchProgram

    def _step(self, operation: engine.Operation, lifted: bool) -> Step | Suspending:
        site = Site(self, operation, lifted)
        step = _by_value(site) if _is_index(site) else self._protocol_step(site)
        if watch := _watch(site):
            return _both(watch, step)
        return step

    def _protocol_step(self, site: Site) -> Step:
        try:
            return make_step(site, lambda _: None)
        except (CannotSimulate, ParseError):
            return _unknown(site)


def _unknown(site: Site) -> Step:
    results = site.results

    def step(frame: Frame) -> None:
        for slot in results:
            frame[slot] = TENSOR

    return step


def _both(watch: Step, step: Step) -> Step:
    def both(frame: Frame) -> None:
        step(frame)
        watch(frame)

    return both


def _is_index(site: Site) -> bool:
    """Whether an operation computes tensors of integers or pointers from such."""
    if not site.name.startswith(("arith.", "tt.", "ttg.convert_layout")) or site.name in (
        *_LOADS_AND_STORES, *_BOXES, *_ARRAYS, "tt.call"
    ):  # fmt: skip
        return False
    types = (*site.operand_types, *site.result_types)
    return (
        site.name in OPERATIONS
        and not len(site.operation.regions)
        and any(each.form == "tensor" for each in site.result_types)
        and all(_is_integral(each) for each in types)
    )


def _is_integral(type_: ValueType) -> bool:
    if type_.form not in ("scalar", "tensor"):
        return False
    return type_.of.kind != "float" and "tensor<" not in (type_.of.pointee or "")


def _by_value(site: Site) -> Step:
    operands, results = site.operands, site.results
    compute: Any = OPERATIONS[site.name](site)

    def step(frame: Frame) -> None:
        if not frame[0].deep or any(type(frame[slot]) is Poison for slot in operands):
            for slot in results:
                frame[slot] = TENSOR
        else:
            compute(frame)

    return step


def _watch(site: Site) -> Step | None:
    """What is written down after an operation."""
    if site.name in _LOADS_AND_STORES:
        return _watch_pointers(site)
    if site.name in _BOXES:
        return _watch_box(site)
    if site.name in _ARRAYS:
        return _watch_array(site)
    if site.name == "ttng.tensormap_create":
        return _watch_map(site)
    if site.name == "ttng.reinterpret_tensor_descriptor":
        return _watch_view(site)
    if site.name == "ttg.memdesc_index" and (spot := ring(site)):
        position = site.operands[1]
        return lambda frame: frame[0].coverage.slot(spot, frame[position])
    return None


def _watch_pointers(site: Site) -> Step | None:
    at = next(
        (
            index
            for index, type_ in enumerate(site.operand_types)
            if type_.form in ("tensor", "scalar") and type_.of.kind == "pointer"
        ),
        None,
    )
    if at is None or "tensor<" in (site.operand_types[at].of.pointee or ""):
        return None
    pointers, size = site.operands[at], _bytes_of(site.operand_types[at])
    masks = [
        slot
        for slot, type_ in zip(site.operands, site.operand_types, strict=True)
        if type_.form in ("tensor", "scalar") and type_.of.bits == 1
    ]
    mask, spot = masks[0] if masks else None, Spot.of(site.operation)

    def watch(frame: Frame) -> None:
        state: _Sketcher = frame[0]
        if not state.deep:
            return
        addresses, chosen = frame[pointers], None if mask is None else frame[mask]
        if type(addresses) is Poison or type(chosen) is Poison:
            state.reach.unknown = True
            return
        if chosen is not None:
            _note_edges(state.coverage, spot, np.asarray(chosen))
            addresses = np.broadcast_to(addresses, np.shape(chosen))[np.asarray(chosen)]
        if np.size(addresses):
            state.reach.add(int(np.min(addresses)), int(np.max(addresses)) + size)

    return watch


def _note_edges(coverage: Coverage, spot: Spot, mask: Any) -> None:
    """In which dimensions a mask cuts part of a block off."""
    for axis in range(mask.ndim):
        if mask.shape[axis] > 1:
            others = tuple(each for each in range(mask.ndim) if each != axis)
            along = mask.any(axis=others)
            if along.any() and not along.all():
                coverage.edges.add((spot, f"a tail in dimension {axis}"))


def _bytes_of(type_: ValueType) -> int:
    return element_of(type_.of.pointee or "i8").size


def _watch_box(site: Site) -> Step:
    shape = site.operand_types[0].shape
    integers = [
        slot
        for slot, type_ in zip(site.operands, site.operand_types, strict=True)
        if type_.text == "i32"
    ]
    descriptor, spot = site.operands[0], Spot.of(site.operation)
    slots = integers[: len(shape)]
    by_predicate = [s for s, t in zip(site.operands, site.operand_types, strict=True)
                    if t.text == "i1"]  # fmt: skip

    def watch(frame: Frame) -> None:
        state: _Sketcher = frame[0]
        target, where = frame[descriptor], [frame[slot] for slot in slots]
        for slot in by_predicate:
            if type(frame[slot]) is not Poison and not frame[slot]:
                return
        if len(where) != len(shape) or Poison in map(type, where):
            state.reach.unknown = True
        elif isinstance(target, _HostBox):
            known = state.reach.boxes.get((target.name, spot))
            # Most boxes of a loop lie within those before.
            if known and not any(map(gt, map(add, where, shape), map(itemgetter(0), known))):
                return
            ends = tuple((at + size, size) for at, size in zip(where, shape, strict=True))
            if all(end <= _FAR for end, _ in ends):
                key = target.name, spot
                state.reach.boxes[key] = _farthest(state.reach.boxes.get(key), ends)
        elif isinstance(target, _Described):
            for axis, (at, size) in enumerate(zip(where, shape, strict=True)):
                if at < target.shape[axis] < at + size:
                    state.coverage.edges.add((spot, f"a tail in dimension {axis}"))

    return watch


# Boxes that are to be dropped as a whole are stored there.
_FAR = 1 << 26


def _watch_array(site: Site) -> Step:
    rank = len(site.result_type.shape)
    base, *rest = site.operands
    if site.name == "tt.make_tensor_ptr":
        rank = len(rest) // 3
    sizes, strides = rest[:rank], rest[rank : 2 * rank]
    result, size = site.result, _bytes_of(site.operand_types[0])

    def watch(frame: Frame) -> None:
        extents = [frame[slot] for slot in sizes]
        steps = [frame[slot] for slot in strides]
        address = frame[base]
        if any(type(each) is Poison for each in (address, *extents, *steps)):
            frame[0].reach.unknown = True
            return
        frame[result] = _Described(tuple(extents))
        if all(each > 0 for each in extents):
            last = sum((n - 1) * step for n, step in zip(extents, steps, strict=True))
            frame[0].reach.add(address, address + (last + 1) * size)

    return watch


def _watch_map(site: Site) -> Step:
    """What descriptors that the kernel made have become: the innermost dimension comes first, all
    other strides are in bytes. Where the map lies stands for what it describes."""
    (place,), (base,), _, sizes, strides = site.groups[:5]
    size = _bytes_of(site.operand_types[1])

    def watch(frame: Frame) -> None:
        extents = [frame[slot] for slot in sizes]
        steps = [size, *(frame[slot] for slot in strides)]
        address = frame[base]
        if any(type(each) is Poison for each in (address, *extents, *steps)):
            frame[0].reach.unknown = True
            return
        frame[place] = _Described(tuple(reversed(extents)))
        if all(each > 0 for each in extents):
            last = sum((n - 1) * step for n, step in zip(extents, steps, strict=True))
            frame[0].reach.add(address, address + last + size)

    return watch


def _watch_view(site: Site) -> Step:
    place, result = site.operands[0], site.result

    def watch(frame: Frame) -> None:
        if isinstance(frame[place], _Described):
            frame[result] = frame[place]

    return watch


def constant_grid(module: engine.Module) -> int | None:
    """The number of programs that a kernel takes for granted: the constant by which a program goes
    from one tile to its next, beginning at its own number."""
    found = [
        step
        for operation in engine.operations(module)
        for step in (_loop_step(operation), _carried_step(operation))
        if step is not None and step > 1
    ]
    return max(found, default=None)


def _loop_step(operation: engine.Operation) -> int | None:
    if operation.name != "scf.for" or not _is_program(operation.operands[0]):
        return None
    return _number(operation.operands[2])


def _carried_step(operation: engine.Operation) -> int | None:
    """Of a fused loop: what is added to a carried value that begins with the program's number."""
    if operation.name != "arith.addi":
        return None
    for value, other in (operation.operands, reversed(list(operation.operands))):
        owner: Any = value.owner
        if isinstance(owner, ir.Block) and (step := _number(other)) is not None:
            loop = _owner_of(owner)
            index = ir.BlockArgument(value).arg_number
            if loop is not None and loop.name == "scf.for" and index > 0:
                initial = loop.operands[2 + index]
                if _is_program(initial):
                    return step
    return None


def _owner_of(block: ir.Block) -> engine.Operation | None:
    owner: Any = block.owner
    return getattr(owner, "operation", owner)


def _is_program(value: ir.Value) -> bool:
    """Whether a value is the program's number, a constant added or not."""
    owner: Any = value.owner
    if isinstance(owner, ir.Block):
        return False
    if owner.name in ("arith.addi", "arith.subi") and _number(owner.operands[1]) is not None:
        return _is_program(owner.operands[0])
    if owner.name in ("arith.extsi", "arith.index_cast", "arith.trunci"):
        return _is_program(owner.operands[0])
    return owner.name == "tt.get_program_id"


def _number(value: ir.Value) -> int | None:
    owner: Any = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return None
    attribute: Any = owner.attributes["value"]
    return attribute.value if isinstance(attribute, ir.IntegerAttr) else None
