"""What a kernel does with its arguments: indices have to stay indices.

A forward analysis from the parameters along values, loops, branches, calls and shared memory. Not
followed: what is written to global memory and read back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from enum import Flag, auto
from typing import Any

from tilepass.ir import engine
from tilepass.ir.engine import Operation, ir
from tilepass.sim.elements import value_type


class Role(Flag):
    """What becomes of a number, or of the elements of an array."""

    NONE = 0
    PLACE = auto()
    """It reaches an address, a mask, a coordinate, a bound, a branch or an assumption."""
    SUMMED = auto()
    """It meets others in a dot, a reduction or a scan."""
    LOADED = auto()
    """The array is read."""
    STORED = auto()
    """The array is written."""


# Bits of a set of sources: two for each parameter, that it points to something and its data.
_POINTERS, _DATA = 1, 2

# Operands that decide where memory is accessed or whether code runs, None for all of them.
_PLACES: dict[str, tuple[int, ...] | None] = {
    "tt.gather": (1,),
    "tt.histogram": (0,),
    "tt.assert": (0,),
    "llvm.intr.assume": (0,),
    "tt.atomic_cas": None,
    "ttng.tensormap_create": None,
    "ttng.wait_barrier": None,
    "scf.condition": (0,),
    "scf.if": (0,),
    "scf.for": (0, 1, 2),
    "cf.cond_br": (0,),
}
# All operands but one: the pointer or descriptor that results are derived from, or stored values.
_PLACES_BUT = {
    "tt.store": 1,
    "tt.atomic_rmw": 1,
    "tt.descriptor_store": 1,
    "tt.descriptor_reduce": 1,
    "tt.descriptor_scatter": 3,
    "tt.make_tensor_descriptor": 0,
    "tt.make_tensor_ptr": 0,
    "tt.advance": 0,
    "ttg.memdesc_index": 0,
    "amdg.buffer_store": 0,
}
_LOADS = frozenset(("tt.load", "tt.descriptor_load", "tt.descriptor_gather", "tt.atomic_rmw",
                    "tt.atomic_cas", "amdg.buffer_load"))  # fmt: skip
_COPIES_IN = frozenset(("ttg.async_copy_global_to_local", "ttng.async_tma_copy_global_to_local",
                        "ttng.async_tma_gather"))  # fmt: skip
_COPIES_OUT = frozenset(("ttng.async_tma_copy_local_to_global", "ttng.async_tma_reduce",
                         "ttng.async_tma_scatter"))  # fmt: skip
_LOCAL_STORES = frozenset(("ttg.local_store", "ttng.tmem_store", "ttng.tc_gen5_mma",
                            "ttng.tc_gen5_mma_scaled"))  # fmt: skip
_SUMS = frozenset(("tt.dot", "tt.dot_scaled", "ttng.warp_group_dot", "ttng.tc_gen5_mma",
                   "ttng.tc_gen5_mma_scaled", "tt.reduce", "tt.scan"))  # fmt: skip
# Operand that says where is written.
_STORES = {
    "tt.store": 0,
    "tt.atomic_rmw": 0,
    "tt.atomic_cas": 0,
    "tt.descriptor_store": 0,
    "tt.descriptor_reduce": 0,
    "tt.descriptor_scatter": 0,
    "amdg.buffer_store": 1,
    **dict.fromkeys(_COPIES_OUT, 0),
}


def roles_of(module: engine.Module, function: Operation) -> list[Role]:
    """The role of each parameter of a function of a module."""
    flow = _Flow()
    flow.read(module)
    parameters = list(function.regions[0].blocks[0].arguments)
    for index, parameter in enumerate(parameters):
        flow.start(parameter, index)
    flow.spread()
    marks = (
        (Role.PLACE, flow.reaching(flow.places), _DATA),
        (Role.SUMMED, flow.reaching(flow.sums), _DATA),
        (Role.LOADED, flow.reaching(flow.loads), _POINTERS),
        (Role.STORED, flow.reaching(flow.stores), _POINTERS),
    )
    found: list[Role] = []
    for index in range(len(parameters)):
        role = Role.NONE
        for mark, sources, bit in marks:
            if sources & bit << 2 * index:
                role |= mark
        found.append(role)
    return found


def _form(value: ir.Value) -> str:
    return value_type(str(value.type)).form


class _Flow:
    """Which values flow into which, and what the sources are that reach each."""

    def __init__(self) -> None:
        self.places: set[int] = set()
        self.sums: set[int] = set()
        self.loads: set[int] = set()
        self.stores: set[int] = set()
        self._into: defaultdict[int, set[int]] = defaultdict(set)
        # From a pointer to what is loaded through it.
        self._loaded: defaultdict[int, set[int]] = defaultdict(set)
        self._sources: defaultdict[int, int] = defaultdict(int)
        self._everything = 0

    def start(self, parameter: ir.Value, index: int) -> None:
        """A parameter is a source itself."""
        type_ = value_type(str(parameter.type))
        points = type_.form == "descriptor" or (
            type_.element is not None and type_.of.kind == "pointer"
        )
        self._sources[hash(parameter)] |= (_POINTERS if points else _DATA) << 2 * index
        self._everything |= _POINTERS << 2 * index

    def spread(self) -> None:
        """Propagate the sources until nothing changes."""
        waiting = list(self._sources)
        while waiting:
            value = waiting.pop()
            own = self._sources[value]
            pointers = own & self._everything
            through = pointers << 1 | own & ~pointers
            for targets, bits in ((self._into, own), (self._loaded, through)):
                for target in targets.get(value, ()):
                    if bits & ~self._sources[target]:
                        self._sources[target] |= bits
                        waiting.append(target)

    def reaching(self, values: set[int]) -> int:
        """The sources that reach any of these values."""
        found = 0
        for value in values:
            found |= self._sources.get(value, 0)
        return found

    def _flow(self, sources: Sequence[ir.Value], targets: Sequence[ir.Value]) -> None:
        """Every source into every target; memory in both directions, since it may be a view."""
        for target in targets:
            memory = _form(target) == "memdesc"
            for source in sources:
                self._into[hash(source)].add(hash(target))
                if memory and _form(source) == "memdesc":
                    self._into[hash(target)].add(hash(source))

    def _pairwise(self, sources: Sequence[ir.Value], targets: Sequence[ir.Value]) -> None:
        for source, target in zip(sources, targets, strict=False):
            self._flow([source], [target])

    def read(self, module: engine.Module) -> None:
        """The flows of all operations of a module."""
        operations = list(engine.operations(module))
        functions = {
            str(each.attributes["sym_name"]).strip('"'): each
            for each in operations
            if each.name == "tt.func"
        }
        for operation in operations:
            self._mark(operation)
            if operation.name == "tt.call":
                self._call(operation, functions)
            elif operation.name != "tt.func":
                self._step(operation)

    def _mark(self, operation: Operation) -> None:
        name, operands = operation.name, list(operation.operands)
        keys = [hash(each) for each in operands]
        if name in _SUMS:
            self.sums.update(keys)
        if name in _LOADS or name in _COPIES_IN:
            self.loads.add(keys[0])
        if name in _STORES:
            self.stores.add(keys[_STORES[name]])
        self.places.update(
            key
            for at, key in enumerate(keys)
            if _is_place(operation, at) and _form(operands[at]) != "memdesc"
        )

    def _step(self, operation: Operation) -> None:
        name = operation.name
        operands, results = list(operation.operands), list(operation.results)
        memory = [each for each in operands if _form(each) == "memdesc"]
        if name in _LOADS or name in _COPIES_IN:
            for target in memory if name in _COPIES_IN else results:
                self._loaded[hash(operands[0])].add(hash(target))
                self._flow(operands[1:] if name == "tt.load" else [], [target])
        elif name in _LOCAL_STORES:
            self._flow(operands, [each for each in memory if hash(each) != hash(operands[0])])
        elif name == "ttng.tensormap_create":
            self._flow(operands[1:2], operands[:1])
        elif name == "arith.cmpf":
            # What depends on a comparison of floats alone may be anything.
            return
        elif name in ("cf.br", "cf.cond_br"):
            self._branch(operation)
        elif len(operation.regions):
            self._regions(operation)
        else:
            self._flow(operands, results)

    def _branch(self, operation: Operation) -> None:
        operands = list(operation.operands)[operation.name == "cf.cond_br" :]
        for block in operation.successors:
            arguments = list(block.arguments)
            self._pairwise(operands[: len(arguments)], arguments)
            del operands[: len(arguments)]

    def _call(self, operation: Operation, functions: dict[str, Operation]) -> None:
        callee: engine.ir.Attribute = operation.attributes["callee"]
        function = functions.get(str(callee).strip('@"'))
        if function is None:
            return
        blocks = list(function.regions[0].blocks)
        self._pairwise(list(operation.operands), list(blocks[0].arguments))
        for block in blocks:
            last = list(block.operations)[-1].operation
            if last.name == "tt.return":
                self._pairwise(list(last.operands), list(operation.results))

    def _regions(self, operation: Operation) -> None:
        operands, results = list(operation.operands), list(operation.results)
        blocks = [block for region in operation.regions for block in region.blocks]
        arguments = [list(block.arguments) for block in blocks]
        ends = [list(list(block.operations)[-1].operation.operands) for block in blocks]
        if operation.name == "scf.for":
            self._flow(operands[:3], arguments[0][:1])
            for values in (operands[3:], ends[0]):
                self._pairwise(values, arguments[0][1:])
                self._pairwise(values, results)
        elif operation.name == "scf.while":
            self._pairwise(operands, arguments[0])
            self._pairwise(ends[0][1:], arguments[1])
            self._pairwise(ends[0][1:], results)
            self._pairwise(ends[1], arguments[0])
        elif operation.name in ("scf.if", "scf.execute_region", "ttg.warp_specialize"):
            for values in ends:
                self._pairwise(values, results)
            self._captures(operation)
        elif operation.name == "ttg.warp_specialize.partitions":
            self._captures(operation)
        else:
            for values in arguments:
                self._flow(operands, values)
            for values in ends:
                self._flow(values, results)

    def _captures(self, operation: Operation) -> None:
        """Into the partitions: captures are operands of the outer or the inner operation."""
        holders = [operation]
        if operation.name == "ttg.warp_specialize":
            holders = [operation.regions[1].blocks[0].operations[0].operation]
        for holder in holders:
            if holder.name == "ttg.warp_specialize.partitions":
                for region in holder.regions:
                    self._pairwise(list(operation.operands), list(region.blocks[0].arguments))


def _is_place(operation: Operation, at: int) -> bool:
    """Whether an operand decides where memory is accessed or whether code runs."""
    name = operation.name
    if name in _PLACES:
        chosen = _PLACES[name]
        return chosen is None or at in chosen
    if name in _PLACES_BUT:
        return at != _PLACES_BUT[name]
    if name == "tt.load" and "operandSegmentSizes" in operation.attributes:
        # The last operand may be the value of elements that the mask leaves out.
        sizes: Any = operation.attributes["operandSegmentSizes"]
        return at < int(sizes[0]) + int(sizes[1])
    return name in _COPIES_IN or name in _COPIES_OUT or name in _LOADS
