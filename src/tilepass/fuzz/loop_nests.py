"""Scalar loop nests as TTIR: what the fuzzer makes and reduces.

A nest is a tile loop of a persistent program with inner loops; what varies: bounds and steps, what
the loops carry, conditions, loads in the bounds, accesses before, in and after the inner loops.
Values are i32. Indices are masked to the arrays, so that only the bounds can reach outside.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

ELEMENTS = 64
"""Elements of the arrays `in` and `out`, a power of two."""

SIGNATURE = ", ".join(
    [f'%{name}: !tt.ptr<i32> loc("{name}")' for name in ("in", "out", "sizes")]
    + [f'%{name}: i32 loc("{name}")' for name in ("tiles", "lower", "upper")]
)
"""`sizes` has an element where at least one tile runs, and none otherwise."""

_CONSTANTS = {"%c0": 0, "%c1": 1, "%c2": 2, "%c3": 3, "%cn": -1, "%mask": ELEMENTS - 1}
BINARY = ("addi", "subi", "muli", "andi", "ori", "xori", "maxsi", "minsi")
COMPARE = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult")


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
        if self.operation in BINARY:
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
