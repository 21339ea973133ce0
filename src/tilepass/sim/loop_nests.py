"""Random scalar loop nests as TTIR, and their reduction to smaller ones.

A nest is a tile loop of a persistent program with inner loops; what varies: bounds and steps, what
the loops carry, conditions, loads in the bounds, accesses before, in and after the inner loops.
Values are i32. Indices are masked to the arrays, so that only the bounds can reach outside.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field

ELEMENTS = 64
"""Elements of the arrays `in` and `out`, a power of two."""

SIGNATURE = ", ".join(
    [f'%{name}: !tt.ptr<i32> loc("{name}")' for name in ("in", "out", "sizes")]
    + [f'%{name}: i32 loc("{name}")' for name in ("tiles", "lower", "upper")]
)
"""`sizes` has an element where at least one tile runs, and none otherwise."""

_CONSTANTS = {"%c0": 0, "%c1": 1, "%c2": 2, "%c3": 3, "%cn": -1, "%mask": ELEMENTS - 1}
_BINARY = ("addi", "subi", "muli", "andi", "ori", "xori", "maxsi", "minsi")
_COMPARE = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult")


@dataclass
class Statement:
    """Base of what a block holds. `reads` are the operands; `gives` the names defined after it."""

    reads: list[str] = field(default_factory=list[str])
    gives: list[str] = field(default_factory=list[str])


@dataclass
class Compute(Statement):
    """`operation` of two values; a comparison selects between them."""

    operation: str = "addi"

    def lines(self) -> Iterator[str]:
        (name,), (a, b) = self.gives, self.reads
        if self.operation in _BINARY:
            yield f"{name} = arith.{self.operation} {a}, {b} : i32"
            return
        yield f"{name}_c = arith.cmpi {self.operation}, {a}, {b} : i32"
        yield f"{name} = arith.select {name}_c, {a}, {b} : i32"


@dataclass
class Access(Statement):
    """A load (gives a value) or store (reads index and value) in `array`."""

    array: str = "%in"
    tag: str = ""

    def lines(self) -> Iterator[str]:
        index = self.reads[0]
        if self.array == "%sizes":
            yield f"{self.gives[0]} = tt.load %sizes : !tt.ptr<i32>"
            return
        yield f"%i{self.tag} = arith.andi {index}, %mask : i32"
        yield f"%p{self.tag} = tt.addptr {self.array}, %i{self.tag} : !tt.ptr<i32>, i32"
        if self.gives:
            yield f"{self.gives[0]} = tt.load %p{self.tag} : !tt.ptr<i32>"
        else:
            yield f"tt.store %p{self.tag}, {self.reads[1]} : !tt.ptr<i32>"


@dataclass
class StoreSize(Statement):
    """A store of 0 to 3 to the array that bounds are loaded from."""

    tag: str = ""

    def lines(self) -> Iterator[str]:
        yield f"%z{self.tag} = arith.andi {self.reads[0]}, %c3 : i32"
        yield f"tt.store %sizes, %z{self.tag} : !tt.ptr<i32>"


@dataclass
class Dot(Statement):
    """A dot of one element, which makes the loop around it one that flattening is for."""

    def lines(self) -> Iterator[str]:
        (result,), (accumulator,) = self.gives, self.reads
        yield (
            f"{result} = tt.dot %one, %one, {accumulator} : "
            "tensor<1x1xf32> * tensor<1x1xf32> -> tensor<1x1xf32>"
        )


@dataclass
class If(Statement):
    """A condition on two values; what it gives is yielded by both branches."""

    compare: str = "slt"
    tag: str = ""
    then: list[Statement] = field(default_factory=list[Statement])
    otherwise: list[Statement] = field(default_factory=list[Statement])
    yields: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def lines(self) -> Iterator[str]:
        a, b = self.reads[:2]
        condition = f"%if{self.tag}"
        yield f"{condition} = arith.cmpi {self.compare}, {a}, {b} : i32"
        results, types = ", ".join(self.gives), ", ".join("i32" for _ in self.gives)
        head = (
            f"{results} = scf.if {condition} -> ({types}) {{"
            if results
            else (f"scf.if {condition} {{")
        )
        yield head
        yield from _indented(self.then)
        if results:
            yield f"  scf.yield {', '.join(one for one, _ in self.yields)} : {types}"
        if self.otherwise or results:
            yield "} else {"
            yield from _indented(self.otherwise)
        if results:
            yield f"  scf.yield {', '.join(other for _, other in self.yields)} : {types}"
        yield "}"


@dataclass
class Loop(Statement):
    """A loop; `reads` are its bounds and step. `carried`: (argument, initial, next); an argument
    that begins with %acc is a tensor of one float."""

    index: str = "%k"
    body: list[Statement] = field(default_factory=list[Statement])
    carried: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    attributes: str = ""

    def lines(self) -> Iterator[str]:
        lower, upper, step = self.reads
        types = ", ".join(_type(name) for name, _, _ in self.carried)
        starts = ", ".join(f"{name} = {initial}" for name, initial, _ in self.carried)
        results = ", ".join(self.gives)
        head = f"scf.for {self.index} = {lower} to {upper} step {step}"
        if self.carried:
            head = f"{results} = {head} iter_args({starts}) -> ({types})"
        yield f"{head} : i32 {{"
        yield from _indented(self.body)
        if self.carried:
            yield f"  scf.yield {', '.join(value for _, _, value in self.carried)} : {types}"
        yield f"}} {self.attributes}".rstrip()


AnyStatement = Compute | Access | StoreSize | Dot | If | Loop


def _type(name: str) -> str:
    return "tensor<1x1xf32>" if name.startswith("%acc") else "i32"


def _indented(statements: list[Statement]) -> Iterator[str]:
    for each in statements:
        assert isinstance(each, AnyStatement)
        for line in each.lines():
            yield f"  {line}"


@dataclass
class Nest:
    """A function with one tile loop."""

    statements: list[Statement]

    def text(self) -> str:
        """The module."""
        return "\n".join([
            f"tt.func public @nest({SIGNATURE}) {{",
            *[f"  {name} = arith.constant {value} : i32" for name, value in _CONSTANTS.items()],
            "  %one = arith.constant dense<1.0> : tensor<1x1xf32>",
            "  %pid = tt.get_program_id x : i32",
            "  %programs = tt.get_num_programs x : i32",
            *_indented(self.statements),
            "  tt.return",
            "}",
            "",
        ])  # fmt: skip


def random_nest(seed: int) -> Nest:
    """The nest of a seed."""
    return _Generator(random.Random(seed)).nest()


class _Generator:
    def __init__(self, source: random.Random) -> None:
        self._random = source
        self._count = 0

    def _name(self, prefix: str) -> str:
        self._count += 1
        return f"%{prefix}{self._count}"

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _pick(self, values: list[str]) -> str:
        """One of the values, the latest ones more often."""
        if len(values) > 6 and self._chance(0.5):
            return self._random.choice(values[-4:])
        return self._random.choice(values)

    def nest(self) -> Nest:
        before = ["%c1", "%c3", "%pid", "%lower", "%upper", "%tiles"]
        carried = [self._name("v") for _ in range(self._random.choice([0, 0, 0, 0, 1, 1, 2]))]
        tile = "%tile"
        known = [*before, tile, *carried]
        body: list[Statement] = self._block(known, self._random.randrange(4), stores=0.02)
        for _ in range(1 if self._chance(0.95) else self._random.choice([0, 2])):
            if len(body) and isinstance(body[-1], Loop):
                body += self._block(known, self._random.randrange(3), stores=0.3)
            self._bounds(body, known)
            body.append(self._inner(known))
        body += self._block(known, self._random.randrange(3), stores=0.2)
        if self._chance(0.04):
            body.append(StoreSize([self._pick(known)], [], self._tag()))
        if self._chance(0.2):
            body.append(self._if(known, stores=0.9))
        body.append(
            Access([self._pick([tile, *known]), self._pick(known)], [], "%out", self._tag())
        )
        nexts = [self._pick(known) if self._chance(0.75) else name for name in carried]
        results = [self._name("r") for _ in carried]
        starts = [self._pick(before) for _ in carried]
        outer = Loop(
            ["%pid", "%tiles", "%programs" if self._chance(0.8) else "%c2"],
            results,
            tile,
            body,
            list(zip(carried, starts, nexts, strict=True)),
            "{tt.flatten}",
        )
        after: list[Statement] = [
            Access([value, value], [], "%out", self._tag()) for value in results
        ]
        return Nest([outer, *after])

    def _tag(self) -> str:
        return self._name("").removeprefix("%")

    def _bounds(self, body: list[Statement], known: list[str]) -> None:
        """Choose the bounds of the next inner loop; loaded or computed ones become known."""
        kind = self._random.random()
        self._lower = self._random.choice(["%c0", "%lower", "%lower", "%c1"])
        self._upper = self._random.choice(["%upper", "%upper", "%upper", "%c3"])
        if kind < 0.03:
            self._upper = self._name("size")
            body.append(Access(["%c0"], [self._upper], "%sizes"))
        elif kind < 0.2:
            self._upper = self._name("b")
            inputs = ["%upper", self._random.choice(["%c1", "%lower", "%pid", "%cn", "%tile"])]
            body.append(Compute(inputs, [self._upper], self._random.choice(["addi", "minsi"])))
            known.append(self._upper)
        self._step = self._random.choice(["%c1", "%c1", "%c2", "%c3"])

    def _inner(self, known: list[str]) -> Loop:
        arguments = [self._name("w") for _ in range(self._random.choice([0, 1, 1, 2]))]
        index, accumulator = self._name("k"), self._name("acc")
        outside = [name for name in known if name != "%tile" or self._chance(0.1)]
        starts = [self._pick(outside) for _ in arguments]
        inside = [*known, index, *arguments]
        body = self._block(inside, self._random.randrange(3), stores=0.12)
        if self._chance(0.95):
            body.append(
                Access([self._pick(inside)], [loaded := self._name("x")], "%in", self._tag())
            )
            inside.append(loaded)
        dotted = self._name("acc")
        body.insert(self._random.randrange(len(body) + 1), Dot([accumulator], [dotted]))
        if self._chance(0.15):
            body.append(self._if(inside, stores=0.5))
        carried = [
            (name, start, self._pick(inside)) for name, start in zip(arguments, starts, strict=True)
        ]
        carried.append((accumulator, "%one", dotted))
        results = [self._name("s") for _ in arguments]
        known += results
        bounds = [self._lower, self._upper, self._step]
        return Loop(bounds, [*results, self._name("acc")], index, body, carried)

    def _block(self, known: list[str], length: int, stores: float) -> list[Statement]:
        """Statements; the names that they give are added to `known`."""
        block: list[Statement] = []
        for _ in range(length):
            if self._chance(stores):
                operands = [self._pick(known), self._pick(known)]
                block.append(Access(operands, [], "%out", self._tag()))
            elif self._chance(0.25):
                array = "%in" if self._chance(0.98) else "%out"
                name = self._name("x")
                block.append(Access([self._pick(known)], [name], array, self._tag()))
                known.append(name)
            elif self._chance(0.12):
                block.append(self._if(known, stores))
            else:
                name = self._name("e")
                operation = self._random.choice(_BINARY + _COMPARE)
                block.append(Compute([self._pick(known), self._pick(known)], [name], operation))
                known.append(name)
        return block

    def _if(self, known: list[str], stores: float) -> If:
        then_known, else_known = list(known), list(known)
        reads = [self._pick(known), self._pick(known)]
        then = self._block(then_known, self._random.randrange(1, 3), stores)
        otherwise = self._block(else_known, self._random.randrange(3), stores)
        gives = [self._name("f") for _ in range(self._random.randrange(3))]
        yields = [(self._pick(then_known), self._pick(else_known)) for _ in gives]
        known += gives
        compare = self._random.choice(_COMPARE)
        return If(reads, gives, compare, self._tag(), then, otherwise, yields)


def smaller(nest: Nest) -> Iterator[Nest]:
    """Nests with one thing less: a statement, a carried value, or a condition around statements."""
    for position in range(_size(nest)):
        for change in (_remove, _unwrap, _drop_carried):
            candidate = deepcopy(nest)
            if change(candidate, position):
                yield candidate


def _blocks(statements: list[Statement]) -> Iterator[tuple[list[Statement], int]]:
    for index, each in enumerate(statements):
        yield statements, index
        if isinstance(each, Loop):
            yield from _blocks(each.body)
        if isinstance(each, If):
            yield from _blocks(each.then)
            yield from _blocks(each.otherwise)


def _size(nest: Nest) -> int:
    return sum(1 for _ in _blocks(nest.statements))


def _remove(nest: Nest, position: int) -> bool:
    block, index = list(_blocks(nest.statements))[position]
    removed = block.pop(index)
    for name in removed.gives:
        _replace(nest, name, "%one" if name.startswith("%acc") else "%c1")
    return True


def _unwrap(nest: Nest, position: int) -> bool:
    block, index = list(_blocks(nest.statements))[position]
    each = block[index]
    if not isinstance(each, If):
        return False
    block[index : index + 1] = each.then
    for name, (value, _) in zip(each.gives, each.yields, strict=True):
        _replace(nest, name, value)
    return True


def _drop_carried(nest: Nest, position: int) -> bool:
    block, index = list(_blocks(nest.statements))[position]
    each = block[index]
    if not isinstance(each, Loop) or not each.carried or each.carried[0][0].startswith("%acc"):
        return False
    name, initial, _ = each.carried.pop(0)
    result = each.gives.pop(0)
    _replace(nest, name, initial)
    _replace(nest, result, initial)
    return True


def _replace(nest: Nest, old: str, new: str) -> None:
    def changed(name: str) -> str:
        return new if name == old else name

    for block, index in list(_blocks(nest.statements)):
        each = block[index]
        each.reads = [changed(name) for name in each.reads]
        if isinstance(each, If):
            each.yields = [(changed(one), changed(other)) for one, other in each.yields]
        if isinstance(each, Loop):
            each.carried = [
                (name, changed(initial), changed(value)) for name, initial, value in each.carried
            ]
