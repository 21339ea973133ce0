"""Random loop nests."""

from __future__ import annotations

import random

from tilepass.fuzz.loop_nests import (
    BINARY,
    COMPARE,
    Access,
    Compute,
    Dot,
    If,
    Loop,
    Nest,
    Statement,
    StoreSize,
)


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
                operation = self._random.choice(BINARY + COMPARE)
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
        compare = self._random.choice(COMPARE)
        return If(reads, gives, compare, self._tag(), then, otherwise, yields)
