"""Scalar loop nests as TTIR: what the fuzzer makes and reduces.

A nest is a tile loop of a persistent program with inner loops; what varies: bounds and steps, what
the loops carry, conditions, loads in the bounds, accesses before, in and after the inner loops.
Values are i32 and pointers, whose names begin with %q. Indices are masked, and pointers move no
further than the arrays are long, so that only the bounds can reach outside.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

ELEMENTS = 64
"""Elements that an index reaches, a power of two."""

LENGTH = 3 * ELEMENTS
"""Elements of the arrays `in` and `out`: what a pointer reaches that moves by at most 3 in each of
at most 4 inner trips of at most 5 tiles."""

SIGNATURE = ", ".join(
    [f'%{name}: !tt.ptr<i32> loc("{name}")' for name in ("in", "out", "sizes")]
    + [f'%{name}: i32 loc("{name}")' for name in ("tiles", "lower", "upper", "least")]
)
"""`lower` is assumed to be zero or more, `least` is the least number. `sizes` has an element where
a tile runs, and none otherwise."""

_CONSTANTS = {
    **{"%c0": 0, "%c1": 1, "%c2": 2, "%c3": 3, "%cn": -1, "%mask": ELEMENTS - 1},
    **{"%most": (1 << 31) - 1, "%huge": 1 << 30},
}
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
class Advance(Statement):
    """A pointer moved by a number of elements."""

    def lines(self) -> Iterator[str]:
        (name,), (pointer, amount) = self.gives, self.reads
        yield f"{name} = tt.addptr {pointer}, {amount} : !tt.ptr<i32>, i32"


@dataclass
class Disguise(Statement):
    """The last of three values, plus a difference of two equal products of the others: what it is
    shows once one product is left and the difference is folded, which takes Triton two stages."""

    def lines(self) -> Iterator[str]:
        (name,), (a, b, value) = self.gives, self.reads
        for product in "ab":
            yield f"{name}_{product} = arith.muli {a}, {b} : i32"
        yield f"{name}_d = arith.subi {name}_a, {name}_b : i32"
        yield f"{name} = arith.addi {value}, {name}_d : i32"


@dataclass
class Taken(Statement):
    """What a dot's accumulator holds, as an integer."""

    def lines(self) -> Iterator[str]:
        (name,), (accumulator,) = self.gives, self.reads
        yield f"{name}_f = tt.unsplat {accumulator} : tensor<1x1xf32>"
        yield f"{name} = arith.fptosi {name}_f : f32 to i32"


@dataclass
class StoreSize(Statement):
    """A store of 0 to 3 to the array that bounds are loaded from."""

    tag: str = ""

    def lines(self) -> Iterator[str]:
        yield f"%z{self.tag} = arith.andi {self.reads[0]}, %c3 : i32"
        yield f"tt.store %sizes, %z{self.tag} : !tt.ptr<i32>"


@dataclass
class Dot(Statement):
    """A dot of one element, which makes the loop around it one that flattening is for: it adds some
    bits of a value to the accumulator."""

    def lines(self) -> Iterator[str]:
        (result,), (accumulator, value) = self.gives, self.reads
        yield f"{result}_m = arith.andi {value}, %mask : i32"
        yield f"{result}_f = arith.sitofp {result}_m : i32 to f32"
        yield f"{result}_s = tt.splat {result}_f : f32 -> tensor<1x1xf32>"
        yield (
            f"{result} = tt.dot {result}_s, %one, {accumulator} : "
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
    that begins with %acc is a tensor of one float, one with %q a pointer."""

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


AnyStatement = Compute | Access | Advance | Disguise | Taken | StoreSize | Dot | If | Loop


def _type(name: str) -> str:
    if name.startswith("%q"):
        return "!tt.ptr<i32>"
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
            "  %positive = arith.cmpi sge, %lower, %c0 : i32",
            "  llvm.intr.assume %positive : i1",
            "  %q_in = tt.addptr %in, %c3 : !tt.ptr<i32>, i32",
            "  %q_out = tt.addptr %out, %c3 : !tt.ptr<i32>, i32",
            *_indented(self.statements),
            "  tt.return",
            "}",
            "",
        ])  # fmt: skip
