"""Loops that copy a tensor element by element between registers and memory.

for i in cutlass.range(cute.size(registers), unroll_full=True):
    row, column = coordinates[i]
    memory[column, row] = registers[i]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd

from tilepass.ir.build import Builder
from tilepass.ir.cute import (
    SEGMENTS,
    CoordinateTensor,
    Layout,
    StaticTensor,
    build,
    coordinate_tensor,
    flat,
    is_made_of_its_operands,
    joined,
    static_tensor,
    view_at,
)
from tilepass.ir.engine import Operation, ir
from tilepass.ir.loops import Loop, constant_int, defining_operation

_LOAD, _STORE = "cute.memref.load", "cute.memref.store"
_WITHOUT_EFFECT = frozenset(
    {
        "cute.deref_arith_tuple_iter",
        "cute.get_iter",
        "cute.get_leaves",
        "cute.get_scalars",
        "cute.make_coord",
        "cute.slice",
        "scf.yield",
    }
)
_REGISTERS = "rmem"
# Coordinates and their sums are counted in 32 bits.
_LIMIT = 1 << 31
LONGEST = 256
"""Elements of a loop that is still unrolled."""


@dataclass(frozen=True)
class Coordinates:
    """Where a loop takes the elements of a tensor from: for each mode of the tensor, the dimension
    of a coordinate tensor that counts it."""

    value: ir.Value
    tensor: CoordinateTensor
    dimensions: tuple[int, ...]


@dataclass(frozen=True)
class Side:
    """A tensor that a loop copies from or to.

    `offsets` are those of the loop's elements, in elements from the first one; the first lies where
    `coordinates` say, at the tensor's begin without any. `align` is the first element's alignment
    in bytes.
    """

    value: ir.Value
    tensor: StaticTensor
    coordinates: Coordinates | None
    offsets: tuple[int, ...]
    align: int

    def takes(self, width: int) -> bool:
        """Whether every `width` elements lie one behind the other, at a multiple of their size, and
        a swizzle keeps them together."""
        size = width * self.tensor.bits // 8
        return (
            size <= self.tensor.kept_together
            and self.align % size == 0
            and all(
                self.offsets[at] * self.tensor.bits // 8 % size == 0
                and all(
                    self.offsets[at + step] == self.offsets[at] + step for step in range(1, width)
                )
                for at in range(0, len(self.offsets), width)
            )
        )


@dataclass(frozen=True)
class CopyLoop:
    """A loop that does nothing but copy, one element each time. What it carries stays the same."""

    loop: Loop
    source: Side
    destination: Side

    @property
    def count(self) -> int:
        """Number of elements."""
        return len(self.source.offsets)

    def width(self, most: int) -> int:
        """Elements of the widest vector of at most so many bytes that both sides take."""
        width = max(1, most * 8 // self.source.tensor.bits)
        while width > 1 and not self._fits(width):
            width //= 2
        return width

    def _fits(self, width: int) -> bool:
        return (
            self.count % width == 0 and self.source.takes(width) and self.destination.takes(width)
        )

    def obstacle(self, most: int) -> str:
        """Why not even pairs of elements can be copied at once."""
        size = self.source.tensor.bits // 8
        if 2 * size > most:
            return f"two have more than {most} bytes"
        if self.count % 2:
            return "their number is odd"
        for side in (self.source, self.destination):
            space, kept = side.tensor.space, side.tensor.kept_together
            step = side.offsets[1] - side.offsets[0]
            if step != 1:
                return f"in {space} the second lies {step} elements behind the first"
            if kept < 2 * size:
                return f"in {space} {side.tensor.swizzle} keeps only {kept} bytes together"
            if side.align % (2 * size):
                return f"in {space} the first is only known to be aligned to {side.align}"
        return "pairs do not lie side by side, each at a multiple of its size"

    def __str__(self) -> str:
        size = self.source.tensor.bits // 8
        return f"copy loop, {counted(self.count, 'element')} of {counted(size, 'byte')}"


def counted(number: int, what: str) -> str:
    """`1 element`, `2 elements`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def copy_loop(loop: Loop) -> CopyLoop | str | None:
    """What a loop copies; None if it does not copy between registers and memory, and
    where it does, but not in a way that can be told when it is compiled, the reason."""
    accesses: dict[str, list[Operation]] = {_LOAD: [], _STORE: []}
    for each in loop.body.operations:
        if each.operation.name in accesses:
            accesses[each.operation.name].append(each.operation)
        elif each.operation.name not in _WITHOUT_EFFECT:
            return None
    loads, stores = accesses[_LOAD], accesses[_STORE]
    if len(loads) != 1 or len(stores) != 1:
        return None
    source, from_where = loads[0].operands
    destination, to_where, stored = stores[0].operands
    keeps = all(carried.argument == carried.yielded for carried in loop.carried)
    if not keeps or stored != loads[0].results[0]:
        return None
    lower, upper, step = map(constant_int, (loop.lower_bound, loop.upper_bound, loop.step))
    if upper is None:
        return "the number of elements is not a constant"
    if lower != 0 or step != 1 or upper < 1:
        return f"it counts from {lower} to {upper} by {step}; taken are loops from 0 upwards by 1"
    if upper > LONGEST:
        return f"it copies {upper} elements, and at most {LONGEST} are unrolled"
    sides: list[Side] = []
    for value, where in ((source, from_where), (destination, to_where)):
        side = _side(loop, value, where, upper)
        if isinstance(side, str):
            return side
        sides.append(side)
    if [side.tensor.space for side in sides].count(_REGISTERS) != 1:
        return None
    if sides[0].tensor.element != sides[1].tensor.element:
        return "it converts between types"
    return CopyLoop(loop, sides[0], sides[1])


def _side(loop: Loop, value: ir.Value, where: ir.Value, count: int) -> Side | str:
    outside = _outside(loop, value)
    if outside is None:
        return "the tensor changes from element to element"
    tensor = static_tensor(str(outside.type))
    if tensor is None:
        return f"the layout of {outside.type} has parts that are not followed"
    if _counts(loop, where):
        if count > tensor.layout.size:
            return f"it copies {count} of {tensor.layout.size} elements"
        offsets = tuple(map(tensor.layout.offset, range(count)))
        return Side(outside, tensor, None, offsets, tensor.align)
    coordinates = _coordinates(loop, _indices(where))
    if coordinates is None:
        return "its elements are not counted by the loop or taken from a coordinate tensor"
    return _at_coordinates(outside, tensor, coordinates, count)


def _at_coordinates(
    value: ir.Value, tensor: StaticTensor, coordinates: Coordinates, count: int
) -> Side | str:
    strides = flat(tensor.layout.stride)
    if not len(tensor.layout.modes) == len(strides) == len(coordinates.dimensions):
        return f"the coordinates do not count the modes of {tensor} one by one"
    if count > coordinates.tensor.size:
        return f"it takes {count} of {coordinates.tensor.size} coordinates"
    if max(strides) >= _LIMIT:
        return f"a stride of {max(strides)} does not fit 32 bits"
    begins = [coordinates.tensor.begin[dimension] for dimension in coordinates.dimensions]
    unit = gcd(
        *(
            (begin.divisor if begin.constant is None else begin.constant) * stride
            for begin, stride in zip(begins, strides, strict=True)
        )
    )
    align = gcd(tensor.align, unit * tensor.bits // 8)
    distances = [coordinates.tensor.distance(index) for index in range(count)]
    offsets = tuple(
        sum(
            distance[dimension] * stride
            for dimension, stride in zip(coordinates.dimensions, strides, strict=True)
        )
        for distance in distances
    )
    return Side(value, tensor, coordinates, offsets, align)


def _coordinates(loop: Loop, indices: Sequence[ir.Value]) -> Coordinates | None:
    """Indices that are leaves of one coordinate tensor's element, which the loop counts."""
    found: list[tuple[ir.Value, int]] = []
    for index in indices:
        element = _made_by(index, "cute.get_leaves")
        if element is None:
            return None
        results = element.results
        number = next(at for at, each in enumerate(results) if each == index)
        for name in ("cute.deref_arith_tuple_iter", "cute.get_iter", "cute.slice"):
            element = _made_by(element.operands[0], name)
            if element is None:
                return None
        value, where = element.operands
        outside = _outside(loop, value)
        if not _counts(loop, where) or outside is None:
            return None
        found.append((outside, number))
    if not found or not all(value == found[0][0] for value, _ in found):
        return None
    tensor = coordinate_tensor(str(found[0][0].type))
    if tensor is None:
        return None
    return Coordinates(found[0][0], tensor, tuple(number for _, number in found))


def _indices(coordinate: ir.Value) -> list[ir.Value]:
    """What a coordinate is made of, nothing if it comes from elsewhere or has constant parts."""
    made = _made_by(coordinate, "cute.make_coord")
    indices = list(made.operands) if made is not None else []
    return indices if is_made_of_its_operands(str(coordinate.type), len(indices)) else []


def _outside(loop: Loop, value: ir.Value) -> ir.Value | None:
    """A value that does not change while the loop runs, as it is called outside."""
    for carried in loop.carried:
        if carried.argument == value:
            return carried.initial
    return None if loop.defines(value) else value


def _counts(loop: Loop, coordinate: ir.Value) -> bool:
    """Whether a coordinate is the loop's counter."""
    return _indices(coordinate) == [loop.induction_variable]


def _made_by(value: ir.Value, name: str) -> Operation | None:
    operation = defining_operation(value)
    return operation if operation is not None and operation.name == name else None


# A tensor, and neither a mask nor what stands for the elements that are masked out.
_UNMASKED = {SEGMENTS: "array<i32: 1, 0, 0>"}


def emit_vectors(copy: CopyLoop, width: int) -> None:
    """Replace a loop by one load and one store for every `width` elements."""
    builder = Builder.before(copy.loop.operation)
    begins = [_begin(builder, side) for side in (copy.source, copy.destination)]
    for at in range(0, copy.count, width):
        source, destination = (
            view_at(builder, *begin, side.offsets[at], joined((Layout(width, 1),)))
            for begin, side in zip(begins, (copy.source, copy.destination), strict=True)
        )
        vector = f"vector<{width}x{copy.source.tensor.element}>"
        loaded = build(builder, "cute.memref.load_vec", [source], vector, _UNMASKED)
        builder.create("cute.memref.store_vec", [loaded, destination])
    for carried in copy.loop.carried:
        carried.result.replace_all_uses_with(carried.initial)
    copy.loop.operation.erase()


def _begin(builder: Builder, side: Side) -> tuple[ir.Value, StaticTensor]:
    """A pointer to a side's first element, and a tensor that begins there."""
    pointer = build(builder, "cute.get_iter", [side.value], side.tensor.pointer)
    if side.coordinates is None:
        return pointer, side.tensor
    first = replace(side.tensor, align=side.align)
    index = _index(builder, side.coordinates, side.tensor)
    unit = side.align * 8 // side.tensor.bits
    assumed = build(builder, "cute.assume", [index], f"!cute.i32<divby {unit}>")
    step = build(builder, "cute.make_int_tuple", [assumed], f'!cute.int_tuple<"?{{div={unit}}}">')
    return build(builder, "cute.add_offset", [pointer, step], first.pointer), first


def _index(builder: Builder, coordinates: Coordinates, tensor: StaticTensor) -> ir.Value:
    """The offset of the first element, in elements."""
    leaves, whole = coordinates.tensor.begin, coordinates.tensor.text
    place = build(
        builder, "cute.get_iter", [coordinates.value], f'!cute.arith_tuple_iter<"{whole}">'
    )
    tuple_ = build(builder, "cute.deref_arith_tuple_iter", [place], f'!cute.int_tuple<"{whole}">')
    types = [builder.type(f'!cute.int_tuple<"{leaf.text}">') for leaf in leaves]
    values = builder.create("cute.get_leaves", [tuple_], types).results
    total = builder.constant(0)
    for stride, dimension in zip(flat(tensor.layout.stride), coordinates.dimensions, strict=True):
        leaf = leaves[dimension]
        number = (
            builder.constant(leaf.constant)
            if leaf.constant is not None
            else build(builder, "cute.get_scalars", [values[dimension]], "i32")
        )
        scaled = builder.integer("muli", number, builder.constant(stride))
        total = builder.integer("addi", total, scaled)
    return total
