"""analysis.bounds against random expressions: what they evaluate to is within their bounds."""

from __future__ import annotations

import random

import pytest

from tilepass.analysis.bounds import Bounds, bounds_of
from tilepass.frontends.triton import bridge
from tilepass.ir import engine
from tilepass.ir.engine import Operation, ir

ARGUMENTS = ("%x", "%y", "%tile")
EXTREMES = (-(1 << 31), -(1 << 31) + 1, -130, -2, -1, 0, 1, 2, 3, 127, (1 << 31) - 2, (1 << 31) - 1)
OPERATIONS = (
    *("addi", "subi", "muli", "maxsi", "minsi", "andi", "ori", "xori", "select"),
    *("divsi", "floordivsi", "ceildivsi", "remsi", "shli", "extui"),
)
DIVISIONS = ("divsi", "floordivsi", "ceildivsi", "remsi")


def wrapped(number: int, width: int = 32) -> int:
    half = 1 << (width - 1)
    return (number + half) % (2 * half) - half


def evaluate(name: str, a: int, b: int) -> int:
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if b else 0
    results = {
        "addi": a + b,
        "subi": a - b,
        "muli": a * b,
        "maxsi": max(a, b),
        "minsi": min(a, b),
        "andi": a & b,
        "ori": a | b,
        "xori": a ^ b,
        "select": a if a < b else b,
        "divsi": quotient,
        "floordivsi": a // b if b else 0,
        "ceildivsi": -(-a // b) if b else 0,
        "remsi": a - b * quotient,
        "shli": a << (b & 31),
        # Through i8, as unsigned.
        "extui": a & 255,
    }
    return wrapped(results[name])


class Expression:
    """A function of `x`, `y` and a loop's index from 3 to `y`, with operations at random."""

    def __init__(self, source: random.Random) -> None:
        self.names: list[str] = list(ARGUMENTS)
        self.lines: list[str] = []
        self.steps: list[tuple[str, str, str, str]] = []
        for index in range(8):
            operation, a, b = source.choice(OPERATIONS), *source.choices(self.names, k=2)
            if operation in DIVISIONS or source.random() < 0.4:
                b = f"%n{index}"
                number = source.choice((*EXTREMES, 16, 64, 100))
                if operation in DIVISIONS:
                    number = abs(number) % (1 << 31) or 1
                self.lines.append(f"{b} = arith.constant {number} : i32")
                self.steps.append((b, "constant", str(number), ""))
            self._add(f"%v{index}", operation, a, b)

    def _add(self, name: str, operation: str, a: str, b: str) -> None:
        self.names.append(name)
        self.steps.append((name, operation, a, b))
        if operation == "select":
            self.lines.append(f"{name}_c = arith.cmpi slt, {a}, {b} : i32")
            self.lines.append(f"{name} = arith.select {name}_c, {a}, {b} : i32")
        elif operation == "extui":
            self.lines.append(f"{name}_t = arith.trunci {a} : i32 to i8")
            self.lines.append(f"{name} = arith.extui {name}_t : i8 to i32")
        else:
            self.lines.append(f"{name} = arith.{operation} {a}, {b} : i32")

    def module(self) -> engine.Module:
        body = "\n".join(self.lines)
        text = f"""
tt.func @f(%p: !tt.ptr<i32>, %x: i32, %y: i32) {{
  %three = arith.constant 3 : i32
  %most = arith.constant 1000 : i32
  %small = arith.cmpi sle, %x, %most : i32
  llvm.intr.assume %small : i1
  scf.for %tile = %three to %y step %three : i32 {{
    {body}
    tt.store %p, {self.names[-1]} : !tt.ptr<i32>
  }}
  tt.return
}}
"""
        return bridge.to_engine(bridge.load(text, "expression.mlir"))

    def value(self, x: int, y: int, tile: int) -> int:
        values: dict[str, int] = dict(zip(ARGUMENTS, (x, y, tile), strict=True))
        for name, operation, a, b in self.steps:
            values[name] = (
                int(a) if operation == "constant" else evaluate(operation, values[a], values[b])
            )
        return values[self.names[-1]]


def stored(module: engine.Module) -> tuple[ir.Value, Operation]:
    (store,) = (each for each in engine.operations(module) if each.name == "tt.store")
    return store.operands[1], store


@pytest.mark.parametrize("seed", range(150))
def test_values_are_within_their_bounds(seed: int) -> None:
    source = random.Random(seed)
    expression = Expression(source)
    module = expression.module()
    bounds = bounds_of(*stored(module))
    for _ in range(300):
        x, y = (
            source.choice((source.choice(EXTREMES), source.randrange(-200, 200))) for _ in range(2)
        )
        if x > 1000 or y <= 3:
            continue
        tile = source.choice((3, y - 1, source.randrange(3, y)))
        assert bounds.least <= expression.value(x, y, tile) <= bounds.greatest


CASES = {
    "%tile": Bounds(3, (1 << 31) - 2),
    "arith.remsi %tile, %most : i32": Bounds(0, 999),
    "arith.remsi %x, %most : i32": Bounds(-999, 999),
    "arith.ceildivsi %x, %three : i32": Bounds(-715827883, 334),
    "arith.floordivsi %x, %three : i32": Bounds(-715827883, 334),
    "arith.muli %x, %three : i32": Bounds(-(1 << 31), (1 << 31) - 1),
    "arith.maxsi %x, %three : i32": Bounds(3, 1000),
    "arith.minsi %tile, %three : i32": Bounds(3, 3),
    "arith.subi %three, %tile : i32": Bounds(5 - (1 << 31), 0),
    "arith.andi %x, %three : i32": Bounds(0, 3),
    "tt.get_num_programs x : i32": Bounds(1, (1 << 31) - 1),
}


@pytest.mark.parametrize("text", CASES)
def test_bounds(text: str) -> None:
    expression = Expression(random.Random(0))
    name = text if text.startswith("%") else "%result"
    expression.lines = [] if name == text else [f"{name} = {text}"]
    expression.names = [name]
    module = expression.module()
    assert bounds_of(*stored(module)) == CASES[text]
