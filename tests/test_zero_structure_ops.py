"""What the abstract interpreter of zero_structure knows after a few operations, exactly.

`zero_structure_ops.txt` holds the operations and, after `=>`, what is known of the last one's
results: integers as bounds (`any32` for a whole type), data as the facts of each byte in
hexadecimal (f: exactly zero; 3: if 0 * x is 0; 5: a zero of either sign), by thread where threads
differ (`value*threads`, or a few of them and a checksum), pointers as region and offset; then what
may have been stored to anywhere, registers that escaped, and reads of registers that are not
followed. `python -m tests.test_zero_structure_ops` prints what is known where the file says
otherwise.
"""

from __future__ import annotations

import itertools
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from numpy.typing import NDArray

from tilepass.analysis.zero_structure import Limits, owners
from tilepass.analysis.zero_structure.effects import effect_of, pure_of
from tilepass.analysis.zero_structure.intervals import Interval, limits_of
from tilepass.analysis.zero_structure.machine import Machine, OutOfReach
from tilepass.analysis.zero_structure.ops_gpu import (
    _place,  # pyright: ignore[reportPrivateUsage]
    fragment_code,
    fragment_loads,
)
from tilepass.analysis.zero_structure.program import (
    Instruction,
    Program,
    UnsupportedControlFlow,
    decode,
    kernels_of,
    walk,
)
from tilepass.analysis.zero_structure.types import Scalar, alignment_of, parse_type, size_of
from tilepass.analysis.zero_structure.values import (
    Domain,
    Pointer,
    Region,
    Struct,
    Unknown,
    Value,
)
from tilepass.analysis.zero_structure.zero_bytes import ZeroBytes
from tilepass.ir.engine import Module, parse

FILE = Path(__file__).with_name("zero_structure_ops.txt")
KERNEL = """
gpu.module @m {
  llvm.mlir.global external @smem() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<1024 x i8>
  llvm.mlir.global external @dyn() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
  llvm.mlir.global external @outside() {addr_space = 1 : i32} : i32
  gpu.func @k(%p: !llvm.ptr<1>, %g: !llvm.ptr, %n: i32, %l: i64, %b: i1, %f: f32, %h: f16, %v: vector<4xf32>, %w: vector<4xi32>, %s: !llvm.struct<(i32, f32)>) kernel {
    %t = nvvm.read.ptx.sreg.tid.x : i32
CODE
    gpu.return
  }
}
"""  # noqa: E501
SAMPLE = (0, 1, 5, 31, 32, 63)
_MOST_RUNS = 6


@dataclass(frozen=True)
class Case:
    line: int
    code: str
    known: str
    block: tuple[int, int, int] = (64, 1, 1)


def sections() -> dict[str, list[Case]]:
    """The cases of the file."""
    defined, found = dict[str, str](), dict[str, list[Case]]()
    section, start, lines, name = list[Case](), 0, list[str](), ""
    block = (64, 1, 1)
    for number, line in enumerate([*FILE.read_text().splitlines(), "== end"], 1):
        if line.startswith("define "):
            name = line.removeprefix("define ")
            defined[name] = ""
        elif line.startswith("  ") and name:
            defined[name] += f"{line}\n"
        elif line.startswith("== "):
            section = found.setdefault(line.removeprefix("== "), [])
        elif line.startswith("=> "):
            code = re.sub(r"\$([a-z][\w-]*)", lambda match: defined[match[1]], "\n".join(lines))
            section.append(Case(start, code, line.removeprefix("=> "), block))
            lines, block = [], (64, 1, 1)
        elif line.startswith("block "):
            x, y, z = map(int, line.removeprefix("block ").split(","))
            block = (x, y, z)
        elif line and not line.startswith("#"):
            start = start if lines else number
            lines.append(line)
        else:
            name = ""
    del found["end"]
    return found


def machine_of(
    code: str, block: tuple[int, int, int] = (64, 1, 1), limits: Limits | None = None
) -> tuple[Module, Machine]:
    module = parse(KERNEL.replace("CODE", code))
    (kernel,) = kernels_of(module)
    program = decode(module, kernel)
    pures = [pure_of(item, program) for item in program.instructions]
    effects = [effect_of(item) for item in program.instructions]
    return module, Machine(program, block, limits or Limits(), pures, effects)


def known(case: Case, limits: Limits | None = None) -> str:
    """What is known once shared memory is stable."""
    _module, machine = machine_of(case.code, case.block, limits)
    try:
        for _ in range(machine.limits.rounds):
            stable = machine.run()
            forgotten = [memory.forget_uncovered() for memory in machine.shared.values()]
            if stable and not any(forgotten):
                break
    except OutOfReach as stop:
        return f"out of reach: {stop.reason}"
    last = machine.program.body.body[-2]
    told = [show(machine.env[number]) for number in last.results]
    told += [f"clobbers: {reason}" for reason in machine.clobbers.values()]
    told += [f"escaped {len(machine.escaped)}"] * bool(machine.escaped)
    told += ["registers read"] * machine.reads.unknown
    return "; ".join(told) or "nothing"


def show(value: Value) -> str:
    if isinstance(value, Interval):
        base = f"{value.base}+" if value.base else ""
        return base + _by_thread(np.stack([value.low + 0 * value.high, value.high + 0 * value.low]))
    if isinstance(value, ZeroBytes):
        return _by_thread(value.facts.T)
    if isinstance(value, Pointer):
        # Private objects have numbers.
        name = "" if value.region.kind == "private" else value.region.name
        return f"{value.region.kind} {name}[{show(value.offset)}]"
    if isinstance(value, Struct):
        return "{" + ", ".join(map(show, value.members)) + "}"
    if isinstance(value, Unknown):
        return "?"
    parts = [show(each) for each in value]
    if len(parts) > 1 and len(set(parts)) == 1:
        return f"<{parts[0]} x{len(parts)}>"
    return "<" + " ".join(parts) + ">"


def _by_thread(rows: NDArray[np.int64] | NDArray[np.uint8]) -> str:
    """Bounds, or facts by byte, of shape (2 or bytes, threads)."""
    data = rows.dtype == np.uint8
    texts = ["".join(f"{x:x}" for x in row) if data else _bounds(*row) for row in rows.T.tolist()]
    if len(set(texts)) == 1:
        return texts[0]
    runs = [(text, len(list(same))) for text, same in itertools.groupby(texts)]
    if len(runs) <= _MOST_RUNS:
        return "(" + " ".join(f"{text}*{count}" for text, count in runs) + ")"
    checksum = zlib.crc32(" ".join(texts).encode())
    return "(" + " ".join(texts[at] for at in SAMPLE) + f" #{checksum:08x})"


def _bounds(low: int, high: int) -> str:
    if low == high:
        return str(low)
    whole = [width for width in (8, 16, 32, 64) if limits_of(width) == (low, high)]
    return f"any{whole[0]}" if whole else f"{low}..{high}"


def differences(cases: list[Case]) -> Iterator[str]:
    for case in cases:
        said = known(case)
        if said != case.known:
            yield f"{FILE.name}:{case.line}: {case.code}\n=> {said}\nnot {case.known}\n"


@pytest.mark.parametrize("section", sections())
def test_what_is_known(section: str) -> None:
    assert not (found := list(differences(sections()[section]))), "\n".join(found)


LOOP = """
%c0 = arith.constant 0 : i32
%c1 = arith.constant 1 : i32
%c9 = arith.constant 9 : i32
%x = scf.for %k = %c0 to %c9 step %c1 iter_args(%acc = %c0) -> (i32) : i32 {
  %y = arith.addi %acc, %c1 : i32
  scf.yield %y : i32
}
"""


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (Limits(), "9"),
        (Limits(unroll=9), "9"),
        # Joined: the sum has no bound, but for that of what it starts as.
        (Limits(unroll=8), "any32"),
        (Limits(unroll=8, joins=1), "out of reach: "),
        (Limits(unroll=8, table_bytes=0), "out of reach: more than 0 MiB of distinct values"),
        (Limits(steps=10), "out of reach: more than 10 operations to interpret"),
    ],
)
def test_limits_of_a_loop(limits: Limits, expected: str) -> None:
    assert known(Case(0, LOOP, ""), limits).startswith(expected)


def test_limit_of_steps_is_the_last_that_is_allowed() -> None:
    code = "%x = arith.addi %n, %n : i32\n"
    most = next(
        count for count in range(20) if known(Case(0, code, ""), Limits(steps=count)) == "any32"
    )
    # Reading the thread's number, the sum, and the end of the kernel.
    assert most == 3


def test_distinct_values_of_private_objects_are_limited() -> None:
    cells = "%one = arith.constant 1 : i32\n%a = llvm.alloca %one x f32 : (i32) -> !llvm.ptr\n"
    code = f"{cells}%x = llvm.load %a : !llvm.ptr -> f32\n"
    assert known(Case(0, code, ""), Limits(table_bytes=0)).startswith("out of reach: more than 0")


def test_what_a_kernel_is_decoded_into() -> None:
    code = "scf.if %b { %y = arith.addi %n, %n : i32 scf.if %b { %z = arith.muli %n, %n : i32 } }\n"
    _module, machine = machine_of(code)
    assert set(machine.program.objects) == {"smem", "dyn"}
    names = [item.name for item in walk(machine.program.body)]
    assert names == [item.name for item in machine.program.instructions]
    assert {"arith.addi", "arith.muli"} < set(names)


def test_what_is_out_of_reach_says_why() -> None:
    assert str(OutOfReach("the reason")) == "the reason"


def test_branches_that_are_not_structured_are_not_followed() -> None:
    with pytest.raises(UnsupportedControlFlow, match="has 2 blocks"):
        machine_of("cf.br ^other\n^other:\n")


TYPES = {
    "i1": (1, 1), "i8": (1, 1), "i16": (2, 2), "i32": (4, 4), "i64": (8, 8), "index": (8, 8),
    "f16": (2, 2), "bf16": (2, 2), "f32": (4, 4), "f64": (8, 8), "f8E4M3FN": (1, 1),
    "f8E5M2": (1, 1), "i7": (None, 1), "!foo.bar": (None, 1),
    "vector<4xf32>": (16, 16), "vector<2x3xf16>": (12, 16), "vector<3xi8>": (3, 4),
    "vector<8xi1>": (8, 8), "vector<2xi7>": (None, 1),
    "!llvm.ptr": (8, 8), "!llvm.ptr<1>": (8, 8), "!llvm.ptr<3>": (4, 4), "!llvm.ptr<5>": (4, 4),
    "!llvm.ptr<4>": (8, 8), "!llvm.ptr<7>": (8, 8),
    "!llvm.array<3 x i32>": (12, 4), "!llvm.array<0 x i8>": (0, 1),
    "!llvm.array<4096 x i8>": (4096, 1), "!llvm.array<4097 x i8>": (None, 1),
    "!llvm.array<2 x array<3 x i16>>": (12, 2), "!llvm.array<2 x i7>": (None, 1),
    "!llvm.struct<(i8, i32)>": (8, 4), "!llvm.struct<packed (i8, i32)>": (5, 1),
    "!llvm.struct<(i32, i8)>": (8, 4), "!llvm.struct<packed (i32, i8)>": (5, 1),
    "!llvm.struct<(i8, i64, i8)>": (24, 8), "!llvm.struct<()>": (0, 1),
    "!llvm.struct<(struct<(i8, i16)>, array<2 x f32>, ptr<3>)>": (16, 4),
    "!llvm.struct<(i8, struct<packed (i32, i8)>)>": (6, 1),
    "!llvm.struct<(i8, i7)>": (None, 1),
}  # fmt: skip


@pytest.mark.parametrize("text", TYPES)
def test_sizes_of_types(text: str) -> None:
    kind = parse_type(text)
    assert (size_of(kind), alignment_of(kind)) == TYPES[text]
    if isinstance(kind, Scalar):
        assert kind.floating is (text.strip("b").startswith("f"))
        assert not kind.floating or kind.width == 8 * kind.size


ELEMENTS = {"f16": 2, "bf16": 2, "tf32": 4, "f32": 4, "f64": 8, "e4m3": 1, "e5m2": 1}


@pytest.mark.parametrize("element", ELEMENTS)
def test_elements_of_a_fragment_of_words(element: str) -> None:
    domain, size = Domain(32), ELEMENTS[element]
    kind = Scalar("i64", 64, floating=False)
    minus = domain.maps.together([*[domain.maps.zero(1)] * (size - 1), domain.maps.of(MINUS)])
    whole = domain.maps.together([minus] * (8 // size))
    assert fragment_code(domain, (whole,), (kind,), element).tolist() == [5]


def test_elements_of_a_fragment_are_those_of_its_type_if_that_is_floating() -> None:
    domain = Domain(32)
    minus = domain.maps.together([domain.maps.zero(1), domain.maps.of(MINUS)])
    codes = [
        fragment_code(domain, (minus,), (Scalar(text, 16, floating=floating),), None).tolist()
        for text, floating in (("f16", True), ("i16", False))
    ]
    assert codes == [[5], [0]]


MINUS = np.full((1, 1), 5, np.uint8)


def test_elements_that_are_not_known_are_zero_where_all_bytes_are() -> None:
    domain = Domain(32)
    word = Scalar("i32", 32, floating=False)
    zero, nothing = domain.maps.zero(4), domain.maps.nothing(4)
    minus = domain.maps.together([domain.maps.zero(3), domain.maps.of(MINUS)])

    def code(element: str | None, *registers: ZeroBytes) -> list[int]:
        return fragment_code(domain, registers, (word,) * len(registers), element).tolist()

    # An f64 is in two registers.
    for element in (None, "f64"):
        assert code(element, zero, zero) == [15]
        assert code(element, nothing, zero) == code(element, zero, nothing) == [0]
        assert code(element, minus, zero) == code(element, zero, minus) == [0]


def test_fragments_of_what_nothing_defines_have_no_loads() -> None:
    program = SimpleNamespace(definitions={})
    assert fragment_loads(cast("Machine", SimpleNamespace(program=program)), (0, 1)) == ()
    assert owners._load_of(cast("Program", program), 0) is None  # pyright: ignore[reportPrivateUsage]


def test_place_of_a_fragment() -> None:
    domain = Domain(32)
    load = SimpleNamespace(operands=(0,))
    at, anywhere = domain.intervals.constant(8), domain.intervals.top(64)
    own, shared = Region("private", 1), Region("shared", "smem")
    for region, offset, expected in ((own, at, 8), (own, anywhere, None), (shared, at, None)):
        item = SimpleNamespace(memo={"b": (load,)})
        machine = SimpleNamespace(env=[Pointer(region, offset)])
        found = _place(cast("Machine", machine), cast("Instruction", item), "b", (0,))
        assert found == expected
    nothing = SimpleNamespace(memo={"b": ()})
    assert _place(cast("Machine", None), cast("Instruction", nothing), "b", (0,)) is None


if __name__ == "__main__":
    for name, rows in sections().items():
        print(f"== {name}\n")
        print("\n".join(differences(rows)))
