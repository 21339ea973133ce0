"""Copies of a nest's operations: as they are, and for a window of the tile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tilepass.core.refusal import Refusal
from tilepass.ir import engine
from tilepass.ir.build import Builder, set_attribute
from tilepass.ir.engine import Operation, ir
from tilepass.ir.layouts import Encoding, Slice, TensorType, parse_type
from tilepass.ir.loops import defining_operation

from .axes import ACCUMULATOR, CONVERT, SPLIT, Needed, TileSlice, expanded_axis, is_spread
from .description import PersistentNest, once
from .windows import Axes, LayoutError, Layouts, Window


class Clones:
    """Which value stands for which of the source; a value without a stand-in is itself."""

    def __init__(self, values: dict[ir.Value, ir.Value] | None = None) -> None:
        self._values = dict(values or {})

    def __getitem__(self, value: ir.Value) -> ir.Value:
        return self._values.get(value, value)

    def __setitem__(self, value: ir.Value, stand_in: ir.Value) -> None:
        self._values[value] = stand_in

    def of(self, values: Iterable[ir.Value]) -> list[ir.Value]:
        return [self[value] for value in values]

    def nested(self) -> Clones:
        """The same at first; what it learns stays with it."""
        return Clones(self._values)

    def copy(self, operation: Operation, builder: Builder) -> Operation:
        """A copy of an operation; its results stand for the source's from now on."""
        clone = operation.clone(ip=builder.place).operation
        for each in engine.operations(clone) if len(clone.regions) else [clone]:
            for index, operand in enumerate(each.operands):
                if (stand_in := self._values.get(operand)) is not None:
                    each.operands[index] = stand_in
        for source, result in zip(operation.results, clone.results, strict=True):
            self[source] = result
        return clone


Scalars = Callable[[ir.Value], ir.Value]
"""A scalar's counterpart in the partition that is being built."""


class TileClone:
    """The tensors of one window, as they come into being."""

    def __init__(
        self,
        source: TileSlice,
        window: Window,
        layouts: Layouts,
        scalars: Scalars,
    ) -> None:
        self.window = window
        self._source = source
        self._layouts = layouts
        self._scalars = scalars
        self._values: dict[tuple[ir.Value, Axes], ir.Value] = {}

    def set_accumulator(self, value: ir.Value) -> None:
        """The window's part of the dot's result, in the layout that `layouts` gives it."""
        self._values[self._source.accumulator, ACCUMULATOR] = value

    def value(self, value: ir.Value, axes: Axes) -> ir.Value:
        """What stands for a value of the original epilogue: a scalar, or its part."""
        if not isinstance(value.type, ir.RankedTensorType):
            return self._scalars(value)
        return self._values[value, axes]

    def bind(self, needed: Needed, results: Sequence[ir.Value]) -> None:
        """Let these stand for the results of an operation that is not cloned."""
        for old, new in zip(needed.operation.results, results, strict=True):
            self._values[old, needed.axes] = new

    def type_of(self, value: ir.Value, axes: Axes) -> ir.Type:
        return self._layouts.part(value.type, axes)

    def clone(self, needed: Needed, builder: Builder) -> None:
        """Clone an operation for the window.

        What is broadcast and then converted to another layout is converted first: a row or a column
        instead of all of the window.
        """
        operation = needed.operation
        if operation.name == CONVERT and is_spread(operation.operands[0]):
            self.bind(needed, [self._spread(needed, builder)])
            return
        if operation.name == SPLIT:
            # The window is in one of the halves: what they are cut from is that half there.
            half = self.value(needed.operands[0], needed.operand_axes[0])
            wanted = self.type_of(operation.results[0], needed.axes)
            half = half if half.type == wanted else builder.convert_layout(half, wanted)
            self.bind(needed, [half, half])
            return
        types = [self.type_of(each, needed.axes) for each in operation.results]
        copy = operation.clone(builder.place).operation
        for result, type_ in zip(copy.results, types, strict=True):
            result.set_type(type_)
        self._set_operands(copy, needed)
        if operation.name == "tt.make_range":
            self._shift_range(copy, needed.axes)
        elif operation.name == "tt.descriptor_load":
            coordinates = self.coordinates(
                operation.operands[1:], needed.axes, Builder.before(copy)
            )
            for index, value in enumerate(coordinates, start=1):
                copy.operands[index] = value
        elif operation.name == "arith.constant":
            _retype_constant(copy, types[0])
        self.bind(needed, list(copy.results))

    def coordinates(
        self, values: Sequence[ir.Value], axes: Axes, builder: Builder
    ) -> list[ir.Value]:
        """Where the window begins in an array in which the tile begins at these coordinates."""
        return shifted([self._scalars(each) for each in values], self.window.start(axes), builder)

    def _spread(self, needed: Needed, builder: Builder) -> ir.Value:
        view = parse_type(needed.operation.results[0].type)
        assert isinstance(view, TensorType)
        encoding = self._layouts.type(view, needed.axes).encoding
        assert encoding is not None
        return self._in_layout(needed.operation.operands[0], needed.axes, encoding, builder)

    def _in_layout(
        self, value: ir.Value, axes: Axes, encoding: Encoding, builder: Builder
    ) -> ir.Value:
        """A value's part, computed in this layout as far back as that is no more work."""
        operation = defining_operation(value)
        assert operation is not None
        if operation.name == CONVERT:
            return self._in_layout(operation.operands[0], axes, encoding, builder)
        type_ = self._layouts.part(value.type, axes, encoding)
        if not is_spread(value):
            return builder.convert_layout(self.value(value, axes), type_)
        if operation.name == "tt.expand_dims":
            encoding = Slice(dim=expanded_axis(operation), parent=encoding)
        operands = [
            self._in_layout(operand, each, encoding, builder)
            if isinstance(operand.type, ir.RankedTensorType)
            else self._scalars(operand)
            for operand, each in zip(
                operation.operands, Needed(operation, axes).operand_axes, strict=True
            )
        ]
        copy = operation.clone(builder.place).operation
        copy.results[0].set_type(type_)
        for index, operand in enumerate(operands):
            copy.operands[index] = operand
        if operation.name == "arith.constant":
            _retype_constant(copy, type_)
        return copy.results[0]

    def _set_operands(self, copy: Operation, needed: Needed) -> None:
        axes = needed.operand_axes
        for index, (operand, each) in enumerate(zip(needed.operation.operands, axes, strict=True)):
            copy.operands[index] = self.value(operand, each)

    def _shift_range(self, copy: Operation, axes: Axes) -> None:
        (axis,), (begin,) = axes, self.window.start(axes)
        if axis is None:
            return
        first = ir.IntegerAttr(copy.attributes["start"]).value + begin
        (count,) = ir.RankedTensorType(copy.results[0].type).shape
        set_attribute(copy, "start", f"{first} : i32")
        set_attribute(copy, "end", f"{first + count} : i32")


def unread(source: TileSlice, staged: Mapping[Operation, ir.Value]) -> frozenset[Needed]:
    """What no clone reads, because conversions of what is spread are computed anew.

    `staged` is what the TMA stores bring to their buffers.
    """
    found: list[Needed] = []
    used: set[tuple[ir.Value, Axes]] = set()
    for each in reversed(source.needed):
        results = [(result, each.axes) for result in each.operation.results]
        if results and used.isdisjoint(results):
            found.append(each)
        elif each.operation in staged:
            used.add((staged[each.operation], each.axes))
        else:
            used.update(_read_by(each))
    return frozenset(found)


def _read_by(needed: Needed) -> Iterator[tuple[ir.Value, Axes]]:
    """The values that a clone reads, with their axes."""
    operands = needed.operands
    if needed.operation.name == CONVERT and is_spread(operands[0]):
        yield from _spread_from(operands[0], needed.axes)
    else:
        yield from zip(operands, needed.operand_axes, strict=True)


def _spread_from(value: ir.Value, axes: Axes) -> Iterator[tuple[ir.Value, Axes]]:
    """The tensors that a spread value is computed from in another layout: those that are not spread
    themselves."""
    if not is_spread(value):
        yield value, axes
        return
    operation = defining_operation(value)
    assert operation is not None
    operand_axes = Needed(operation, axes).operand_axes
    for operand, each in zip(operation.operands, operand_axes, strict=True):
        if isinstance(operand.type, ir.RankedTensorType):
            yield from _spread_from(operand, each)


def shifted(
    coordinates: Sequence[ir.Value], start: Sequence[int], builder: Builder
) -> list[ir.Value]:
    """The coordinates of what begins `start` elements after these, in the last dimensions."""
    start = (*[0] * (len(coordinates) - len(start)), *start)
    return [
        builder.integer("addi", value, builder.constant(each)) if each else value
        for value, each in zip(coordinates, start, strict=True)
    ]


def _retype_constant(copy: Operation, type_: ir.Type) -> None:
    text = str(copy.attributes["value"])
    set_attribute(copy, "value", f"{text[: text.rindex(' : tensor<')]} : {type_}")


def layouts_for(
    nest: PersistentNest, source: TileSlice, window: Window, warps: int
) -> Layouts | Refusal:
    """The layouts of a window on so many warps, or the one that cannot be had."""
    return _layouts_of_size(nest, source, window.size, warps)


@once
def _layouts_of_size(
    nest: PersistentNest, source: TileSlice, size: tuple[int, int], warps: int
) -> Layouts | Refusal:
    layouts = Layouts(source.types, Window.whole(size), warps, source.like)
    try:
        for type_, _ in source.types:
            if type_.encoding is not None:
                layouts.encoding(type_.encoding)
    except LayoutError as error:
        return Refusal(nest.dot, str(error))
    return layouts
