"""analysis.bounds against random expressions: what they evaluate to is within their bounds."""

from __future__ import annotations

import itertools
import random

import pytest

from tilepass.analysis.bounds import Bounds, all_of, bounds_of, width_of
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


# ---- exactly -------------------------------------------------------------------------------------

# Arguments with what is assumed of them; nothing is assumed of %x.
RANGES = {
    "%p": (3, 10),
    "%q": (2, 4),
    "%o": (1, 1),
    "%n": (-7, -2),
    "%z": (-6, 5),
    "%u": (0, 6),
    "%m": (-1, 0),
}
_ALL = (-(1 << 31), (1 << 31) - 1)
_ROUNDED = ("divsi", "ceildivsi", "floordivsi")
_KERNEL = """
func.func @f(%x: i32, %y: i32, %p: i32, %q: i32, %o: i32, %n: i32, %z: i32, %u: i32, %m: i32,
             %w: i64, %s: i8, %flag: i1, %j: index) {
  LINES
  "test.use"(%r) : (TYPE) -> ()
  return
}
"""


def bounds(lines: str, kind: str = "i32", of: str = "%r") -> Bounds:
    """Of `of` where it is used, after these lines."""
    text = _KERNEL.replace("LINES", lines).replace("%r)", f"{of})").replace("TYPE", kind)
    module = engine.parse(text)
    (use,) = (each for each in engine.operations(module) if each.name == "test.use")
    return bounds_of(use.operands[0], use)


def assumed(predicate: str, one: str, other: str, number: int = 0) -> str:
    return f"""%h{number} = arith.cmpi {predicate}, {one}, {other} : i32
  llvm.intr.assume %h{number} : i1
  """


def assumed_ranges() -> str:
    lines = ""
    for index, (name, ends) in enumerate(RANGES.items()):
        for end, predicate, number in zip(ends, ("sge", "sle"), (0, 1), strict=True):
            lines += f"%e{2 * index + number} = arith.constant {end} : i32\n  "
            lines += assumed(predicate, name, f"%e{2 * index + number}", 2 * index + number)
    return lines


def hull(numbers: list[int]) -> Bounds:
    return Bounds(min(numbers), max(numbers))


def expected_of(name: str, one: tuple[int, int], other: tuple[int, int]) -> Bounds:
    """The best bounds there are, of remainders and masks the best that need no enumeration."""
    if name in (*_ROUNDED, "remsi") and other[0] <= 0:
        return Bounds(*_ALL)
    if name == "remsi":
        most = other[1] - 1
        return Bounds(-most if one[0] < 0 else 0, most if one[1] > 0 else 0)
    if name == "andi":
        limits = [end for least, end in (one, other) if least >= 0]
        return Bounds(0, min(limits)) if limits else Bounds(*_ALL)
    pairs = list(itertools.product(range(one[0], one[1] + 1), range(other[0], other[1] + 1)))
    if name in _ROUNDED:
        return hull([a // b for a, b in pairs] + [-(-a // b) for a, b in pairs])
    return hull([evaluate(name, a, b) for a, b in pairs])


def test_bounds_of_operations_are_the_best() -> None:
    names = ("addi", "subi", "muli", "maxsi", "minsi", "andi", "remsi", *_ROUNDED)
    cases = list(itertools.product(names, RANGES, RANGES))
    lines = "".join(
        f'%v{index} = arith.{name} {a}, {b} : i32\n  "test.of"(%v{index}) : (i32) -> ()\n  '
        for index, (name, a, b) in enumerate(cases)
    )
    text = _KERNEL.replace("LINES", assumed_ranges() + lines).replace('"test.use"(%r) : (TYPE)', "")
    module = engine.parse(text.replace("-> ()\n  return", "return"))
    uses = [each for each in engine.operations(module) if each.name == "test.of"]
    for (name, a, b), use in zip(cases, uses, strict=True):
        best = expected_of(name, RANGES[a], RANGES[b])
        assert bounds_of(use.operands[0], use) == best, (name, a, b)


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(
    ("predicate", "least", "greatest"),
    [
        ("slt", _ALL[0], 6),
        ("sle", _ALL[0], 7),
        ("sgt", 8, _ALL[1]),
        ("sge", 7, _ALL[1]),
        *((name, *_ALL) for name in ("eq", "ne", "ult", "ule", "ugt", "uge")),
    ],
)
def test_assumption_about_a_constant(
    predicate: str, least: int, greatest: int, swapped: bool
) -> None:
    mirrored = {"slt": "sgt", "sle": "sge", "sgt": "slt", "sge": "sle"}
    pair = ("%c", "%x") if swapped else ("%x", "%c")
    said = mirrored.get(predicate, predicate) if swapped else predicate
    lines = "%c = arith.constant 7 : i32\n  " + assumed(said, *pair)
    assert bounds(lines, of="%x") == Bounds(least, greatest)


def test_assumptions_that_do_not_count() -> None:
    constant = "%c = arith.constant 7 : i32\n  "
    bound = assumed("sge", "%x", "%c")
    never = Bounds(*_ALL)
    assert bounds(constant + bound, of="%x") == Bounds(7, _ALL[1])
    # A comparison that nobody assumes, an assumption that comes later or under a condition, one
    # about what is not a constant.
    assert bounds(constant + bound.partition("\n")[0], of="%x") == never
    assert bounds(assumed("sge", "%x", "%y"), of="%x") == never
    assert bounds(f"scf.if %flag {{\n {constant}{bound} }}", of="%x") == never
    weaker = "%d = arith.constant 2 : i32\n  " + assumed("sge", "%x", "%d", 1)
    assert bounds(constant + bound + weaker, of="%x") == (7, _ALL[1])
    assert bounds(weaker + constant + bound, of="%x") == (7, _ALL[1])
    upper = weaker.replace("sge", "sle") + constant + bound.replace("sge", "sle")
    assert bounds(upper, of="%x") == (_ALL[0], 2)
    upper = constant + bound.replace("sge", "sle") + weaker.replace("sge", "sle")
    assert bounds(upper, of="%x") == (_ALL[0], 2)
    # Others after it still count; those that contradict what is known do not.
    more = "%d = arith.constant 9 : i32\n  " + assumed("sge", "%x", "%y", 1)
    assert bounds(constant + bound + more + assumed("sle", "%x", "%d", 2), of="%x") == (7, 9)
    assert bounds(constant + bound + more + assumed("slt", "%x", "%c", 2), of="%x") == never
    assert bounds(constant + bound + assumed("sle", "%x", "%c", 2), of="%x") == (7, 7)
    # Those about what an operation computes.
    sum_of = "%r = arith.addi %x, %y : i32\n  "
    assert bounds(constant + sum_of + assumed("sgt", "%r", "%c")) == (8, _ALL[1])
    # Another use of the value is not a comparison, and says nothing.
    assert bounds(sum_of + constant + bound, of="%x") == (7, _ALL[1])


_C3 = "%c3 = arith.constant 3 : i32\n  "
_LOOP = """scf.for %i = %p to %z step %o iter_args(%a = %q) -> (i32) : i32 {
    "test.use"(ARGUMENT) : (i32) -> ()
    scf.yield %a : i32
  }"""


@pytest.mark.parametrize(
    ("lines", "kind", "expected"),
    [
        ("%r = arith.constant 1 : i2", "i2", (1, 1)),
        ("%r = arith.constant true", "i1", (-1, 0)),
        ("%r = arith.constant -9 : i64", "i64", (-9, -9)),
        ('%r = "tt.get_program_id"() {axis = 0 : i32} : () -> i32', "i32", (0, (1 << 31) - 2)),
        ('%r = "tt.get_num_programs"() {axis = 0 : i32} : () -> i32', "i32", (1, (1 << 31) - 1)),
        ("%r = arith.select %flag, %p, %n : i32", "i32", (-7, 10)),
        ("%r = arith.select %flag, %n, %p : i32", "i32", (-7, 10)),
        ("%r = arith.select %flag, %p, %q : i32", "i32", (2, 10)),
        ("%r = arith.xori %p, %q : i32", "i32", _ALL),
        ("%r = arith.extsi %z : i32 to i64", "i64", (-6, 5)),
        ("%r = arith.extui %z : i32 to i64", "i64", (-(1 << 63), (1 << 63) - 1)),
        ("%r = arith.extui %m : i32 to i64", "i64", (-(1 << 63), (1 << 63) - 1)),
        ("%r = arith.extui %p : i32 to i64", "i64", (3, 10)),
        ("%r = arith.extui %u : i32 to i64", "i64", (0, 6)),
        ("%r = arith.trunci %z : i32 to i8", "i8", (-6, 5)),
        ("%r = arith.trunci %x : i32 to i8", "i8", (-128, 127)),
        # Just what a type holds, and one more or less.
        *(
            (f"%c = arith.constant {end} : i32\n  %r = arith.trunci %c : i32 to i8", "i8", kept)
            for end, kept in ((127, (127, 127)), (128, (-128, 127)), (-128, (-128, -128)),
                              (-129, (-128, 127)))
        ),
        ("%r = arith.muli %y, %p : i32", "i32", _ALL),
        ("%r = arith.addi %w, %w : i64", "i64", (-(1 << 63), (1 << 63) - 1)),
    ],
)  # fmt: skip
def test_bounds_of(lines: str, kind: str, expected: tuple[int, int]) -> None:
    assert bounds(assumed_ranges() + lines, kind) == expected


@pytest.mark.parametrize(
    ("loop", "expected"),
    [
        (_LOOP.replace("ARGUMENT", "%i"), (3, 4)),
        (_LOOP.replace("ARGUMENT", "%i").replace("%p to %z", "%p to %q"), (3, 3)),
        (_LOOP.replace("ARGUMENT", "%i").replace("%p to %z", "%n to %p"), (-7, 9)),
        # One that never runs.
        (_LOOP.replace("ARGUMENT", "%i").replace("%p to %z", "%p to %n"), (3, 3)),
        (_LOOP.replace("ARGUMENT", "%a"), _ALL),
        (_LOOP.replace("ARGUMENT", "%i") + " {unsignedCmp}", _ALL),
        (
            """scf.while (%i = %p) : (i32) -> i32 {
    "test.use"(%i) : (i32) -> ()
    scf.condition(%flag) %i : i32
  } do {
  ^bb0(%k: i32):
    scf.yield %k : i32
  }""",
            _ALL,
        ),
    ],
)
def test_bounds_of_what_a_loop_counts(loop: str, expected: tuple[int, int]) -> None:
    text = _KERNEL.replace("LINES", assumed_ranges() + loop).replace('"test.use"(%r) : (TYPE)', "")
    module = engine.parse(text.replace("-> ()\n  return", "return"))
    (use,) = (each for each in engine.operations(module) if each.name == "test.use")
    assert bounds_of(use.operands[0], use) == expected


def test_depth_that_is_looked_through() -> None:
    """Eight operations are; what a ninth stands on may be anything."""

    def chain(length: int) -> str:
        lines = assumed_ranges()
        for index in range(length):
            before = "%p" if index == 0 else f"%v{index - 1}"
            lines += f"%v{index} = arith.addi {before}, %o : i32\n  "
        return lines

    assert bounds(chain(7), of="%v6") == (10, 17)
    assert bounds(chain(8), of="%v7") == Bounds(*_ALL)


def test_what_types_hold() -> None:
    text = _KERNEL.replace("LINES", "").replace("%r", "%w, %s, %flag, %j")
    module = engine.parse(text.replace("TYPE", "i64, i8, i1, index"))
    (use,) = (each for each in engine.operations(module) if each.name == "test.use")
    assert [width_of(each) for each in use.operands] == [64, 8, 1, 64]
    limits = [(-(1 << 63), (1 << 63) - 1), (-128, 127), (-1, 0), (-(1 << 63), (1 << 63) - 1)]
    assert [all_of(each) for each in use.operands] == limits
    assert Bounds(1, 3).inside(Bounds(1, 3))
    assert not Bounds(0, 3).inside(Bounds(1, 3))
    assert not Bounds(1, 4).inside(Bounds(1, 3))


# ---- at random -----------------------------------------------------------------------------------


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


@pytest.mark.parametrize("seed", range(60))
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
