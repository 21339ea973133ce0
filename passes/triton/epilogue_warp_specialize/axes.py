"""Which dimension of the tile each value of an epilogue runs along."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tilepass.analysis.memory_order import root_of
from tilepass.core.refusal import Refusal
from tilepass.ir.engine import Operation, ir
from tilepass.ir.layouts import Blocked, Encoding, TensorType, parse_type
from tilepass.ir.loops import backward_slice, constant_int, defining_operation

from .description import PersistentNest, TmaStore
from .windows import Axes, Columns, N

_ELEMENTWISE_DIALECTS = ("arith", "math")

_ELEMENTWISE = frozenset(
    f"tt.{name}"
    for name in [
        "addptr",
        "approx_divf",
        "bitcast",
        "clampf",
        "elementwise_inline_asm",
        "extern_elementwise",
        "fp_to_fp",
        "int_to_ptr",
        "load",
        "mulhiui",
        "precise_divf",
        "precise_sqrt",
        "ptr_to_int",
        "store",
    ]
) | {"ttg.convert_layout"}

CONVERT = "ttg.convert_layout"

_SPREADING = ("tt.broadcast", "tt.expand_dims", "tt.splat", "arith.constant")

_LEAVES = ("arith.constant", "tt.make_range", "tt.descriptor_load")

_ACROSS = ("tt.reduce", "tt.scan", "tt.histogram", "tt.gather")

_CUTTING = ("tt.reshape", "tt.split", "tt.join", "tt.cat")

STORES = ("tt.store", "tt.descriptor_store")

SPLIT = "tt.split"

ACCUMULATOR: Axes = (0, 1)
"""The axes of the dot's result."""


@dataclass(frozen=True)
class Needed:
    """An operation with tensors in it, and the axes of what it computes or stores."""

    operation: Operation
    axes: Axes

    @property
    def operands(self) -> list[ir.Value]:
        """What it is computed from: the operation's operands, or what a `tt.split` is a half of."""
        return _operands_of(self.operation)

    @cached_property
    def operand_axes(self) -> tuple[Axes, ...]:
        """The axes along which each operand is needed, `()` for scalars."""
        found = _axes_of_operands(self.operation, self.axes)
        assert not isinstance(found, Refusal)
        return found


@dataclass(frozen=True, eq=False)
class TileSlice:
    """What an epilogue computes with tensors, in program order: an operation stands here once for
    each way in which its dimensions are needed (one `tl.arange` may number rows and columns)."""

    needed: tuple[Needed, ...]
    accumulator: ir.Value

    @cached_property
    def types(self) -> list[tuple[TensorType, Axes]]:
        """All tensor types with their axes, the accumulator's among them, each once."""
        found = {(_tensor(self.accumulator), ACCUMULATOR): None}
        for each in self.needed:
            for value in each.operation.results:
                found[_tensor(value), each.axes] = None
        return list(found)

    @cached_property
    def blocks(self) -> frozenset[Columns]:
        """The blocks of columns that the kernel cuts the tile into."""
        axes = (axis for each in self.needed for axis in each.axes)
        return frozenset(axis for axis in axes if isinstance(axis, Columns))

    @cached_property
    def fewest_pieces(self) -> int:
        """Into how many pieces the kernel itself cuts the tile."""
        return max((each.of // each.size for each in self.blocks), default=1)

    @cached_property
    def like(self) -> Mapping[Encoding, Encoding]:
        """The layouts of blocks that the kernel cuts out, and that of what it cuts: a piece has one
        of the two, the block's own only where it is good for memory."""
        memory = {
            _tensor(operand).encoding
            for each in self.needed
            if each.operation.name in ("tt.load", "tt.store")
            for operand in each.operation.operands[:1]
            if isinstance(operand.type, ir.RankedTensorType)
        }
        found: dict[Encoding, Encoding] = {}
        for each in self.needed:
            if each.operation.name != SPLIT:
                continue
            before, after = (
                _tensor(value).encoding for value in (each.operands[0], each.operation.results[0])
            )
            own = isinstance(after, Blocked) and after in memory
            if before is not None and after is not None and not own:
                found.setdefault(after, found.get(before, before))
        return {one: other for one, other in found.items() if one != other}


def slice_of(nest: PersistentNest) -> TileSlice | Refusal:
    """The tensor part of a nest's epilogue, or the operation that cannot be computed by parts.

    Everything that the stores need is followed into the tile loop and the prelude. The accumulator
    is the inner loop's result and ends the slice.
    """
    accumulator = nest.carried_accumulator.result
    computed = _forward(accumulator, nest.epilogue)
    search = _Search(nest)
    for store in (*(each.operation for each in nest.tma_stores), *nest.pointer_stores):
        staged = [each.value for each in nest.tma_stores if each.operation == store]
        axes = _axes_of_store(store, staged or list(store.operands), computed, nest)
        if isinstance(axes, Refusal):
            return axes
        search.found[store] = {axes: None}
        search.waiting.extend((value, axes) for value in staged or store.operands)
    found = search.run()
    return found if isinstance(found, Refusal) else _stored_over(nest, found) or found


def _stored_over(nest: PersistentNest, source: TileSlice) -> Refusal | None:
    """Why pieces that the kernel cuts may be stored to one place: they are stored from left to
    right, and one does not wait for another."""
    stores = [(each, each.operation) for each in source.needed if each.operation.name in STORES]
    access = {each.operation: each for each in nest.tma_stores}
    for index, (later, second) in enumerate(stores):
        for earlier, first in stores[:index]:
            if earlier.axes == later.axes or _other_argument(first, second):
                continue
            one, other = access.get(first), access.get(second)
            if one is not None and other is not None and _apart(one, other):
                continue
            if one is None and other is None and _follows(later.axes, earlier.axes):
                continue
            return Refusal(second, "two pieces of the tile may be stored to the same place")
    return None


def _other_argument(first: Operation, second: Operation) -> bool:
    """Whether two stores go through different arguments of the kernel."""
    one, other = (root_of(each.operands[0]) for each in (first, second))
    return None not in (one, other) and one != other


def _apart(first: TmaStore, second: TmaStore) -> bool:
    """Whether two stores through one descriptor are a block apart, by their coordinates."""
    if first.descriptor != second.descriptor:
        return False
    inner = len(first.block.shape)
    for one, other, size in zip(
        first.coordinates[-inner:], second.coordinates[-inner:], first.block.shape, strict=True
    ):
        (base, begin), (same, end) = _offset(one), _offset(other)
        if base == same and abs(begin - end) >= size:
            return True
    return False


def _offset(value: ir.Value) -> tuple[ir.Value | None, int]:
    """A value as another one (None: zero) and a constant beyond it."""
    beyond = 0
    while (operation := defining_operation(value)) is not None and operation.name == "arith.addi":
        left, right = operation.operands
        constant = constant_int(right)
        if constant is None:
            left, constant = right, constant_int(left)
        if constant is None:
            break
        value, beyond = left, beyond + constant
    constant = constant_int(value)
    return (value, beyond) if constant is None else (None, beyond + constant)


def _follows(later: Axes, earlier: Axes) -> bool:
    """Whether one piece is stored behind another from left to right, too."""
    pairs = [
        (one.first, other.first)
        for one, other in zip(later, earlier, strict=False)
        if isinstance(one, Columns) and isinstance(other, Columns)
    ]
    return bool(pairs) and all(one > other for one, other in pairs)


def initial_slice_of(nest: PersistentNest) -> TileSlice | Refusal:
    """What computes the accumulator's first value."""
    search = _Search(nest)
    search.waiting.append((nest.carried_accumulator.initial, ACCUMULATOR))
    return search.run()


class _Search:
    """Follows values back to where they come from."""

    def __init__(self, nest: PersistentNest) -> None:
        self._nest = nest
        self._accumulator = nest.carried_accumulator.result
        self.waiting: list[tuple[ir.Value, Axes]] = []
        self.found: dict[Operation, dict[Axes, None]] = {}

    def run(self) -> TileSlice | Refusal:
        while self.waiting:
            refusal = self._follow(*self.waiting.pop())
            if refusal is not None:
                return refusal
        nest = self._nest
        around = (*nest.prelude, *nest.tile_operations, *nest.epilogue)
        needed = [Needed(each, axes) for each in around for axes in self.found.get(each, ())]
        return TileSlice(tuple(needed), self._accumulator)

    def _follow(self, value: ir.Value, axes: Axes) -> Refusal | None:
        if not isinstance(value.type, ir.RankedTensorType):
            return None
        if value == self._accumulator:
            if axes == ACCUMULATOR:
                return None
            return Refusal(self._nest.dot, "the accumulator is used transposed and as it is")
        operation = defining_operation(value)
        if operation is None:
            return Refusal(self._nest.dot, "the epilogue uses a tensor that is an argument")
        if axes in self.found.setdefault(operation, {}):
            return None
        wrong = _wrong_extent(operation, value, axes, self._nest.tile[:2])
        if wrong is not None:
            return wrong
        self.found[operation][axes] = None
        operands = _axes_of_operands(operation, axes)
        if isinstance(operands, Refusal):
            return operands
        if operation.name == SPLIT and _other_half(operation, value, axes):
            return Refusal(operation, "the kernel computes one part of the tile from another")
        self.waiting.extend(zip(_operands_of(operation), operands, strict=True))
        return None


def is_spread(value: ir.Value) -> bool:
    """Whether a tensor is made of scalars, rows and columns alone, without a load of its size: in
    another layout it takes no more to compute."""
    operation = defining_operation(value)
    if operation is None:
        return False
    if operation.name == CONVERT:
        return is_spread(operation.operands[0])
    if operation.name in _SPREADING:
        return True
    if operation.name == "tt.load" or not _is_elementwise(operation):
        return False
    if len(operation.results) != 1:
        return False
    tensors = [each for each in operation.operands if isinstance(each.type, ir.RankedTensorType)]
    return bool(tensors) and all(map(is_spread, tensors))


def expanded_axis(operation: Operation) -> int:
    """The dimension that a `tt.expand_dims` adds."""
    return ir.IntegerAttr(operation.attributes["axis"]).value


def _forward(accumulator: ir.Value, operations: Iterable[Operation]) -> Mapping[ir.Value, Axes]:
    """The axes of everything that is computed from the accumulator."""
    known: dict[ir.Value, Axes] = {accumulator: ACCUMULATOR}
    for operation in operations:
        if operation.name == SPLIT:
            known.update(_halves(operation, known))
            continue
        given = [known[each] for each in operation.operands if each in known]
        if not given:
            continue
        axes = given[0]
        if operation.name == "tt.trans":
            axes = tuple(axes[index] for index in _order(operation))
        elif not _is_elementwise(operation):
            continue
        for result in operation.results:
            known[result] = axes
    return known


def _halves(split: Operation, known: Mapping[ir.Value, Axes]) -> Mapping[ir.Value, Axes]:
    """The axes of both halves of a block of columns of the tile."""
    source = cut_by(split)
    axes = () if source is None else known.get(source, ())
    if len(axes) != 2 or source is None:
        return {}
    rows, columns = axes
    if columns == N:
        width = _tensor(source).shape[1]
        columns = Columns(0, width, width)
    if not isinstance(columns, Columns):
        return {}
    return {half: (rows, columns.half(index)) for index, half in enumerate(split.results)}


def _other_half(split: Operation, value: ir.Value, axes: Axes) -> bool:
    """Whether the axes that a result of a `tt.split` is needed along are not its own."""
    columns = axes[-1]
    return not isinstance(columns, Columns) or value != split.results[columns.index]


def cut_by(split: Operation) -> ir.Value | None:
    """The matrix that a `tt.split` gives the left and the right half of; None where it gives
    anything else.

    %0 = tt.reshape %matrix : MxN -> Mx2xN/2; %1 = tt.trans %0 {0, 2, 1}; tt.split %1
    """
    turned = _behind_conversions(split.operands[0])
    if turned is None or turned.name != "tt.trans" or _order(turned) != [0, 2, 1]:
        return None
    apart = _behind_conversions(turned.operands[0])
    if apart is None or apart.name != "tt.reshape" or "allow_reorder" in apart.attributes:
        return None
    shape, (rows, *columns) = (
        _tensor(each).shape for each in (apart.operands[0], apart.results[0])
    )
    return apart.operands[0] if tuple(shape) == (rows, 2 * columns[1]) else None


def _behind_conversions(value: ir.Value) -> Operation | None:
    """What computes a value, changes of its layout left out."""
    operation = defining_operation(value)
    while operation is not None and operation.name == CONVERT:
        operation = defining_operation(operation.operands[0])
    return operation


def _operands_of(operation: Operation) -> list[ir.Value]:
    source = cut_by(operation) if operation.name == SPLIT else None
    return list(operation.operands) if source is None else [source]


def _axes_of_store(
    store: Operation,
    values: Sequence[ir.Value],
    computed: Mapping[ir.Value, Axes],
    nest: PersistentNest,
) -> Axes | Refusal:
    if store.block != nest.outer.body:
        return Refusal(
            store,
            f"{store.name} under a condition cannot be done for a part of the tile",
            "mask the store instead",
        )
    for value in values:
        if value in computed:
            return computed[value]
    sources = backward_slice(list(store.operands), nest.outer.operation)
    for each in nest.epilogue:
        uses = each in sources and any(operand in computed for operand in each.operands)
        if uses and not any(result in computed for result in each.results):
            return _no_part(each)
    value, tile = store.operands[1], nest.tile[:2]
    if not isinstance(value.type, ir.RankedTensorType):
        return Refusal(store, "a scalar is stored: a consumer of a part stores its part alone")
    if tuple(_tensor(value).shape) == tuple(tile) and tile[0] != tile[1]:
        return ACCUMULATOR
    return Refusal(store, "what is stored has nothing to do with the dot's result")


def _no_part(operation: Operation) -> Refusal:
    """Of an operation that is not a computation element by element."""
    name = operation.name
    reason = f"{name} in the epilogue cannot be computed for a part of the tile"
    if name in _ACROSS:
        return Refusal(operation, f"{reason}: it needs whole rows or columns")
    if name in _CUTTING:
        return Refusal(
            operation,
            f"{reason}: the kernel rearranges the tile itself",
            "leave the cutting to epilogue-subtile",
        )
    return Refusal(operation, reason)


def _axes_of_operands(operation: Operation, axes: Axes) -> tuple[Axes, ...] | Refusal:
    name = operation.name
    if name == "arith.constant" and not _is_splat(operation):
        return Refusal(operation, "a constant tensor with different elements in the epilogue")
    if name in _LEAVES or name == "tt.splat":
        return ((),) * len(operation.operands)
    if _is_elementwise(operation):
        tensors = [isinstance(each.type, ir.RankedTensorType) for each in operation.operands]
        return tuple(axes if is_tensor else () for is_tensor in tensors)
    if name == "tt.expand_dims":
        axis = expanded_axis(operation)
        return (axes[:axis] + axes[axis + 1 :],)
    if name == "tt.broadcast":
        before, after = (
            _tensor(value).shape for value in (operation.operands[0], operation.results[0])
        )
        spread = [one != other for one, other in zip(before, after, strict=True)]
        return (tuple(None if each else a for each, a in zip(spread, axes, strict=True)),)
    if name == "tt.trans":
        source: list[int | Columns | None] = [None] * len(axes)
        for position, index in enumerate(_order(operation)):
            source[index] = axes[position]
        return (tuple(source),)
    if name == SPLIT and cut_by(operation) is not None and isinstance(axes[-1], Columns):
        return ((*axes[:-1], axes[-1].doubled),)
    return _no_part(operation)


def _wrong_extent(
    operation: Operation, value: ir.Value, axes: Axes, tile: Sequence[int]
) -> Refusal | None:
    shape = _tensor(value).shape
    wanted = [
        axis.size if isinstance(axis, Columns) else extent if axis is None else tile[axis]
        for extent, axis in zip(shape, axes, strict=False)
    ]
    if len(shape) == len(axes) and list(shape) == wanted:
        return None
    sizes = "x".join(map(str, shape))
    return Refusal(operation, f"a tensor of {sizes} in the epilogue is not a part of the tile")


def _is_splat(constant: Operation) -> bool:
    value = constant.attributes["value"]
    return not isinstance(value, ir.DenseElementsAttr) or value.is_splat


def _is_elementwise(operation: Operation) -> bool:
    if operation.regions:
        return False
    dialect = operation.name.partition(".")[0]
    return operation.name in _ELEMENTWISE or dialect in _ELEMENTWISE_DIALECTS


def _order(operation: Operation) -> list[int]:
    return list(ir.DenseI32ArrayAttr(operation.attributes["order"]))


def _tensor(value: ir.Value) -> TensorType:
    view = parse_type(value.type)
    assert isinstance(view, TensorType)
    return view
