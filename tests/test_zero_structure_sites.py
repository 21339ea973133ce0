"""What `analyse` says of small gemms written by hand: which tiles are zero, which nobody reads."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from itertools import product
from types import SimpleNamespace
from typing import cast

import pytest
from numpy import array, uint8

from tilepass.analysis.zero_structure import Limits, ZeroStructure, analyse, entry
from tilepass.analysis.zero_structure import program as programs
from tilepass.analysis.zero_structure.effects import effect_of
from tilepass.analysis.zero_structure.entry import block_of
from tilepass.analysis.zero_structure.program import (
    DETAILS,
    Bulk,
    Instruction,
    MatrixMove,
    MatrixProduct,
    SharedObject,
    shared_objects,
    site_of,
    sites_of,
    transfer_bytes_of,
)
from tilepass.analysis.zero_structure.values import Domain, Struct
from tilepass.analysis.zero_structure.zero_bytes import ZeroBytes
from tilepass.ir.cute import static_tensor
from tilepass.ir.engine import Module, operations, parse

M, N, K = 2, 3, 2
SHAPE = "#nvvm.shape<m = 16, n = 8, k = 16>"
LAYOUTS = "layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>"
TYPES = (
    "atom",
    '!cute.memref<f32, rmem, align<32>, "((2,2),2,3):((1,2),4,8)">',
    '!cute.memref<f16, rmem, align<32>, "((2,2,2),2,2):((1,2,4),8,16)">',
    '!cute.memref<f16, rmem, align<32>, "((2,2),3,2):((1,2),4,12)">',
)
BLOCK = "nvvm.reqntid = array<i32: 8, 2, 4>"
Tiles = Iterable[tuple[int, int]]
Registers = dict[tuple[int, int], str]
EVERYWHERE = (*product(range(2), range(3)),)


class Kernel:
    """Lines of a kernel that fills A and B, multiplies them tile by tile and reads tiles of D."""

    def __init__(self, depth: int = K, first: int = 0) -> None:
        self.depth, self.first = depth, first
        self.lines = [
            "%t = nvvm.read.ptx.sreg.tid.x : i32",
            "%n = arith.constant 256 : i32",
            "%zero = arith.constant dense<0.0> : vector<2xf16>",
            "%minus = arith.constant dense<-0.0> : vector<2xf16>",
            "%any = llvm.load %p : !llvm.ptr<1> -> vector<2xf16>",
            "%made = arith.mulf %any, %zero : vector<2xf16>",
            "%five = arith.constant 5 : i32",
            "%few = arith.cmpi slt, %t, %five : i32",
            "%some = arith.select %few, %zero, %any : vector<2xf16>",
            "%fz = arith.constant 0.0 : f32",
            *(f"%{name} = llvm.alloca %n x i8 : (i32) -> !llvm.ptr" for name in "abd"),
        ]
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"%x{self.count}"

    def at(self, base: str, offset: int) -> str:
        name, offset = self.name(), offset + self.first
        self.lines.append(
            f"{name} = llvm.getelementptr %{base}[{offset}] : (!llvm.ptr) -> !llvm.ptr, i8"
        )
        return name

    def load(self, base: str, offset: int, kind: str) -> str:
        place, name = self.at(base, offset), self.name()
        self.lines.append(f"{name} = llvm.load {place} : !llvm.ptr -> {kind}")
        return name

    def store(self, value: str, base: str, offset: int, kind: str) -> None:
        self.lines.append(f"llvm.store {value}, {self.at(base, offset)} : {kind}, !llvm.ptr")

    def fill(self, a: dict[tuple[int, int], str], b: dict[tuple[int, int], str]) -> None:
        """Registers by tile; %any where none is named."""
        for (row, k), word in product(product(range(M), range(self.depth)), range(4)):
            self.store(a.get((row, k), "%any"), "a", 16 * (row + M * k) + 4 * word, "vector<2xf16>")
        for (column, k), word in product(product(range(N), range(self.depth)), range(2)):
            value = b.get((column, k), "%any")
            self.store(value, "b", 8 * (column + N * k) + 4 * word, "vector<2xf16>")
        for cell in range(4 * M * N):
            self.store("%fz", "d", 4 * cell, "f32")

    def gemm(
        self, site: int = 0, leave_out: int = 0, scalars: bool = False, leak: bool = False
    ) -> None:
        for k, row, column in [*product(range(self.depth), range(M), range(N))][leave_out:]:
            place = 16 * (row + M * column)
            a = [
                self.load("a", 16 * (row + M * k) + 4 * word, "vector<2xf16>") for word in range(4)
            ]
            b = [
                self.load("b", 8 * (column + N * k) + 4 * word, "vector<2xf16>")
                for word in range(2)
            ]
            if scalars:
                c = [self.load("d", place + 4 * cell, "f32") for cell in range(4)]
            else:
                whole, parts = self.load("d", place, "vector<4xf32>"), self.name()
                if leak:
                    self.lines.append(f"llvm.store {whole}, %p : vector<4xf32>, !llvm.ptr<1>")
                self.lines.append(f"{parts}:4 = vector.to_elements {whole} : vector<4xf32>")
                c = [f"{parts}#{cell}" for cell in range(4)]
            name = self.name()
            self.lines.append(
                f"{name} = nvvm.mma.sync A[{', '.join(a)}] B[{', '.join(b)}] C[{', '.join(c)}]"
                f" {{{LAYOUTS}, shape = {SHAPE}}} : (vector<2xf16>, vector<2xf16>, f32) -> "
                f"!llvm.struct<(f32, f32, f32, f32)> "
                f'loc("tilepass.site.{site}"("tile{row}{column}{k}":{k + 1}:1))'
            )
            parts = [self.name() for _ in range(4)]
            for cell, part in enumerate(parts):
                self.lines.append(
                    f"{part} = llvm.extractvalue {name}[{cell}] :"
                    " !llvm.struct<(f32, f32, f32, f32)>"
                )
                if scalars:
                    self.store(part, "d", place + 4 * cell, "f32")
            if not scalars:
                whole = self.name()
                self.lines.append(
                    f"{whole} = vector.from_elements {', '.join(parts)} : vector<4xf32>"
                )
                self.store(whole, "d", place, "vector<4xf32>")

    def read(self, tiles: Tiles) -> None:
        for row, column in tiles:
            value = self.load("d", 16 * (row + M * column) + 12, "f32")
            self.lines.append(f"llvm.store {value}, %p : f32, !llvm.ptr<1>")

    def text(self, name: str = "k", block: str = BLOCK) -> str:
        body = "\n".join(self.lines)
        return (
            f"gpu.func @{name}(%p: !llvm.ptr<1>) kernel attributes {{{block}}} "
            f"{{\n{body}\ngpu.return }}"
        )


def structure(
    *kernels: str,
    types: tuple[str, ...] = TYPES,
    sites: int = 1,
    strict: bool = False,
    limits: Limits | None = None,
) -> ZeroStructure:
    quoted = ", ".join('"' + text.replace('"', '\\"') + '"' for text in types)
    rows = ", ".join([f"[{quoted}]"] * sites)
    inside = "\n".join(kernels)
    return analyse(
        parse(
            f"module attributes {{tilepass.sites = [{rows}]}} {{ gpu.module @m {{\n{inside}\n}} }}"
        ),
        strict=strict,
        limits=limits,
    )


def told(found: ZeroStructure, index: int = 0) -> str:
    """The zeros of a site in a line: tiles of B, of A, unread ones, then the rest."""
    site = found.sites[index]
    tiles = [
        " ".join(f"{x}{y}" for x, y in zip(*array.nonzero(), strict=True)) or "-"
        for array in (site.b_zero, site.a_zero, site.unread)
    ]
    why = [part.reason for part in (site.failure, site.of_a) if part]
    needs = ["needs 0 * x"] * site.needs_zero_times_x
    return "; ".join([*tiles, *needs, *why])


def multiplied(
    a: dict[tuple[int, int], str] | None = None,
    b: dict[tuple[int, int], str] | None = None,
    read: Tiles = EVERYWHERE,
    *,
    site: int = 0,
    leave_out: int = 0,
    scalars: bool = False,
    leak: bool = False,
) -> Kernel:
    kernel = Kernel()
    kernel.fill(a or {}, b or {})
    kernel.gemm(site, leave_out, scalars, leak)
    kernel.read(read)
    return kernel


ALL_A = dict.fromkeys(product(range(M), range(K)), "%zero")
ALL_B = dict.fromkeys(product(range(N), range(K)), "%zero")
ZEROS: dict[str, tuple[Registers, Registers, Tiles]] = {
    "nothing": ({}, {}, EVERYWHERE),
    "one of B": ({}, {(2, 0): "%zero"}, EVERYWHERE),
    "two of B": ({}, {(1, 1): "%zero", (0, 0): "%minus"}, EVERYWHERE),
    "one of A": ({(1, 0): "%zero"}, {}, EVERYWHERE),
    "both": ({(0, 1): "%zero"}, {(2, 1): "%zero"}, EVERYWHERE),
    "all": (ALL_A, ALL_B, EVERYWHERE),
    "in some threads": ({(0, 0): "%some"}, {(0, 0): "%some"}, EVERYWHERE),
    "of a product": ({}, {(1, 0): "%made"}, EVERYWHERE),
    "of a product, A": ({(1, 1): "%made"}, {(1, 0): "%zero"}, EVERYWHERE),
    "none read": ({}, {}, ()),
    "one read": ({}, {}, ((1, 2),)),
    "one not read": ({}, {}, EVERYWHERE[:4] + EVERYWHERE[5:]),
}  # fmt: skip
OUTSIDE = "the operand is loaded from memory other than shared, past any mask"
MASKED = "the mask and what follows it leave a non-zero element in every tile"
RESTS = "the operand is zero only if 0 * x is, which strict does not assume (arith.mulf)"
EXPECTED = {
    "nothing": f"-; -; -; {OUTSIDE}; {OUTSIDE}",
    "one of B": "20; -; -",
    "two of B": "00 11; -; -",
    "one of A": "-; 10; -",
    "both": "21; 01; -",
    "all": "00 01 10 11 20 21; 00 01 10 11; -",
    "in some threads": f"-; -; -; {MASKED}; {MASKED}",
    "of a product": "10; -; -; needs 0 * x",
    "of a product, A": "10; 11; -; needs 0 * x",
    "none read": "-; -; 00 01 02 10 11 12",
    "one read": "-; -; 00 01 02 10 11",
    "one not read": "-; -; 11",
}
STRICTLY = {
    **EXPECTED,
    "of a product": f"-; -; -; {RESTS}; {OUTSIDE}",
    "of a product, A": "10; -; -",
}


@pytest.mark.parametrize("case", ZEROS)
@pytest.mark.parametrize("strict", [False, True])
def test_zeros(case: str, strict: bool) -> None:
    a, b, read = ZEROS[case]
    found = structure(multiplied(a, b, read).text(), strict=strict)
    # What is read is learned in the first round.
    assert (found.threads, found.rounds, found.failure) == (64, 1 + bool(read), None)
    assert found.sites[0].tiles == (M, N, K)
    assert found.sites[0].instruction == (16, 8, 16)
    zero = bool(found.sites[0].b_zero.any() or found.sites[0].a_zero.any())
    needs = found.sites[0].needs_zero_times_x
    assert bool(found.sites[0].evidence) is zero
    assert len(found.sites[0].assumptions) == (3 + needs if zero else 0)
    assert told(found) == (STRICTLY if strict else EXPECTED)[case]


ONE_OF_B = {(2, 0): "%zero"}
B = TYPES[3]
OTHER_PLACES = f"the registers of the operand are not those of its layout; {OUTSIDE}"
LAYOUTS_OF_B = {
    B.replace("rmem", "smem"): "an operand of the gemm is not a register tensor of static layout",
    B.replace("2),3,2)", "2),3,2,1)").replace("4,12)", "4,12,0)"): (
        "the layouts of the gemm's operands have more than three modes"
    ),
    B.replace("3,2)", "2,2)"): "the layouts of the gemm's operands do not agree",
    B.replace("4,12)", "4,16)"): OTHER_PLACES,
    B.replace("4,12)", "0,12)"): OTHER_PLACES,
    B.replace("f16", "tf32"): "an element type of the gemm has no whole number of bytes",
}


@pytest.mark.parametrize("text", LAYOUTS_OF_B)
def test_layouts_that_do_not_fit(text: str) -> None:
    found = structure(multiplied(b=ONE_OF_B).text(), types=(*TYPES[:3], text))
    assert found.failure is None
    assert told(found) == f"-; -; -; {LAYOUTS_OF_B[text]}"
    if LAYOUTS_OF_B[text] == OTHER_PLACES:
        assert (found.sites[0].b_zero.shape, found.sites[0].a_zero.shape) == ((N, K), (M, K))


@pytest.mark.parametrize("strides", ["(1,2),4,16", "(1,2),8,16", "(1,2),4,4"])
def test_accumulators_at_other_places_than_the_layout_says(strides: str) -> None:
    d = TYPES[1].replace("(1,2),4,8", strides)
    found = structure(multiplied(b=ONE_OF_B, read=()).text(), types=(TYPES[0], d, *TYPES[2:]))
    assert told(found) == "20; -; -"


@pytest.mark.parametrize("words", ["0123", "2301", "1032", "3210"])
def test_product_that_the_zeros_rest_on(words: str) -> None:
    """Not one of zeros alone."""
    kernel = Kernel()
    kernel.lines += [
        "%both = arith.mulf %zero, %zero : vector<2xf16>",
        "%fma = math.fma %any, %zero, %zero : vector<2xf16>",
    ]
    kernel.fill({}, {})
    values = ("%both", "%fma", "%zero", "%minus")
    for tile, word in product(range(M * K), range(4)):
        kernel.store(values[int(words[word])], "a", 16 * tile + 4 * word, "vector<2xf16>")
    kernel.gemm()
    kernel.read(EVERYWHERE)
    found = structure(kernel.text(), strict=True)
    assert told(found) == f"-; -; -; {OUTSIDE}; {RESTS.replace('arith.mulf', 'math.fma')}"
    found = structure(kernel.text())
    assert told(found) == "-; 00 01 10 11; -; needs 0 * x"


def test_collector_is_left_as_it_was() -> None:
    assert gc.isenabled()
    structure()
    assert gc.isenabled()
    gc.disable()
    try:
        structure()
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize("operand", [1, 2, 3])
def test_an_operand_that_is_not_in_registers(operand: int) -> None:
    types = [*TYPES]
    types[operand] = types[operand].replace("rmem", "smem")
    found = structure(multiplied(b=ONE_OF_B).text(), types=tuple(types))
    assert told(found).endswith("is not a register tensor of static layout")


def test_a_tile_that_is_read_at_a_place_that_varies() -> None:
    kernel = multiplied(b=ONE_OF_B, read=())
    kernel.lines += [
        "%four = arith.constant 4 : i32",
        "%place = arith.muli %t, %four : i32",
        "%varying = llvm.getelementptr %d[%place] : (!llvm.ptr, i32) -> !llvm.ptr, i8",
        "%read = llvm.load %varying : !llvm.ptr -> f32",
        "llvm.store %read, %p : f32, !llvm.ptr<1>",
    ]
    assert told(structure(kernel.text())) == "20; -; -"


def test_registers_that_do_not_begin_their_object() -> None:
    for a, b, zero in (({}, ONE_OF_B, "20; -; -"), ({(1, 0): "%zero"}, {}, "-; 10; -")):
        kernel = Kernel(first=32)
        kernel.fill(a, b)
        kernel.gemm()
        kernel.read(EVERYWHERE)
        assert told(structure(kernel.text())) == zero


def test_an_operand_without_a_type() -> None:
    found = structure(multiplied(b=ONE_OF_B).text(), types=TYPES[:3])
    assert told(found).endswith("is not a register tensor of static layout")


def test_gemm_of_which_a_tile_is_left_out() -> None:
    found = structure(multiplied(b=ONE_OF_B, leave_out=1).text())
    assert told(found) == "-; -; -; the tiles of the gemm are not run one by one"


def test_place_of_what_is_not_proven_is_that_of_the_first_tile() -> None:
    other = B.replace("4,12)", "4,16)")
    for types, leave_out, tile in ((TYPES, 1, "tile010"), ((*TYPES[:3], other), 0, "tile000")):
        found = structure(multiplied(b=ONE_OF_B, leave_out=leave_out).text(), types=types)
        failure = found.sites[0].failure
        assert failure is not None
        assert failure.location is not None
        assert failure.location.file == tile
    for text, reason in LAYOUTS_OF_B.items():
        failure = structure(multiplied().text(), types=(*TYPES[:3], text)).sites[0].failure
        assert failure is not None
        assert failure.location is not None
        assert (failure.location.file, failure.reason) == ("tile000", reason.partition(";")[0])


def test_gemm_that_is_not_lowered() -> None:
    found = structure(multiplied(b=ONE_OF_B, site=1).text(), sites=2)
    assert told(found) == "-; -; -; nothing lowered comes from the gemm (atom)"
    assert (found.sites[0].tiles, found.sites[0].instruction) == ((0, 0, 0), (0, 0, 0))
    assert told(found, 1) == "20; -; -"


@pytest.mark.parametrize("first", [False, True])
def test_gemm_of_one_kernel_of_two(first: bool) -> None:
    other = Kernel().text("other", "nvvm.reqntid = array<i32: 33, 1, 1>")
    kernel = multiplied(b=ONE_OF_B).text()
    found = structure(*((kernel, other) if first else (other, kernel)))
    assert told(found) == "20; -; -"
    assert (found.threads, found.rounds, found.failure) == (64, 2, None)


def test_module_that_cannot_be_interpreted() -> None:
    found = structure()
    assert str(found.failure) == "the lowered module holds no kernel"
    assert (found.threads, found.rounds) == (0, 0)
    block = "nvvm.maxntid = array<i32: 64, 1, 1>"
    found = structure(multiplied(b=ONE_OF_B).text(block=block))
    reason = "the number of threads in a block is not a constant of the module"
    assert found.failure is not None
    assert found.failure.reason == reason
    assert told(found) == f"-; -; -; {reason}"


def test_tile_stored_in_parts_is_read_by_any() -> None:
    # The parts that are read, the last ones, lie at the offset of no tile.
    found = structure(multiplied(b=ONE_OF_B, read=((1, 2),), scalars=True).text())
    assert told(found) == "20; -; -"
    found = structure(multiplied(b=ONE_OF_B, read=(), scalars=True).text())
    assert told(found) == "20; -; 00 01 02 10 11 12"


STORE = "llvm.store %v, %d : vector<4xf32>, !llvm.ptr"
LOAD = "%r = llvm.load %d : !llvm.ptr -> vector<4xf32>"
AT = "%at = llvm.getelementptr %d[%w] : (!llvm.ptr, i32) -> !llvm.ptr, f32"
ALL, FIRST, NONE = "00 01 02 10 11 12", "01 02 10 11 12", "-"
READS = {
    LOAD: FIRST,
    f"{STORE}\n{LOAD}": ALL,
    f"{LOAD}\n{STORE}": FIRST,
    # By thread.
    f"scf.if %few {{ {STORE} }}\n{LOAD}": FIRST,
    f"scf.if %few {{ {STORE} {LOAD} }}": ALL,
    f"scf.if %few {{ {STORE} }}\nscf.if %few {{ {LOAD} }}": ALL,
    f"scf.if %few {{ {STORE} }} else {{ {LOAD} }}": FIRST,
    f"scf.if %few {{ }} else {{ {STORE} }}\nscf.if %few {{ {LOAD} }}": FIRST,
    f"scf.if %few {{ }} else {{ {STORE} }}\nscf.if %few {{ }} else {{ {LOAD} }}": ALL,
    f"scf.if %few {{ {STORE} }} else {{ {STORE} }}\n{LOAD}": ALL,
    # Where it is not known.
    f"scf.if %who {{ {STORE} }}\n{LOAD}": FIRST,
    f"scf.if %who {{ {STORE} }} else {{ {STORE} }}\n{LOAD}": ALL,
    f"scf.if %who {{ }} else {{ {STORE} }}\n{LOAD}": FIRST,
    f"scf.if %who {{ {LOAD} }}": FIRST,
    # In a loop.
    f"scf.for %k = %five to %w step %five : i32 {{ {STORE} }}\n{LOAD}": FIRST,
    f"scf.for %k = %five to %w step %five : i32 {{ {LOAD} {STORE} }}": FIRST,
    f"scf.for %k = %five to %w step %five : i32 {{ {STORE} {LOAD} }}": ALL,
    # Anywhere in the registers.
    f"{AT}\n%r = llvm.load %at : !llvm.ptr -> f32": NONE,
    f"{AT}\nllvm.store %fz, %at : f32, !llvm.ptr\n{LOAD}": FIRST,
}


@pytest.mark.parametrize("code", READS)
def test_what_is_read_after_a_gemm(code: str) -> None:
    kernel = multiplied(b=ONE_OF_B, read=())
    kernel.lines += [
        "%v = arith.constant dense<1.0> : vector<4xf32>",
        "%w = llvm.load %p : !llvm.ptr<1> -> i32",
        "%who = arith.cmpi slt, %w, %five : i32",
        code,
    ]
    assert told(structure(kernel.text())) == f"20; -; {READS[code]}"


def test_accumulator_that_goes_elsewhere_too() -> None:
    found = structure(multiplied(b=ONE_OF_B, read=(), leak=True).text())
    assert told(found) == "20; -; -"


def test_accumulator_read_by_the_next_trip_of_a_loop() -> None:
    kernel = multiplied(b=ONE_OF_B, read=(), leave_out=M * N * K)
    for cell in range(4 * M * N):
        kernel.store("%f", "d", 4 * cell, "f32")
    kernel.lines.insert(1, "%f = llvm.load %p : !llvm.ptr<1> -> f32")
    kernel.lines.insert(2, "%w = llvm.load %p : !llvm.ptr<1> -> i32")
    kernel.lines += ["scf.for %k = %five to %w step %five : i32 {", LOAD]
    kernel.gemm()
    kernel.lines.append("}")
    assert told(structure(kernel.text())) == f"20; -; {FIRST}"


def test_layouts_without_tiles_along_k() -> None:
    kernel = Kernel(depth=1)
    kernel.fill({(1, 0): "%zero"}, {(2, 0): "%zero"})
    kernel.gemm()
    kernel.read(EVERYWHERE)
    types = [text.replace("2,2):(", "2):(").replace("3,2):(", "3):(") for text in TYPES[2:]]
    types = [text.replace(",8,16)", ",8)").replace(",4,12)", ",4)") for text in types]
    found = structure(kernel.text(), types=(*TYPES[:2], *types))
    assert (told(found), found.sites[0].tiles) == ("20; 10; -", (M, N, 1))


def test_rounds() -> None:
    limits = Limits(rounds=1)
    found = structure(multiplied(b=ONE_OF_B, read=()).text(), limits=limits)
    assert (told(found), found.rounds) == (f"20; -; {ALL}", 1)
    found = structure(multiplied(b=ONE_OF_B).text(), limits=limits)
    assert told(found) == "-; -; -; shared memory is not stable after 1 runs"


def test_other_registers_whose_address_escapes() -> None:
    kernel = multiplied(b=ONE_OF_B, read=())
    kernel.lines += [
        "%e = llvm.alloca %n x i8 : (i32) -> !llvm.ptr",
        "llvm.store %e, %p : !llvm.ptr, !llvm.ptr<1>",
    ]
    assert told(structure(kernel.text())) == "20; -; -"


def test_assembly_of_a_gemm_makes_no_accumulators() -> None:
    kernel = multiplied(b=ONE_OF_B, read=())
    kernel.lines += [
        "%e = llvm.alloca %n x i8 : (i32) -> !llvm.ptr",
        '%q = llvm.inline_asm "mov.u32 $0, 1;", "=r" : () -> i32 loc("tilepass.site.0")',
        "llvm.store %q, %e : i32, !llvm.ptr",
        "%r = llvm.load %e : !llvm.ptr -> i32",
    ]
    assert told(structure(kernel.text())).partition("; ")[2] == f"-; {ALL}"


def test_registers_whose_address_escapes() -> None:
    kernel = multiplied(b=ONE_OF_B, read=())
    kernel.lines.append("llvm.store %d, %p : !llvm.ptr, !llvm.ptr<1>")
    # From then on a store to them may be one to any registers.
    assert told(structure(kernel.text())) == f"-; -; -; {OUTSIDE}; {OUTSIDE}"


EFFECTS = {
    "nvvm.barrier0": False, "nvvm.tcgen05.mma": False, "nvvm.redux.sync": False,
    "nvvm.read.ptx.sreg.tid.x": False, "nvvm.convert.x": False, "nvvm.inline_ptx": True,
    "math.exp2": False, "vector.store": True, "vector.scatter": True, "vector.foo": False,
    "other.redux.sync": True, "other.convert.x": True, "llvm.other": True,
    "llvm.call": True, "llvm.call printf": False, "llvm.call other": True, "other printf": True,
    "llvm.inline_asm mov.u32 a, b;": False, "llvm.inline_asm st.u32 [a], b;": True,
}  # fmt: skip


@pytest.mark.parametrize("text", EFFECTS)
def test_which_operations_may_store(text: str) -> None:
    name, _, detail = text.partition(" ")
    item = SimpleNamespace(name=name, detail=detail, regions=())
    effect = effect_of(cast("Instruction", item))
    assert (effect.__name__ == "_clobber") is EFFECTS[text]


def details_of(name: str, attributes: str) -> object:
    module = parse(f'"test.op"() {{{attributes}}} : () -> ()')
    return DETAILS[name](operations(module)[1])


def test_attributes_of_instructions() -> None:
    every = 'layout = "col", num = 4 : i32'
    assert details_of("nvvm.ldmatrix", every) == MatrixMove(
        transposed=True, count=4, supported=True
    )
    move = cast("MatrixMove", details_of("nvvm.stmatrix", every))
    assert (move.transposed, move.supported) == (True, True)
    for name in ("nvvm.ldmatrix", "nvvm.stmatrix"):
        for shape, supported in (("m8n8", True), ("m16n16", False)):
            text = f'shape = "{shape}", layout = "row", num = 2 : i32'
            move = cast("MatrixMove", details_of(name, text))
            assert (move.transposed, move.supported) == (False, supported)
    segments = (
        "operandSegmentSizes = array<i32: 4, 2, 7>, shape = #nvvm.shape<m = 16, n = 8, k = 32>"
    )
    types = [f"multiplicand{each}PtxType = #nvvm.mma_type<{kind}>" for each, kind in
             (("A", "f16"), ("B", "bf16"))]  # fmt: skip
    for chosen in ([], types[:1], types[1:], types):
        a, b = "f16" if types[0] in chosen else None, "bf16" if types[1] in chosen else None
        found = details_of("nvvm.mma.sync", ", ".join([segments, *chosen]))
        assert found == MatrixProduct((4, 2, 7), (16, 8, 32), a, b)
    for name in ("nvvm.cp.async.bulk.tensor.shared.cluster.global",
                 "nvvm.cp.async.bulk.shared.cluster.global"):  # fmt: skip
        assert details_of(name, "operandSegmentSizes = array<i32: 1, 2>") == Bulk((1, 2), None)
        assert details_of(name, "") == Bulk((), None)
    assert details_of("llvm.call", "") == ""
    assert details_of("llvm.call", "callee = @foo") == "foo"


def test_shared_objects_and_their_alignment() -> None:
    for attribute, alignment in (("", 1), (", alignment = 64 : i64", 64)):
        space = f"{{addr_space = 3 : i32{attribute}}}"
        module = parse(f"llvm.mlir.global external @a() {space} : !llvm.array<8 x i8>")
        assert shared_objects(module) == {"a": SharedObject("a", alignment, 8)}
        assert sites_of(module) == []


def test_bytes_that_a_location_names() -> None:
    for name, size in (("copy.64", 64), ("copy.8", 8), ("site.8", None)):
        module = parse(f'"test.op"() : () -> () loc("tilepass.{name}")')
        assert transfer_bytes_of(operations(module)[1].location) == size
    both = 'callsite("tilepass.copy.64"("a":1:1) at "tilepass.copy.8"("b":2:2))'
    module = parse(f'"test.op"() : () -> () loc({both})')
    assert transfer_bytes_of(operations(module)[1].location) == 64


def test_site_that_a_location_names_last() -> None:
    inner = 'callsite("tilepass.site.3"("a":1:1) at "tilepass.site.12"("b":2:2))'
    for text, site in (('"tilepass.site.7"', 7), (inner, 12), ('"tilepass.copy.8"', None)):
        module = parse(f'"test.op"() : () -> () loc({text})')
        assert site_of(operations(module)[1].location) == site


def test_operands_that_are_no_register_tensors_are_none() -> None:
    dynamic = '"!cute.memref<f32, rmem, align<32>, \\"?:1\\">"'
    for row in (f'"atom", "other", {dynamic}', '"atom"', '"atom", "other"'):
        (site,) = sites_of(parse(f"module attributes {{tilepass.sites = [[{row}]]}} {{}}"))
        assert (site.index, site.atom, site.d, site.a, site.b) == (0, "atom", None, None, None)


def test_gemms_are_what_is_called_so(monkeypatch: pytest.MonkeyPatch) -> None:
    some = [SimpleNamespace(name=name) for name in ("cute.gemm", "cute.copy", "cute.gemm")]

    def named(_: Module) -> list[SimpleNamespace]:
        return some

    monkeypatch.setattr(programs, "operations", named)
    assert programs.gemms_of(cast("Module", None)) == [some[0], some[2]]


def test_copies_are_tagged_with_the_bytes_of_their_atom(monkeypatch: pytest.MonkeyPatch) -> None:
    atoms = [f"!cute.tma_load<foo, copy_bits = {bits}>" for bits in (64, 65, 8)]
    copies = [
        SimpleNamespace(
            name="cute.copy", operands=[SimpleNamespace(type=each) for each in (atom, "!cute.x")]
        )
        for atom in (*atoms, "!cute.other<copy_bits = 8>")
    ]
    tags = list[str]()

    def copies_of(_: Module) -> list[SimpleNamespace]:
        return copies

    def note(_: object, name: str) -> None:
        tags.append(name)

    monkeypatch.setattr(programs, "operations", copies_of)
    monkeypatch.setattr(programs, "_rename", note)
    assert programs.tag_sites(parse("module {}")) == 0
    assert tags == [f"tilepass.copy.{size}" for size in (8, 9, 1)]


@pytest.mark.parametrize(
    ("layout", "extents"),
    [
        ("(2):(1)", (1, 1)),
        ("((2,2)):((1,2))", (1, 1)),
        ("((2,2),3):((1,2),4)", (3, 1)),
        ("((2,2),3,5):((1,2),4,12)", (3, 5)),
        ("((2,2),3,5,1):((1,2),4,12,0)", None),
    ],
)
def test_tiles_of_a_fragment(layout: str, extents: tuple[int, int] | None) -> None:
    tensor = static_tensor(f'!cute.memref<f32, rmem, align<32>, "{layout}">')
    assert tensor is not None
    assert entry._tile_extents(tensor.layout) == extents  # pyright: ignore[reportPrivateUsage]
    if extents:
        places = entry._places(tensor)  # pyright: ignore[reportPrivateUsage]
        tiles = [*product(range(extents[0]), range(extents[1]))]
        assert places == {4 * (4 * m + 12 * n): [(m, n)] for m, n in tiles}


def test_values_that_rest_on_a_product_with_zero() -> None:
    maps = Domain(32).maps

    def value(*facts: int) -> ZeroBytes:
        return maps.of(array([facts], uint8))

    rests = entry._rests  # pyright: ignore[reportPrivateUsage]
    for facts, expected in (
        ((15, 15), False), ((0, 0), False), ((3, 15), True), ((15, 3), True), ((3, 3), True),
        ((1, 0), True), ((5, 0), False), ((12, 0), False), ((7, 0), True),
    ):  # fmt: skip
        assert rests(value(*facts)) is expected
        assert rests((value(15), value(*facts))) is expected
        assert rests(Struct((value(15), value(*facts)))) is expected
    assert rests(None) is False


def test_extents_that_no_launch_configuration_gives() -> None:
    extents = entry._extents  # pyright: ignore[reportPrivateUsage]
    other = operations(parse('%x = "test.op"() : () -> i32'))[1]
    assert extents(None) is None
    assert extents(other) is None


def test_extents_of_a_block() -> None:
    noted = 'cutlass_launch_facts = "exact_block_dim = array<i64: 8, 2, 4>"'
    for block, extents in ((BLOCK, (8, 2, 4)), (noted, (8, 2, 4)), ("other", None)):
        module = parse(f"gpu.module @m {{ {Kernel().text(block=block)} }}")
        (kernel,) = (each for each in operations(module) if each.name == "gpu.func")
        assert block_of(module, kernel) == extents


def test_extents_of_a_block_that_a_launch_gives() -> None:
    numbers = "i32, i32, i32, i64, i32, i32, i32, !cuda.stream"
    kind = "!cuda.launch_cfg<max_attrs = 1>"
    called = "callee = @k, assumeKernelAttr = #cuda.assume_kernel_attr<true>"
    operands = "(%x, %y, %z, %n, %x, %x, %x, %s) {maxNumAttrs = 1 : i32}"
    create = f'"cuda.launch_cfg.create"{operands} : ({numbers}) -> {kind}'
    text = f"""gpu.module @m {{ cuda.kernel @k() {{ cuda.return }}
      func.func @host(%n: i64, %s: !cuda.stream) {{
        %x = arith.constant 8 : i32 %y = arith.constant 2 : i32 %z = arith.constant 4 : i32
        %c = {create}
        %r = "cuda.launch_ex"(%c) {{{called}}} : ({kind}) -> !cuda.result
        return }} }}"""
    computed = text.replace("%z = arith.constant 4 : i32", "%z = arith.addi %x, %y : i32")
    for each, extents in ((text, (8, 2, 4)), (computed, None)):
        module = parse(each)
        (kernel,) = (one for one in operations(module) if one.name == "cuda.kernel")
        assert block_of(module, kernel) == extents
