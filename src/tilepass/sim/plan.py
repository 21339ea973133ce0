"""Planning the sizes on which a kernel is run, so that it does all that it can do.

Sizes are tried by sketching (see `sketch`): together and one by one from small to large, until
loops make their trips and rings turn. The smallest sizes that do so are kept, together with those
around them that reach something else: no trip, one trip, other branches. Arrays are as large as
what programs touch, and end within a block; of many programs a few that differ are run.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tilepass.core.errors import TilepassError
from tilepass.ir import engine
from tilepass.sim.compiler import Parameter
from tilepass.sim.coverage import THREE_TRIPS, WRAPS, Goal
from tilepass.sim.faults import StepLimit
from tilepass.sim.inputs import Shapes, Size
from tilepass.sim.parameter_groups import Group
from tilepass.sim.protocol.problems import Place
from tilepass.sim.roles import Role
from tilepass.sim.sketch import Reach, Sketch, SketchProgram, constant_grid
from tilepass.sim.values import places as places_of

_LADDER = (24, 100, 200, 400, 800, 1600, 3200, 6400)
# For kernels without rows.
_LONG = (25_600, 102_400, 409_600)
_MIDDLE = 200
_FEW = (0, 1, 24, 100)
# Of the sizes that are tried: operations of a program, programs looked at, all operations.
_STEPS = 20_000
_STEPS_OF_GRID = 30_000
_PROGRAMS = 160
_MOST_CASES = 6
_MOST_RUN = 3
# Elements of an array, and how many cost as much as one operation.
_MOST_ELEMENTS = 1 << 25
_ELEMENTS_OF_STEP = 2000
_MARGIN = 64
# Of an array that is only read.
_ROW = 208

Vector = Mapping[str, int]
"""A value for each free size; `DESCRIPTOR#AXIS` is an extent of a descriptor's array."""


@dataclass(frozen=True)
class Planned:
    """Sizes, and the programs of a grid that are run; `said` names the sizes that were chosen,
    without the arrays that follow from them."""

    shapes: Shapes
    grid: Place
    programs: tuple[Place, ...]
    said: str


@dataclass(frozen=True)
class Plan:
    """Cases in order of cost; `advice` names sizes for what is reached by some that were tried."""

    cases: tuple[Planned, ...] = ()
    advice: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class _Tried:
    """What the first and the last program of a grid reach with some sizes."""

    vector: Vector
    goals: frozenset[Goal]
    cost: int
    valid: bool = True


def make_plan(
    modules: Sequence[engine.Module],
    kernel: str | None = None,
    grid: Sequence[int] | None = None,
) -> Plan:
    """Cases for a kernel and other forms of it; what the others do counts as well.

    A plan without cases is returned for a kernel whose way cannot be followed.
    """
    try:
        first = SketchProgram(modules[0], kernel)
    except TilepassError:
        return Plan()
    others = list[SketchProgram]()
    for module in modules[1:]:
        with suppress(TilepassError):
            others.append(SketchProgram(module))
    x, y, z = (*(grid or grid_of(first.module)), 1, 1)[:3]
    return _Planner(first, others, (x, y, z)).plan()


def describe(goal: Goal) -> str:
    """A goal in words; plans name sizes for it by these."""
    spot, what = goal
    return f"{what} of {spot}"


def grid_of(module: engine.Module, most: Place = (3, 2, 2)) -> Place:
    """Programs of a launch: as many as the kernel takes for granted, else a few in each dimension
    that it asks about."""
    if count := constant_grid(module):
        return count, 1, 1
    axes = {
        int(axis.value)
        for operation in engine.operations(module)
        if operation.name == "tt.get_program_id"
        and isinstance(axis := operation.attributes["axis"], engine.ir.IntegerAttr)
    }
    x, y, z = (count if axis in axes else 1 for axis, count in enumerate(most))
    return x, y, z


@dataclass
class _Planner:
    first: SketchProgram
    others: Sequence[SketchProgram]
    grid: Place
    tried: dict[tuple[int, ...], _Tried] = field(default_factory=dict[tuple[int, ...], _Tried])
    dimensions: dict[tuple[str, int], str] = field(default_factory=dict[tuple[str, int], str])
    """The free size that is the extent of a descriptor's array."""

    @cached_property
    def sizes(self) -> dict[str, int]:
        """The free sizes, with what they have to be multiples of."""
        arguments = _arguments(self.first)
        found: dict[str, int] = {}
        at = 0
        for group in self.first.groups:
            parameter = group.parameter
            places = Role.PLACE in self.first.roles.get(group.name, Role.PLACE)
            if places and _is_whole(parameter) and _is_size(arguments[at]):
                found[group.name] = parameter.divisibility
            behind = at + 1 + len(group.replaced)
            if group.rank is not None and any(
                _is_size(arguments[behind + axis]) for axis in range(len(group.sizes))
            ):
                found.update({f"{group.name}#{axis}": 1 for axis in range(group.rank)})
            at = behind + len(group.sizes) + len(group.strides)
        return found

    @cached_property
    def strides(self) -> list[tuple[Parameter, bool]]:
        """Integers that are nothing but distances, and whether something is stored that far."""
        arguments = dict(zip(self.first.parameters, _arguments(self.first), strict=True))
        return [
            (each, _reaches_store(arguments[each]))
            for each in (group.parameter for group in self.first.groups)
            if _is_whole(each)
            and each.name not in self.sizes
            and Role.PLACE in self.first.roles.get(each.name, Role.PLACE)
        ]

    def plan(self) -> Plan:
        """The plan."""
        for vector in self._pool():
            self._try(vector)
        if not any(each.valid for each in self.tried.values()):
            return Plan()
        main = self._shrunk(max(self._valid(), key=lambda each: (_weight(each), -each.cost)))
        for vector in self._around(main.vector):
            self._try(vector)
        chosen = self._cover(main)
        # The largest sizes say best which of them is an array's.
        cases = [self._finished(each) for each in reversed(chosen)]
        return Plan(tuple(case for case in cases[::-1] if case), self._advice())

    def _valid(self) -> list[_Tried]:
        return [each for each in self.tried.values() if each.valid]

    def _pool(self) -> Iterator[Vector]:
        names = list(self.sizes)
        middle = self._vector(dict.fromkeys(names, _MIDDLE))
        yield middle
        for level in _LADDER:
            yield self._vector(dict.fromkeys(names, level))
        pairs = itertools.combinations(names, 2) if 2 < len(names) <= 6 else ()
        for some in [*((name,) for name in names[:12]), *pairs]:
            long = () if self._has_rows else _LONG
            for level in (*_LADDER, *long) if len(some) == 1 else _LADDER[3:]:
                yield self._vector({**middle, **dict.fromkeys(some, level)})

    def _around(self, main: Vector) -> Iterator[Vector]:
        for name in list(self.sizes)[:12]:
            for level in _FEW:
                yield self._vector({**main, name: level})
        for level in _FEW:
            yield self._vector(dict.fromkeys(self.sizes, level))

    def _vector(self, wanted: Vector) -> Vector:
        """All different, and no multiples of blocks; 0 and 1 as they are."""
        found: dict[str, int] = {}
        for index, (name, size) in enumerate(wanted.items()):
            by = self.sizes[name]
            if size > 1 and size in (*_LADDER, *_LONG, _MIDDLE):
                size += size * index // 9 + 3 * index
            size = -(-size // by) * by
            while size > 1 and (size in found.values() or (size % 32 == 0 and by < 32)):
                size += by
            found[name] = size
        return found

    def _try(self, vector: Vector) -> _Tried:
        key = tuple(vector.values())
        if key not in self.tried:
            self.tried[key] = self._sketched(vector)
        return self.tried[key]

    def _sketched(self, vector: Vector) -> _Tried:
        goals, cost = set[Goal](), self._elements(vector) // _ELEMENTS_OF_STEP
        if cost > _MOST_ELEMENTS // _ELEMENTS_OF_STEP:
            return _Tried(vector, frozenset(), cost, valid=False)
        shapes = self._shapes(vector)
        x, y, z = self.grid
        for program in dict.fromkeys([(0, 0, 0), (x - 1, y - 1, z - 1)]):
            try:
                for each in (self.first, *self.others):
                    sketch = self._sketch(each, shapes, program)
                    goals |= sketch.coverage.reached()
                    cost += sketch.steps
            except TilepassError:
                return _Tried(vector, frozenset(), _STEPS, valid=False)
        return _Tried(vector, frozenset(goals), cost)

    def _sketch(
        self, form: SketchProgram, shapes: Shapes, program: Place, *, deep: bool = False
    ) -> Sketch:
        if form is not self.first:
            pairs = zip(self.first.groups, form.groups, strict=False)
            names = {one.name: other.name for one, other in pairs}
            named = {names.get(name, name): value for name, value in shapes.named.items()}
            shapes = Shapes(shapes.size, named)
        return form.sketch(shapes, program, self.grid, _STEPS, deep=deep)

    def _elements(self, vector: Vector) -> int:
        """About as many as the largest array has to hold."""
        second, first = sorted([1, 1, *vector.values()])[-2:]
        if any(stored for _, stored in self.strides):
            return first * first
        return first * second if self._has_rows else first

    @cached_property
    def _has_rows(self) -> bool:
        return bool(self.strides) or any((g.rank or 0) > 1 for g in self.first.groups)

    def _shapes(self, vector: Vector) -> Shapes:
        """Rows that are stored are longer than any size, so that they do not overlap; those that
        are only loaded may."""
        named: dict[str, Size] = {name: n for name, n in vector.items() if "#" not in name}
        most = max([64, *vector.values()])
        for index, (parameter, stored) in enumerate(self.strides):
            by = parameter.divisibility
            size = most if stored else min(most, _ROW)
            named[parameter.name] = -(-(size + 16 * index) // by) * by
        for group in self.first.groups:
            if group.rank is not None:
                extents = [vector.get(f"{group.name}#{axis}", most) for axis in range(group.rank)]
                named[group.name] = tuple(extents)
        return Shapes(64, named)

    def _shrunk(self, main: _Tried) -> _Tried:
        """The smallest sizes that reach what these do; those that do not matter are moderate."""
        middle = self._vector(dict.fromkeys(self.sizes, _MIDDLE))
        for name in self.sizes:
            if self._with(main, name, 1):
                moderate = min(middle[name], main.vector[name])
                main = self._with(main, name, moderate) or main
                continue
            low, high = 1, main.vector[name]
            while high - low > max(8, high // 8):
                half = (low + high) // 2
                if smaller := self._with(main, name, half):
                    main, high = smaller, half
                else:
                    low = half
        return main

    def _with(self, main: _Tried, name: str, size: int) -> _Tried | None:
        """Another size in place of one, where that reaches as much."""
        tried = self._try(self._vector({**main.vector, name: size}))
        return tried if tried.valid and set(filter(_is_wanted, main.goals)) <= tried.goals else None

    def _cover(self, main: _Tried) -> list[_Tried]:
        """A few cases that together reach all that any does, the cheapest."""
        chosen, reached = [main], set(main.goals)
        while len(chosen) < _MOST_CASES:
            best = max(self._valid(), key=lambda each: _gain(each, reached))
            if not best.goals - reached:
                break
            chosen.append(best)
            reached |= best.goals
        return sorted(chosen, key=lambda each: each.cost)

    def _advice(self) -> dict[str, str]:
        """The cheapest sizes for each goal."""
        tried = sorted(self._valid(), key=lambda each: -each.cost)
        return {describe(goal): _spelled(each.vector) for each in tried for goal in each.goals}

    def _finished(self, tried: _Tried) -> Planned | None:
        """With arrays, and the programs to be run."""
        shapes = self._shapes(tried.vector)
        places = places_of(self.grid)
        cost = max(1, tried.cost // 2)
        count = max(4, min(_PROGRAMS, _STEPS_OF_GRID // cost))
        if len(places) > count:
            half = count // 2
            places = [*places[:half], *places[half - count :]]
        sketches: dict[Place, Sketch] = {}
        for place in places:
            try:
                sketches[place] = self._sketch(self.first, shapes, place, deep=True)
            except StepLimit:
                return None
            except TilepassError:
                continue
        programs = _programs(sketches) if len(places) > 2 * _MOST_RUN else places
        reach = Reach()
        for sketch in sketches.values():
            reach.merge(sketch.reach)
        named = {**shapes.named, **self._arrays(tried.vector, shapes, reach)}
        return Planned(Shapes(64, named), self.grid, tuple(programs), _spelled(tried.vector))

    def _arrays(self, vector: Vector, shapes: Shapes, reach: Reach) -> dict[str, Size]:
        found: dict[str, Size] = {}
        for number, group in enumerate(self.first.groups):
            if group.rank is not None:
                if f"{group.name}#0" not in vector:
                    found[group.name] = self._extents(group, vector, reach)
            elif _is_pointer(group.parameter):
                count = -(-reach.bytes.get(number, 0) // group.element.size)
                if reach.unknown:
                    count = max(count, (max([64, *vector.values()]) + 256) ** 2)
                found[group.name] = min(count, _MOST_ELEMENTS) + _MARGIN
        return found

    def _size_of(self, axis: tuple[str, int], vector: Vector, end: int, block: int) -> int | None:
        """The size that an array ends with. Its last tile may be stored in several boxes."""
        fitting = {size: name for name, size in vector.items() if end - 4 * block < size <= end}
        if not fitting:
            return None
        name = self.dimensions.setdefault(axis, fitting[max(fitting)])
        return vector[name] if vector[name] in fitting else None

    def _extents(self, group: Group, vector: Vector, reach: Reach) -> tuple[int, ...]:
        """What the boxes reach, the last one cut: where a size ends there, by that."""
        ends = [box for (name, _), box in reach.boxes.items() if name == group.name]
        if not ends or group.rank is None:
            return (64,) * (group.rank or 0)
        found: list[int] = []
        for axis in range(group.rank):
            end, block = max(box[axis] for box in ends)
            size = self._size_of((group.name, axis), vector, end, block)
            found.append(max(1, end - block // 3 if size is None else size))
        return tuple(found)


def _programs(sketches: Mapping[Place, Sketch]) -> list[Place]:
    """A few programs that differ: in their trips, or in the edges that they touch."""
    farthest = Reach()
    for sketch in sketches.values():
        farthest.merge(sketch.reach)
    goals: dict[Place, set[Any]] = {}
    for place, sketch in sketches.items():
        own: set[Any] = {("trips", sketch.coverage.lengths), *sketch.coverage.reached()}
        for key, ends in sketch.reach.boxes.items():
            own |= {
                (key, axis) for axis, end in enumerate(ends) if end == farthest.boxes[key][axis]
            }
        goals[place] = own
    chosen, reached = list[Place](), set[Any]()
    while len(chosen) < _MOST_RUN:
        best = max(goals, key=lambda place: len(goals[place] - reached), default=None)
        if best is None or not goals[best] - reached:
            break
        chosen.append(best)
        reached |= goals[best]
    if len(chosen) < 2:
        chosen += [place for place in (min(goals), max(goals)) if place not in chosen][:1]
    return sorted(chosen)


def _is_wanted(goal: Goal) -> bool:
    return goal[1] in (THREE_TRIPS, WRAPS) or "again" in goal[1] or goal[1].endswith("times")


def _weight(tried: _Tried) -> int:
    return sum(map(_is_wanted, tried.goals))


def _gain(tried: _Tried, reached: set[Goal]) -> tuple[int, int]:
    return len(tried.goals - reached), -tried.cost


def _spelled(vector: Vector) -> str:
    named: dict[str, str] = {}
    for key, size in vector.items():
        name, _, axis = key.partition("#")
        named[name] = f"{named[name]}x{size}" if axis not in ("", "0") else str(size)
    return ",".join(["64", *(f"{name}={size}" for name, size in named.items())])


def _is_whole(parameter: Parameter) -> bool:
    type_ = parameter.type
    return type_.form == "scalar" and type_.of.kind == "integer" and type_.of.bits > 1


def _is_pointer(parameter: Parameter) -> bool:
    return parameter.type.form == "scalar" and parameter.type.of.kind == "pointer"


def _arguments(program: SketchProgram) -> list[engine.ir.Value]:
    functions = [each for each in engine.operations(program.module) if each.name == "tt.func"]
    name = f'"{program.name}"'
    entry = next(each for each in functions if str(each.attributes["sym_name"]) == name)
    return list(entry.regions[0].blocks[0].arguments)


_SAME = frozenset(
    ("arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast", "tt.splat",
     "tt.expand_dims", "tt.broadcast", "ttg.convert_layout")
)  # fmt: skip
_DISTANCES = frozenset(
    ("arith.muli", "tt.addptr", "tt.make_tensor_descriptor", "tt.make_tensor_ptr")
)


_STORES = ("tt.store", "tt.descriptor_store", "tt.descriptor_reduce", "tt.atomic_rmw", "scf.for",
           "ttg.warp_specialize")  # fmt: skip
_DEEP = 12


def _is_size(value: engine.ir.Value) -> bool:
    """Whether an integer is used for something else than distances in memory."""
    for use in value.uses:
        user: Any = use.owner
        user = getattr(user, "operation", user)
        if user.name in _SAME:
            if any(_is_size(result) for result in user.results):
                return True
        elif user.name not in _DISTANCES or _is_extent(user, use.operand_number):
            return True
    return False


def _reaches_store(value: engine.ir.Value, depth: int = 0) -> bool:
    """Whether a distance leads to an address that is stored to."""
    for use in value.uses:
        user: Any = use.owner
        user = getattr(user, "operation", user)
        if user.name in _STORES:
            return True
        follows = user.name in (*_SAME, *_DISTANCES, "arith.addi")
        if (
            follows
            and depth < _DEEP
            and any(_reaches_store(result, depth + 1) for result in user.results)
        ):
            return True
    return False


def _is_extent(user: engine.Operation, operand: int) -> bool:
    """Whether an operand of an operation that describes an array is one of its sizes."""
    if not user.name.startswith("tt.make_tensor"):
        return False
    parts = 3 if user.name == "tt.make_tensor_ptr" else 2
    return operand <= (len(user.operands) - 1) // parts
