"""Cloning an epilogue for a window of the tile."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilepass.ir.build import Builder, set_attribute
from tilepass.ir.engine import Operation, ir, plain, same_value
from tilepass.ir.layouts import TensorType, parse_type
from tilepass.passes.triton.epilogue_warp_specialize.description import Refusal
from tilepass.passes.triton.epilogue_warp_specialize.tile_axes import Needed, TileSlice
from tilepass.passes.triton.epilogue_warp_specialize.tile_shapes import (
    Axes,
    LayoutError,
    Layouts,
    Window,
)

Scalars = Callable[[ir.Value], ir.Value]
"""A scalar's counterpart in the partition that is being built."""


class TileClone:
    """The tensors of one window, as they come into being.

    `accumulator` is the window's part of the dot's result, in the layout that `layouts` gives it.
    """

    def __init__(
        self,
        source: TileSlice,
        window: Window,
        layouts: Layouts,
        accumulator: ir.Value,
        scalars: Scalars,
    ) -> None:
        self.window = window
        self._source = source
        self._layouts = layouts
        self._accumulator = accumulator
        self._scalars = scalars
        self._values: dict[tuple[ir.Value, Axes], ir.Value] = {}

    def value(self, value: ir.Value, axes: Axes) -> ir.Value:
        """What stands for a value of the original epilogue: a scalar, or its part."""
        if not ir.RankedTensorType.isinstance(value.type):
            return self._scalars(value)
        if same_value(value, self._source.accumulator):
            return self._accumulator
        return self._values[plain(value), axes]

    def bind(self, needed: Needed, results: Sequence[ir.Value]) -> None:
        """Let these stand for the results of an operation that is not cloned."""
        for old, new in zip(needed.operation.results, results, strict=True):
            self._values[plain(old), needed.axes] = plain(new)

    def result_type(self, needed: Needed, builder: Builder) -> ir.Type:
        """The type of an operation's result in the window."""
        return self._type(needed.operation.results[0], needed.axes, builder)

    def clone(self, needed: Needed, builder: Builder) -> None:
        """Clone an operation for the window."""
        operation = needed.operation
        types = [self._type(each, needed.axes, builder) for each in operation.results]
        copy = operation.clone(builder.place).operation
        for result, type_ in zip(copy.results, types, strict=True):
            result.set_type(type_)
        self._set_operands(copy, needed)
        if operation.name == "tt.make_range":
            self._shift_range(copy, needed.axes)
        elif operation.name == "arith.constant":
            _retype_constant(copy, types[0])
        self.bind(needed, list(copy.results))

    def _set_operands(self, copy: Operation, needed: Needed) -> None:
        axes = needed.operand_axes
        for index, (operand, each) in enumerate(zip(needed.operation.operands, axes, strict=True)):
            copy.operands[index] = self.value(operand, each)

    def _type(self, value: ir.Value, axes: Axes, builder: Builder) -> ir.Type:
        view = parse_type(value.type)
        assert isinstance(view, TensorType)
        return builder.type(self._layouts.type(view, axes))

    def _shift_range(self, copy: Operation, axes: Axes) -> None:
        (axis,) = axes
        if axis is None:
            return
        first = ir.IntegerAttr(copy.attributes["start"]).value + self.window.offset[axis]
        set_attribute(copy, "start", f"{first} : i32")
        set_attribute(copy, "end", f"{first + self.window.size[axis]} : i32")


def _retype_constant(copy: Operation, type_: ir.Type) -> None:
    text = str(copy.attributes["value"])
    set_attribute(copy, "value", f"{text[: text.rindex(' : tensor<')]} : {type_}")


def layouts_for(
    source: TileSlice, window: Window, warps: int, blame: Operation
) -> Layouts | Refusal:
    """The layouts of a window on so many warps, or the one that cannot be had; `blame` is the
    operation that a refusal names."""
    layouts = Layouts(source.types, window, warps)
    for type_, axes in source.types:
        try:
            layouts.type(type_, axes)
        except LayoutError as error:
            return Refusal(blame, str(error))
    return layouts
