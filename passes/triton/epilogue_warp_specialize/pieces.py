"""An epilogue in pieces: what each computes, and what moves it; rows, and boxes of descriptors.

Rows and columns that an epilogue loads (a bias, a scale), kept in shared memory.

Before:  for each tile: dots; %b = tt.load of a row; accumulator + broadcast %b
After:   for each tile: %b = tt.load; first dot; ttg.local_store %b; dots;
                        for each piece: %p = ttg.local_load of its part of the row ...

Before the first dot a row takes a register or two of every thread, and its latency passes
under the dot. Without the buffer Triton would load it in the accumulator's layout, every thread a
quarter of it, where it is used: behind the main loop, with its latency in the open.

Descriptors of another box: half a tile, or one piece of an epilogue.

The launcher builds each tensor map from the types of the compiled kernel's arguments, so that a
descriptor argument may be given another type where every use of it is rewritten; the same holds for
descriptors that the kernel makes itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tilepass.analysis.memory_order import root_of
from tilepass.core.refusal import Refusal
from tilepass.ir.build import set_attribute
from tilepass.ir.build_async import AsyncBuilder
from tilepass.ir.engine import Operation, ir
from tilepass.ir.layouts import (
    MemDescType,
    SwizzledShared,
    TensorDescType,
    TensorType,
    element_bits,
    parse_type,
)
from tilepass.ir.loops import defining_operation
from tilepass.ir.walks import users

from .axes import ACCUMULATOR, CONVERT, SPLIT, STORES, Needed, TileSlice, is_spread
from .clones import Scalars, TileClone, layouts_for, unread
from .description import (
    PersistentNest,
    TmaAccess,
    bytes_of,
    in_memory,
    once,
    outer_dimensions,
    tensor_type,
)
from .match_main_loop import varying_descriptor
from .options import array_bytes, ring_bytes
from .windows import Axes, Columns, LayoutError, Layouts, Window, column_part, descriptor_of_box

_COLUMNS = 1

_CONVERSIONS = frozenset(
    ("arith.truncf", "arith.extf", "tt.fp_to_fp", CONVERT, SPLIT, "tt.descriptor_store")
)


@dataclass(frozen=True)
class Pieces:
    """A consumer's window of the tile in equal pieces along N, and what moves one of them.

    `load_slots` and `store_slots` tell which buffers of a piece a TMA load or store has. Loads and
    stores of different pieces, where the kernel cuts the tile itself, share them.
    """

    nest: PersistentNest
    source: TileSlice
    windows: tuple[Window, ...]
    layouts: Layouts
    boxes: Boxes
    rows: Rows
    load_slots: Slots
    store_slots: Slots

    @cached_property
    def accumulator_type(self) -> TensorType:
        """A piece of the dot's result."""
        return self.layouts.type(tensor_type(self.source.accumulator), ACCUMULATOR)

    @cached_property
    def only_converts(self) -> bool:
        """Whether the dot's result is stored as it is, but for its type."""
        names = {each.operation.name for each in self.source.needed}
        return names <= _CONVERSIONS

    @cached_property
    def cloned(self) -> list[Needed]:
        staged = {store.operation: store.value for store in self.nest.tma_stores}
        others = self.rows.computed | unread(self.source, staged)
        return [each for each in self.source.needed if each not in others]

    @cached_property
    def load_blocks(self) -> list[TensorType]:
        """What a piece needs of each tile load."""
        return list(_blocks(self.nest.tile_loads, self.load_slots, self.boxes).values())

    @cached_property
    def store_blocks(self) -> list[TensorType]:
        """What a piece brings to each TMA store."""
        return list(_blocks(self.nest.tma_stores, self.store_slots, self.boxes).values())

    def buffer_bytes(self, buffers: int, in_place: bool) -> int:
        """Shared memory for so many pieces of every load and store."""
        loads = sum(ring_bytes([block], buffers) for block in self.load_blocks)
        stores = 0 if in_place else sum(array_bytes(block, buffers) for block in self.store_blocks)
        return loads + stores + self.rows.bytes

    @cached_property
    def can_be_in_place(self) -> bool:
        """Whether what a piece stores can take the place of what it loads: it has one TMA load and
        one TMA store, of equal blocks, in this order."""
        if len(self.load_blocks) != 1 or self.load_blocks != self.store_blocks:
            return False
        moving = {*self.load_slots, *self.store_slots}
        for window in self.windows:
            found = [
                each
                for each in self.source.needed
                if each.operation in moving and window.holds(each.axes)
            ]
            loads = [each.operation in self.load_slots for each in found]
            if loads != [True, False] or found[0].axes != found[1].axes:
                return False
        return True

    @cached_property
    def scratch_bytes(self) -> int:
        """What the largest change of layout in a piece takes at most."""
        return max((self._scratch_of(each) for each in self.source.needed), default=0)

    def _scratch_of(self, needed: Needed) -> int:
        operation = needed.operation
        if operation.name != CONVERT or is_read_so(operation, self.nest):
            return 0
        type_ = self.layouts.type(tensor_type(operation.results[0]), needed.axes)
        if is_spread(operation.operands[0]):
            # A row or a column.
            type_ = replace(type_, shape=(max(type_.shape),))
        return bytes_of(type_)


@once
def pieces_of(
    nest: PersistentNest, source: TileSlice, window: Window, count: int, warps: int
) -> Pieces | Refusal:
    """A window's pieces on so many warps, or what stands against them."""
    if window.size[_COLUMNS] % count:
        return Refusal(nest.dot, f"{window.size[_COLUMNS]} columns in {count} pieces")
    windows = window.split(_COLUMNS, count)
    if cut := _cut_otherwise(nest, source, windows):
        return cut
    layouts = layouts_for(nest, source, windows[0], warps)
    if isinstance(layouts, Refusal):
        return layouts
    if uncut := _uncut(nest, source, window.size, count, warps):
        return uncut
    boxes = boxes_of(nest, source, windows[0].size)
    if isinstance(boxes, Refusal):
        return boxes
    for descriptor in boxes:
        if varying := varying_descriptor(nest.outer, nest.dot, descriptor):
            return varying
    rows = rows_of(nest, source, window, warps)
    if isinstance(rows, Refusal):
        return rows
    slots: list[Slots] = []
    for moved in (nest.tile_loads, nest.tma_stores):
        found = _slots_of(moved, source, windows, boxes)
        if isinstance(found, Refusal):
            return found
        slots.append(found)
    return Pieces(nest, source, windows, layouts, boxes, rows, *slots)


def _cut_otherwise(
    nest: PersistentNest, source: TileSlice, windows: Sequence[Window]
) -> Refusal | None:
    """Why pieces are not within those that the kernel itself cuts the tile into."""
    for needed in source.needed:
        if any(window.cuts(needed.axes) for window in windows):
            return Refusal(
                needed.operation,
                f"the kernel cuts the tile into {source.fewest_pieces} pieces: a piece of "
                f"{windows[0].size[_COLUMNS]} of {nest.tile[_COLUMNS]} columns is not within one",
            )
    return None


Slots = Mapping[Operation, int]
"""For each TMA load or store of an epilogue which of the buffers of a piece it has."""


def _slots_of(
    moved: Sequence[TmaAccess], source: TileSlice, windows: Sequence[Window], boxes: Boxes
) -> Slots | Refusal:
    """The same buffers for all pieces, also where the kernel has other operations for each."""
    operations = [each.operation for each in moved]
    found, counts = dict[Operation, int](), set[int]()
    for window in windows:
        here = {each.operation for each in source.needed if window.holds(each.axes)}
        own = [each for each in operations if each in here]
        counts.add(len(own))
        if len(counts) > 1 or any(found.setdefault(each, at) != at for at, each in enumerate(own)):
            return Refusal(operations[0], UNLIKE)
    blocks = _blocks(moved, found, boxes)
    for each in moved:
        slot = found.get(each.operation)
        if slot is not None and in_memory(boxes[each.descriptor]) != blocks[slot]:
            return Refusal(each.operation, UNLIKE)
    return found


UNLIKE = "the pieces that the kernel cuts the tile into are not loaded or stored alike"


def _blocks(moved: Sequence[TmaAccess], slots: Slots, boxes: Boxes) -> dict[int, TensorType]:
    """What each buffer of a piece holds."""
    found: dict[int, TensorType] = {}
    for each in moved:
        if each.operation in slots:
            found.setdefault(slots[each.operation], in_memory(boxes[each.descriptor]))
    return found


@once
def _uncut(
    nest: PersistentNest, source: TileSlice, size: tuple[int, int], count: int, warps: int
) -> Refusal | None:
    """Why the dot's result in a window of this size cannot be cut into pieces."""
    window = Window.whole(size)
    whole = layouts_for(nest, source, window, warps)
    layouts = layouts_for(nest, source, window.split(_COLUMNS, count)[0], warps)
    if isinstance(whole, Refusal):
        return whole
    if isinstance(layouts, Refusal):
        return layouts
    accumulator = tensor_type(source.accumulator)
    try:
        piece = column_part(whole.type(accumulator, ACCUMULATOR), count)
    except LayoutError as error:
        return Refusal(nest.dot, str(error))
    wanted = layouts.type(accumulator, ACCUMULATOR)
    if piece == wanted:
        return None
    return Refusal(nest.dot, f"pieces of the dot's result are of {piece}, wanted as {wanted}")


def read_as(load: Operation) -> ir.Value:
    """The value whose layout a loaded tile is read in: that of the conversions to one layout that
    are all its users, else the load's own."""
    converted = [user.results[0] for user in users(load.results[0]) if user.name == CONVERT]
    if len(converted) != len(users(load.results[0])) or len({str(v.type) for v in converted}) != 1:
        return load.results[0]
    return converted[0]


def is_read_so(operation: Operation, nest: PersistentNest) -> bool:
    """Whether a conversion is of a loaded tile that is read in its layout."""
    source = defining_operation(operation.operands[0]) if operation.name == CONVERT else None
    return (
        source is not None
        and nest.is_tile_load(source)
        and read_as(source).type == operation.results[0].type
    )


_PLAIN = SwizzledShared(vec=1, per_phase=1, max_phase=1, order=(0,))


@dataclass(frozen=True)
class Rows:
    """The loads of a consumer's window, and `computed`: what they alone are computed from."""

    window: Window
    layouts: Layouts
    early: tuple[Needed, ...]
    loads: tuple[Needed, ...]
    computed: frozenset[Needed]

    @cached_property
    def bytes(self) -> int:
        return sum(bytes_of(self._type(each)) for each in self.loads)

    @property
    def operands(self) -> list[ir.Value]:
        """The scalars that must be there before they are loaded."""
        operands = [operand for each in self.early for operand in each.operation.operands]
        return [each for each in operands if not isinstance(each.type, ir.RankedTensorType)]

    def allocate(self, builder: AsyncBuilder) -> tuple[ir.Value, ...]:
        types = [self._type(each) for each in self.loads]
        return tuple(
            builder.local_alloc(
                builder.type(MemDescType(each.shape, each.element, _PLAIN, mutable=True))
            )
            for each in types
        )

    def clear(self, buffers: Sequence[ir.Value], builder: AsyncBuilder) -> None:
        """Zeros in the buffers, for late pieces of no tile: nobody reads what was never written."""
        for needed, buffer in zip(self.loads, buffers, strict=True):
            builder.local_store(builder.zeros(builder.type(self._type(needed))), buffer)

    def load(self, source: TileSlice, scalars: Scalars, builder: AsyncBuilder) -> list[ir.Value]:
        """The rows of one tile, whole."""
        clone = TileClone(source, self.window, self.layouts, scalars)
        for needed in self.early:
            clone.clone(needed, builder)
        return [clone.value(each.operation.results[0], each.axes) for each in self.loads]

    def read(
        self, needed: Needed, buffer: ir.Value, piece: TileClone, builder: AsyncBuilder
    ) -> ir.Value:
        """A piece's part of a row."""
        (axis,) = needed.axes
        assert axis is not None
        assert not isinstance(axis, Columns)
        first = piece.window.offset[axis] - self.window.offset[axis]
        if piece.window.size[axis] != self.window.size[axis]:
            buffer = builder.subslice(buffer, 0, first, piece.window.size[axis])
        kind = piece.type_of(needed.operation.results[0], needed.axes)
        return builder.local_load(buffer, kind)

    def _type(self, needed: Needed) -> TensorType:
        return self.layouts.type(tensor_type(needed.operation.results[0]), needed.axes)


def rows_of(nest: PersistentNest, source: TileSlice, window: Window, warps: int) -> Rows | Refusal:
    layouts = layouts_for(nest, source, window, warps)
    if isinstance(layouts, Refusal):
        return layouts
    return Rows(window, layouts, *_taken_apart(nest, source))


@once
def _taken_apart(
    nest: PersistentNest, source: TileSlice
) -> tuple[tuple[Needed, ...], tuple[Needed, ...], frozenset[Needed]]:
    """`early`, `loads` and `computed` of Rows."""
    early = _early_loads(nest, source)
    loads = tuple(each for each in early if _is_row(each))
    return early, loads, _only_for(loads, early, source)


def _early_loads(nest: PersistentNest, source: TileSlice) -> tuple[Needed, ...]:
    """The loads of rows and columns that may stand before the main loop, with what they need:
    those of memory that the nest does not store to."""
    stores = (*(each.operation for each in nest.tma_stores), *nest.pointer_stores)
    written = {root_of(each.operands[0]) for each in stores}
    loads = [
        each
        for each in source.needed
        if each.operation.name == "tt.load" and len(each.axes) == 1
        if not isinstance(each.axes[0], Columns)
        if None not in written and root_of(each.operation.operands[0]) not in {*written, None}
    ]
    wanted = {(result, each.axes) for each in loads for result in each.operation.results}
    found: list[Needed] = []
    for each in reversed(source.needed):
        if any((result, each.axes) in wanted for result in each.operation.results):
            found.append(each)
            wanted |= {
                (operand, axes)
                for operand, axes in zip(each.operands, each.operand_axes, strict=True)
            }
    return tuple(reversed(found))


def _uses(user: Needed) -> list[tuple[ir.Value, Axes]]:
    operands = user.operands
    if user.operation.name in STORES:
        return [(each, user.axes) for each in operands]
    return list(zip(operands, user.operand_axes, strict=True))


def _is_row(needed: Needed) -> bool:
    return needed.operation.name == "tt.load" and needed.axes in ((0,), (1,))


def _only_for(
    loads: tuple[Needed, ...], early: tuple[Needed, ...], source: TileSlice
) -> frozenset[Needed]:
    """What of `early` no operation but the loads needs."""
    used = {use for user in source.needed if user not in early for use in _uses(user)}
    alone: list[Needed] = []
    for each in reversed(early):
        if each in loads:
            continue
        if any((result, each.axes) in used for result in each.operation.results):
            used.update(_uses(each))
        else:
            alone.append(each)
    return frozenset(alone)


Boxes = Mapping[ir.Value, TensorDescType]
"""Descriptors and the types that they shall have."""

# A row of a box is a multiple of so many bytes (CUDA driver API, cuTensorMapEncodeTiled).
_ROW_BYTES = 16


@once
def boxes_of(nest: PersistentNest, source: TileSlice, size: tuple[int, int]) -> Boxes | Refusal:
    """The types with which the epilogue's descriptors move one window, or why they cannot."""
    del nest
    window = Window.whole(size)
    found: dict[ir.Value, TensorDescType] = {}
    for needed in source.needed:
        if needed.operation.name not in ("tt.descriptor_load", "tt.descriptor_store"):
            continue
        descriptor = needed.operation.operands[0]
        before = parse_type(descriptor.type)
        assert isinstance(before, TensorDescType)
        try:
            ones = outer_dimensions(before.block)
            box = window.shape(before.block.shape[ones:], needed.axes)
            after = descriptor_of_box(before, (*[1] * ones, *box))
        except LayoutError as error:
            return Refusal(needed.operation, str(error))
        if found.setdefault(descriptor, after) != after:
            return Refusal(needed.operation, "a descriptor has boxes of several shapes")
        if after.block.shape != before.block.shape:
            wrong = _too_narrow(needed.operation, after)
            wrong = wrong or _used_elsewhere(source, needed.operation)
            if wrong is not None:
                return wrong
    return found


def retype(boxes: Boxes, triton_version: tuple[int, ...], function: Operation) -> None:
    for descriptor, view in boxes.items():
        descriptor.set_type(ir.Type.parse(view.spell(triton_version), function.context))
    arguments = ", ".join(str(each.type) for each in function.regions[0].blocks[0].arguments)
    before = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    results = ", ".join(map(str, before.results))
    set_attribute(function, "function_type", f"({arguments}) -> ({results})")


def _too_narrow(operation: Operation, after: TensorDescType) -> Refusal | None:
    row = after.block.shape[-1] * element_bits(after.block.element) // 8
    if row >= _ROW_BYTES:
        return None
    return Refusal(operation, f"a row of {row} bytes is too short for TMA")


def _used_elsewhere(source: TileSlice, operation: Operation) -> Refusal | None:
    """Every use must be one that the epilogue's rewrite changes."""
    descriptor = operation.operands[0]
    moving = {needed.operation for needed in source.needed}
    for use in descriptor.uses:
        if use.owner.operation not in moving:
            return Refusal(
                use.owner.operation,
                "the descriptor of a store or tile load is used otherwise too: it cannot move "
                "parts of a tile",
            )
    maker = defining_operation(descriptor)
    if maker is not None and maker.name != "tt.make_tensor_descriptor":
        return Refusal(maker, f"a descriptor that comes from {maker.name} keeps its box")
    return None
