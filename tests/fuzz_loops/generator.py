"""Random loop nests."""

from __future__ import annotations

import random

from tests.fuzz_loops.nests import (
    BINARY,
    COMPARE,
    Access,
    Advance,
    Compute,
    Disguise,
    Dot,
    If,
    Loop,
    Nest,
    Statement,
    StoreSize,
    Taken,
)


def random_nest(seed: int) -> Nest:
    """The nest of a seed."""
    return _Generator(random.Random(seed)).nest()


class _Generator:
    def __init__(self, source: random.Random) -> None:
        self._random = source
        self._count = 0
        # The pointers that loads and stores go through.
        self._pointers = {"%in": ["%in", "%q_in"], "%out": ["%out", "%q_out"]}

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
        scalars = [self._name("v") for _ in range(self._random.choice([0, 0, 0, 0, 1, 1, 2]))]
        pointers = self._carried_pointers()
        tile = "%tile"
        known = [*before, tile, *scalars]
        body: list[Statement] = self._block(known, self._random.randrange(4), stores=0.02)
        early = list(known)
        for _ in range(1 if self._chance(0.95) else self._random.choice([0, 2])):
            if len(body) and isinstance(body[-1], Loop):
                body += self._block(known, self._random.randrange(3), stores=0.3)
            self._bounds(body, known)
            body += self._inner(known)
        taken = known[-1]
        body += self._block(known, self._random.randrange(3), stores=0.2)
        if self._chance(0.04):
            body.append(StoreSize([self._pick(known)], [], self._tag()))
        if self._chance(0.2):
            body.append(self._if(known, stores=0.9))
        carried = [
            (name, self._pick(before), self._next(name, early, known, body)) for name in scalars
        ]
        carried += self._moved(pointers, body)
        body.append(self._store([self._pick([tile, *known]), self._pick(known)]))
        body.append(self._store([self._pick([tile, *known]), taken]))
        results = [self._name("q" if name.startswith("%q") else "r") for name, _, _ in carried]
        outer = Loop(
            ["%pid", "%tiles", "%programs" if self._chance(0.8) else "%c2"],
            results,
            tile,
            body,
            carried,
            "{tt.flatten}",
        )
        after: list[Statement] = [
            Access([value, value], [], "%out", self._tag())
            for value in results
            if not value.startswith("%q")
        ]
        return Nest([outer, *after])

    def _carried_pointers(self) -> list[tuple[str, str]]:
        """Pointers that the tile loop carries: (name, what it starts as)."""
        pointers: list[tuple[str, str]] = []
        for _ in range(self._random.choice([0, 0, 0, 0, 1, 1, 2])):
            array = self._random.choice(["%in", "%out"])
            pointers.append((self._name("q"), self._random.choice(self._pointers[array][:2])))
        for name, start in pointers:
            self._pointers["%in" if "in" in start else "%out"].append(name)
        return pointers

    def _next(self, name: str, early: list[str], known: list[str], body: list[Statement]) -> str:
        """The next value of a carried scalar; at times the epilogue makes what the prologue knows
        already, which does not show."""
        if self._chance(0.3):
            given = [self._pick(known), self._pick(known), self._pick(early)]
            body.append(Disguise(given, [disguised := self._name("e")]))
            return disguised
        return self._pick(known) if self._chance(0.65) else name

    def _moved(
        self, pointers: list[tuple[str, str]], body: list[Statement]
    ) -> list[tuple[str, str, str]]:
        """What the carried pointers start as and become: the same, another, or further on."""
        carried: list[tuple[str, str, str]] = []
        for name, start in pointers:
            to = name
            if self._chance(0.3):
                to = self._random.choice([other for other, _ in pointers])
            if self._chance(0.7):
                amount = self._random.choice(["%c0", "%c1", "%c3"])
                body.insert(
                    self._random.choice([0, len(body), len(body), len(body)]),
                    Advance([to, amount], [further := self._name("q")]),
                )
                to = further
            carried.append((name, start, to))
        return carried

    def _tag(self) -> str:
        return self._name("").removeprefix("%")

    def _store(self, reads: list[str]) -> Access:
        return Access(reads, [], self._random.choice(self._pointers["%out"]), self._tag())

    def _load(self, index: str, name: str) -> Access:
        array = "%in" if self._chance(0.98) else "%out"
        return Access([index], [name], self._random.choice(self._pointers[array]), self._tag())

    def _bounds(self, body: list[Statement], known: list[str]) -> None:
        """Choose the bounds of the next inner loop; loaded or computed ones become known."""
        kind = self._random.random()
        self._lower = self._random.choice(["%c0", "%lower", "%lower", "%c1"])
        self._upper = self._random.choice(["%upper", "%upper", "%upper", "%c3"])
        self._step = self._random.choice(["%c1", "%c1", "%c2", "%c3"])
        if kind < 0.03:
            self._upper = self._name("size")
            body.append(Access(["%c0"], [self._upper], "%sizes"))
        elif kind < 0.2:
            self._upper = self._name("b")
            inputs = ["%upper", self._random.choice(["%c1", "%lower", "%pid", "%cn", "%tile"])]
            body.append(Compute(inputs, [self._upper], self._random.choice(["addi", "minsi"])))
            known.append(self._upper)
        elif kind < 0.22:
            self._lower, self._upper, self._step = "%least", "%most", "%huge"

    def _inner(self, known: list[str]) -> list[Statement]:
        """An inner loop, and the value of its accumulator, which becomes known last."""
        arguments = [self._name("w") for _ in range(self._random.choice([0, 1, 1, 2]))]
        index, accumulator = self._name("k"), self._name("acc")
        outside = [name for name in known if name != "%tile" or self._chance(0.1)]
        starts = [self._pick(outside) for _ in arguments]
        inside = [*known, index, *arguments]
        body = self._block(inside, self._random.randrange(3), stores=0.12)
        moving: list[tuple[str, str, str]] = []
        if self._chance(0.2):
            names = [self._name("q") for _ in range(2)]
            moving.append((names[0], self._random.choice(self._pointers["%in"]), names[1]))
            body.append(Access([index], [loaded := self._name("x")], names[0], self._tag()))
            body.append(Advance([names[0], "%c3"], [names[1]]))
            inside.append(loaded)
        elif self._chance(0.95):
            body.append(self._load(self._pick(inside), loaded := self._name("x")))
            inside.append(loaded)
        dotted = self._name("acc")
        body.append(Dot([accumulator, inside[-1]], [dotted]))
        if self._chance(0.15):
            body.append(self._if(inside, stores=0.5))
        carried = [
            (name, start, self._pick(inside)) for name, start in zip(arguments, starts, strict=True)
        ]
        carried = [*carried, *moving, (accumulator, "%one", dotted)]
        results = [self._name("s") for _ in arguments]
        known += results
        moved, taken = [self._name("q") for _ in moving], self._name("t")
        bounds = [self._lower, self._upper, self._step]
        result = self._name("acc")
        loop = Loop(bounds, [*results, *moved, result], index, body, carried)
        known.append(taken)
        return [loop, Taken([result], [taken])]

    def _block(self, known: list[str], length: int, stores: float) -> list[Statement]:
        """Statements; the names that they give are added to `known`."""
        block: list[Statement] = []
        for _ in range(length):
            if self._chance(stores):
                block.append(self._store([self._pick(known), self._pick(known)]))
            elif self._chance(0.25):
                name = self._name("x")
                block.append(self._load(self._pick(known), name))
                known.append(name)
            elif self._chance(0.12):
                block.append(self._if(known, stores))
            elif self._chance(0.1):
                name = self._name("e")
                block.append(Disguise([self._pick(known) for _ in range(3)], [name]))
                known.append(name)
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
