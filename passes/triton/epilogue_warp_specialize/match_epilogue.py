"""Taking the tile's other operations apart: loads that a producer may run, stores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilepass.analysis.memory_order import root_of
from tilepass.ir.effects import Effect, effects_of
from tilepass.ir.engine import Operation, ir, operations
from tilepass.ir.loops import LoopNest, backward_slice, defining_operation
from tilepass.ir.walks import users
from tilepass.passes.triton.epilogue_warp_specialize.description import (
    Refusal,
    TileLoad,
    TmaStore,
)
from tilepass.passes.triton.epilogue_warp_specialize.match_descriptors import varying_descriptor
from tilepass.passes.triton.epilogue_warp_specialize.match_main_loop import LOAD, wrong_load
from tilepass.passes.triton.epilogue_warp_specialize.read_back import read_behind_store

STORE, _CONVERT, _POINTER_STORE = "tt.descriptor_store", "ttg.convert_layout", "tt.store"


@dataclass(frozen=True)
class Epilogue:
    """Loads and stores of a tile (see PersistentNest)."""

    tile_loads: tuple[TileLoad, ...]
    tma_stores: tuple[TmaStore, ...]
    pointer_stores: tuple[Operation, ...]


def match_epilogue(nest: LoopNest) -> Epilogue | Refusal:
    """The loads and stores around the inner loop, or what would not work in a partition."""
    stores: list[TmaStore] = []
    pointers: list[Operation] = []
    for each in nest.after:
        if each.name == STORE:
            store = TmaStore(each, *_staged(each))
            if store.unknown_place is not None:
                return store.unknown_place
            if varying := varying_descriptor(nest.outer, each, store.descriptor):
                return varying
            if store.block.shape != tuple(ir.RankedTensorType(store.value.type).shape):
                return Refusal(each, "the stored tile is not of the descriptor's shape")
            stores.append(store)
        elif (inside := _pointer_stores(each)) is not None:
            pointers.extend(inside)
        elif effects_of(each) & ~Effect.READ:
            return Refusal(each, f"{each.name} in the epilogue is neither computation nor store")
    if not stores and not pointers:
        return Refusal(nest.outer.operation, "the tile loop stores nothing")
    if read := read_behind_store(nest):
        return read
    return Epilogue(tuple(_tile_loads(nest)), tuple(stores), tuple(pointers))


def _pointer_stores(operation: Operation) -> list[Operation] | None:
    """The `tt.store`s in and including an operation; None where it does anything else to memory
    but read it, or stores nothing."""
    stores = [each for each in operations(operation) if each.name == _POINTER_STORE]
    others = [each for each in operations(operation) if not each.regions and each not in stores]
    if not stores or any(effects_of(each) & ~Effect.READ for each in others):
        return None
    return stores


def _staged(store: Operation) -> tuple[ir.Value, tuple[Operation, ...]]:
    """The value in front of conversions that only the store uses, and these."""
    value, dropped = store.operands[1], list[Operation]()
    while True:
        source = defining_operation(value)
        if source is None or source.name != _CONVERT or len(users(value)) != 1:
            return value, tuple(dropped)
        dropped.append(source)
        value = source.operands[0]


def _tile_loads(nest: LoopNest) -> Iterator[TileLoad]:
    """The TMA loads that a producer may run ahead of.

    What the nest also stores is loaded where the source says so: in the consumer.
    """
    written = {
        root_of(each.operands[0])
        for operation in nest.after
        for each in operations(operation)
        if effects_of(each) & Effect.WRITE and not each.regions
    }
    for each in (*nest.before, *nest.after):
        if each.name != LOAD:
            continue
        load = TileLoad(each)
        root = root_of(load.descriptor)
        if root is None or root in written or None in written:
            continue
        sources = backward_slice(list(load.coordinates), nest.outer.operation)
        if wrong_load(nest.outer, load) is None and nest.inner[0].operation not in sources:
            yield load
