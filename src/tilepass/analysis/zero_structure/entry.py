"""The entry point: a lowered module in, the zeros of every site out."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from tilepass.analysis.zero_structure import explain
from tilepass.analysis.zero_structure.effects import effect_of, pure_of
from tilepass.analysis.zero_structure.explain import (
    Explainer,
    data_operands,
    fragment_operands,
    zero_stores,
)
from tilepass.analysis.zero_structure.facts import (
    Assumption,
    Failure,
    Limits,
    SiteZeros,
    TileArray,
    ZeroStructure,
)
from tilepass.analysis.zero_structure.machine import Execution, Machine, OutOfReach
from tilepass.analysis.zero_structure.program import (
    GemmSite,
    Instruction,
    UnsupportedControlFlow,
    decode,
    kernels_of,
    sites_of,
)
from tilepass.analysis.zero_structure.types import Scalar, parse_type
from tilepass.analysis.zero_structure.values import Struct, Value
from tilepass.analysis.zero_structure.zero_bytes import (
    FREE,
    FREE_SIGN,
    STRICT_SIGN,
    ZeroBytes,
)
from tilepass.ir.cute import Layout, StaticTensor
from tilepass.ir.engine import Module, Operation, ir, location_of, operations
from tilepass.ir.loops import defining_operation
from tilepass.ir.values import plain_values

_NO_BLOCK = "the number of threads in a block is not a constant of the module"


@plain_values()
def analyse(
    lowered: Module, *, strict: bool = False, limits: Limits | None = None
) -> ZeroStructure:
    """The zero structure of all tagged gemms of a lowered module.

    `lowered` comes from a clone that `sites.tag_sites` has tagged. `strict` drops the assumption
    that 0 * x is 0. Never raises for what it cannot prove: the result says why.
    """
    with _collector_paused():
        return _analyse(lowered, strict, limits or Limits())


@contextmanager
def _collector_paused() -> Generator[None]:
    """Interpreting makes many objects and no garbage that only the cycle collector finds; its runs
    take a sixth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _analyse(lowered: Module, strict: bool, used: Limits) -> ZeroStructure:
    sites = sites_of(lowered)
    kernels = kernels_of(lowered)
    if not kernels:
        return _nothing(sites, Failure("the lowered module holds no kernel"), 0)
    found: dict[int, SiteZeros] = {}
    threads, rounds, failure = 0, 0, None
    for kernel in kernels:
        part = _kernel(lowered, kernel, sites, strict, used)
        threads, rounds = max(threads, part.threads), max(rounds, part.rounds)
        failure = failure or part.failure
        for index, zeros in part.sites.items():
            if index not in found or zeros.instruction != (0, 0, 0):
                found[index] = zeros
    return ZeroStructure(found, threads, rounds, failure)


def _kernel(
    lowered: Module, kernel: Operation, sites: list[GemmSite], strict: bool, limits: Limits
) -> ZeroStructure:
    block = block_of(lowered, kernel)
    if block is None:
        return _nothing(sites, Failure(_NO_BLOCK, location_of(kernel)), 0)
    threads = block[0] * block[1] * block[2]
    try:
        program = decode(lowered, kernel)
    except UnsupportedControlFlow as error:
        return _nothing(sites, Failure(str(error), location_of(kernel)), threads)
    pures = [pure_of(item, program) for item in program.instructions]
    effects = [effect_of(item) for item in program.instructions]
    machine = Machine(program, block, limits, pures, effects)
    try:
        rounds = _until_stable(machine)
    except OutOfReach as stop:
        place = location_of(stop.instruction.operation) if stop.instruction else None
        return _nothing(sites, Failure(stop.reason, place), threads)
    explainer = explain.Explainer(machine)
    results = {site.index: _site(explainer, site, strict) for site in sites}
    return ZeroStructure(results, threads, rounds, None)


def _until_stable(machine: Machine) -> int:
    """Interpret until a whole run learns nothing new; the number of runs."""
    for count in range(1, machine.limits.rounds + 1):
        if not machine.run():
            continue
        forgotten = [memory.forget_uncovered() for memory in machine.shared.values()]
        if not any(forgotten):
            return count
    raise OutOfReach(f"shared memory is not stable after {machine.limits.rounds} runs")


def _site(explainer: explain.Explainer, site: GemmSite, strict: bool) -> SiteZeros:
    machine = explainer.machine
    executions = machine.trace.executions.get(site.index, [])
    if not executions:
        return unproven(site.index, explain.why_not_run(machine, site))
    products = [
        machine.program.instructions[number]
        for number in sorted(machine.trace.products[site.index])
    ]
    shape = products[0].detail.shape
    grid = grid_of(site)
    if isinstance(grid, str):
        return unproven(site.index, Failure(grid, location_of(products[0].operation)), shape)
    bit = STRICT_SIGN if strict else FREE_SIGN
    b_zero, b_reason = _operand(executions, grid, "b", bit)
    a_zero, a_reason = _operand(executions, grid, "a", bit)
    strictly = [_operand(executions, grid, name, STRICT_SIGN)[0] for name in ("b", "a")]
    needs = bool((b_zero & ~strictly[0]).any() or (a_zero & ~strictly[1]).any())
    idle = np.zeros(grid.extents[:2], bool)
    if not machine.reads.unknown:
        idle = unread(executions, grid, site.index, machine.reads.read)
    zero = bool(b_zero.any() or a_zero.any())
    proven = zero or bool(idle.any())
    failure = of_a = None
    if not proven:
        place = location_of(products[0].operation)
        if b_reason and b_reason == a_reason:
            failure = Failure(b_reason, place)
        else:
            resting = _resting(executions, grid)
            reasons = (
                Failure(reason, place)
                if reason
                else why_not_strict(explainer, products[0], name)
                if name in resting
                else explain.why_not_zero(explainer, products[0], name)
                for name, reason in (("b", b_reason), ("a", a_reason))
            )
            failure, of_a = reasons
    return SiteZeros(
        site.index,
        shape,
        grid.extents,
        b_zero,
        a_zero,
        idle,
        needs,
        explain.evidence(explainer, products[0], "b" if b_zero.any() else "a") if zero else (),
        _assumptions(needs) if zero else (),
        failure,
        of_a,
    )


def _resting(executions: list[Execution], grid: Grid) -> list[str]:
    """The operands that have tiles which are zero if 0 * x is 0."""
    return [name for name in ("b", "a") if _operand(executions, grid, name, FREE_SIGN)[0].any()]


def _operand(
    executions: list[Execution], grid: Grid, name: str, bit: int
) -> tuple[TileArray, str | None]:
    m, n, k = grid.extents
    if name == "b":
        folded = fold(
            executions,
            grid,
            lambda run: run.b_offset,
            lambda run: bool(run.b_zero & bit),
            grid.b,
            (n, k),
        )
    else:
        folded = fold(
            executions,
            grid,
            lambda run: run.a_offset,
            lambda run: bool(run.a_zero & bit),
            grid.a,
            (m, k),
        )
    if isinstance(folded, str):
        return np.zeros((n if name == "b" else m, k), bool), folded
    return folded, None


def _assumptions(needs_zero_times_x: bool) -> tuple[Assumption, ...]:
    always = (
        Assumption.NO_RACE,
        Assumption.NO_UNINITIALISED_READ,
        Assumption.FINITE_OPERAND,
    )
    return (*always, Assumption.ZERO_TIMES_X) if needs_zero_times_x else always


def unproven(index: int, failure: Failure, shape: tuple[int, int, int] = (0, 0, 0)) -> SiteZeros:
    """A site of which nothing is known."""
    empty = np.zeros((0, 0), bool)
    return SiteZeros(index, shape, (0, 0, 0), empty, empty, empty, False, (), (), failure)


def _nothing(sites: list[GemmSite], failure: Failure, threads: int) -> ZeroStructure:
    return ZeroStructure(
        {site.index: unproven(site.index, failure) for site in sites}, threads, 0, failure
    )


_FACTS = re.compile(r"exact_block_dim = array<i64: (\d+), (\d+), (\d+)>")
_REQUIRED = re.compile(r"array<i32: (\d+), (\d+), (\d+)>")
_LAUNCH = "cuda.launch_ex"
_CONFIGURATION = "cuda.launch_cfg.create"


def block_of(module: Module, kernel: Operation) -> tuple[int, int, int] | None:
    """The extents of a block in x, y and z; None where they are not constants of the module.

    Taken from what the DSL notes on the kernel, else from `nvvm.reqntid`, else from the launches in
    the module if they agree. `nvvm.maxntid` is an upper bound only and says nothing here.
    """
    noted = _attribute(kernel, "cutlass_launch_facts")
    if match := _FACTS.search(noted):
        return int(match[1]), int(match[2]), int(match[3])
    if match := _REQUIRED.search(_attribute(kernel, "nvvm.reqntid")):
        return int(match[1]), int(match[2]), int(match[3])
    return _launched(module, kernel)


def _attribute(operation: Operation, name: str) -> str:
    return str(operation.attributes[name]) if name in operation.attributes else ""


def _launched(module: Module, kernel: Operation) -> tuple[int, int, int] | None:
    name = ir.StringAttr(kernel.attributes["sym_name"]).value
    found = set[tuple[int, int, int] | None]()
    for operation in operations(module):
        if operation.name == _LAUNCH and f"@{name}" in _attribute(operation, "callee"):
            found.add(_extents(defining_operation(operation.operands[0])))
    return found.pop() if len(found) == 1 else None


def _extents(configuration: Operation | None) -> tuple[int, int, int] | None:
    if configuration is None or configuration.name != _CONFIGURATION:
        return None
    numbers = list[int]()
    for position in range(3):
        operation = defining_operation(configuration.operands[position])
        if operation is None or operation.name not in ("arith.constant", "llvm.mlir.constant"):
            return None
        numbers.append(ir.IntegerAttr(operation.attributes["value"]).value)
    return numbers[0], numbers[1], numbers[2]


# Through how many stores to shared memory the product is looked for.
_DEPTH = 6
# What makes such zeros.
_PRODUCTS = frozenset(("arith.mulf", "math.fma", "llvm.intr.fma", "vector.fma", "nvvm.mma.sync"))


def why_not_strict(explainer: Explainer, product: Instruction, operand: str) -> Failure:
    """The multiplication nearest to a fragment of A or B that its zeros rest on."""
    machine = explainer.machine
    numbers, seen = fragment_operands(product, operand), set[int]()
    for _ in range(_DEPTH):
        origins = explainer.origins(numbers)
        for item in origins.results:
            if _is_such_a_product(machine, item):
                return _failure(item)
        stores = {
            store.number: store for load in origins.loads for store in zero_stores(machine, load)
        }
        fresh = [store for number, store in stores.items() if number not in seen]
        if not fresh:
            break
        seen |= stores.keys()
        numbers = tuple(number for store in fresh for number in data_operands(store))
    return _failure(product)


def _failure(item: Instruction) -> Failure:
    reason = f"the operand is zero only if 0 * x is, which strict does not assume ({item.name})"
    return Failure(reason, location_of(item.operation))


def _is_such_a_product(machine: Machine, item: Instruction) -> bool:
    return item.name in _PRODUCTS and any(_rests(machine.env[number]) for number in item.results)


def _rests(value: Value | None) -> bool:
    """Whether bytes of a value are zero in some thread, but not strictly."""
    if isinstance(value, ZeroBytes):
        # FREE is the lower half of the bits, STRICT the upper one.
        return bool((value.facts & FREE & ~(value.facts >> 2)).any())
    if isinstance(value, Struct):
        return any(_rests(member) for member in value.members)
    return isinstance(value, tuple) and any(_rests(part) for part in value)


Tile = tuple[int, int]


@dataclass(frozen=True)
class Grid:
    """M, N, K tiles of a gemm, and the tiles at each byte offset of A and B."""

    extents: tuple[int, int, int]
    a: dict[int, list[Tile]]
    b: dict[int, list[Tile]]
    d: dict[int, list[Tile]]

    @property
    def count(self) -> int:
        """mma instructions that the gemm is."""
        m, n, k = self.extents
        return m * n * k


def grid_of(site: GemmSite) -> Grid | str:
    """The tiles of a gemm, or why they are not known."""
    if site.a is None or site.b is None or site.d is None:
        return "an operand of the gemm is not a register tensor of static layout"
    a, b, d = (_tile_extents(fragment.layout) for fragment in (site.a, site.b, site.d))
    if a is None or b is None or d is None:
        return "the layouts of the gemm's operands have more than three modes"
    if (a[1], b[1], a[0], b[0]) != (b[1], a[1], d[0], d[1]):
        return "the layouts of the gemm's operands do not agree"
    places = [_places(fragment) for fragment in (site.a, site.b, site.d)]
    if any(place is None for place in places):
        return "an element type of the gemm has no whole number of bytes"
    return Grid((a[0], b[0], a[1]), *(place or {} for place in places))


def _tile_extents(layout: Layout) -> Tile | None:
    """Tiles along the two modes after the values; a mode that is missing has one tile."""
    modes = layout.modes
    if len(modes) > 3:
        return None
    sizes = [mode.size for mode in modes[1:]] + [1, 1]
    return sizes[0], sizes[1]


def _places(fragment: StaticTensor) -> dict[int, list[Tile]] | None:
    element = parse_type(fragment.element)
    if not isinstance(element, Scalar):
        return None
    modes = fragment.layout.modes
    rows = modes[1] if len(modes) > 1 else Layout(1, 0)
    columns = modes[2] if len(modes) > 2 else Layout(1, 0)
    places: dict[int, list[Tile]] = {}
    for row in range(rows.size):
        for column in range(columns.size):
            offset = (rows.offset(row) + columns.offset(column)) * element.size
            places.setdefault(offset, []).append((row, column))
    return places


def unread(
    executions: list[Execution], grid: Grid, index: int, read: set[tuple[int, int]]
) -> TileArray:
    """[M, N]: the accumulator tiles of a site that nothing reads.

    Nowhere true where the gemm uses several places in registers, or one that is not known.
    """
    shape = (grid.extents[0], grid.extents[1])
    nothing, known = np.zeros(shape, bool), np.zeros(shape, bool)
    offsets = {execution.c_offset for execution in executions}
    places = sorted(offset for offset in offsets if offset is not None)
    if len(places) < len(offsets) or {place - places[0] for place in places} != set(grid.d):
        return nothing
    if any(site == index and offset not in places for site, offset in read):
        # Stored in parts, one of which is read: its offset is that of no tile.
        return nothing
    for place in places:
        tiles = grid.d[place - places[0]]
        if (index, place) not in read and len(tiles) == 1:
            known[tiles[0]] = True
    return known


def fold(
    executions: Sequence[Execution],
    grid: Grid,
    offset: Callable[[Execution], int | None],
    zero: Callable[[Execution], bool],
    places: dict[int, list[Tile]],
    shape: Tile,
) -> TileArray | str:
    """Which tiles are zero in all runs of the gemm, or why that cannot be told.

    A gemm runs its tiles one after the other; the lowest address of a run is that of tile (0, 0).
    """
    result = np.ones(shape, bool)
    if len(executions) % grid.count:
        return "the tiles of the gemm are not run one by one"
    for start in range(0, len(executions), grid.count):
        visit = executions[start : start + grid.count]
        offsets = [offset(execution) for execution in visit]
        known = [place for place in offsets if place is not None]
        if len(known) < len(offsets):
            return "the operand is not loaded from registers at a known place"
        first = min(known)
        if {place - first for place in known} != set(places):
            return "the registers of the operand are not those of its layout"
        for execution, place in zip(visit, known, strict=True):
            if not zero(execution):
                for tile in places[place - first]:
                    result[tile] = False
    return result
