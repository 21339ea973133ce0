"""Where TMA reads and writes shared memory: what the protocol check says of misaligned places, and
that its idea of where Triton puts parts of buffers is Triton's."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest
from triton._C import libtriton

from tests.protocol_mutants import mutants
from tests.protocol_support import SCHEMES, load, problem
from tilepass.core.pass_base import Target
from tilepass.core.versions import triton_version
from tilepass.frontends.triton import bridge
from tilepass.frontends.triton.builtin_passes import discover
from tilepass.ir import engine
from tilepass.ir.engine import ir
from tilepass.ir.layouts import MemDescType, NvmmaShared, TensorDescType, TensorType, element_bits
from tilepass.ir.shared_memory import part_offset, slot_bytes
from tilepass.sim.inputs import Shapes
from tilepass.sim.protocol.check import find
from tilepass.sim.protocol.compiler import ProtocolProgram
from tilepass.sim.protocol.problems import Problem

_BAR = "!ttg.memdesc<1xi64, #bar, #smem, mutable>"
_LOAD = ("ttng.async_tma_copy_global_to_local", "ttng.async_tma_gather")


def _flat(bits: int = 16) -> NvmmaShared:
    return NvmmaShared(swizzling_byte_width=0, transposed=False, element_bit_width=bits)


def _swizzled(width: int = 128, bits: int = 16) -> NvmmaShared:
    return NvmmaShared(swizzling_byte_width=width, transposed=False, element_bit_width=bits)


def _buffer(encoding: Any, *shape: int, element: str = "f16") -> MemDescType:
    return MemDescType(shape, element, encoding, mutable=True)


def _fault(body: str, name: str, buffer: MemDescType) -> str:
    """What is found where `name` moves a block to or from %place, a buffer of this type."""
    module = engine.parse(_program(body, name, buffer))
    finding = find(ProtocolProgram(module), Problem(Shapes(64)), range(3))
    return finding.fault.message if finding else ""


def _program(body: str, name: str, buffer: MemDescType) -> str:
    """In generic form, which holds for every Triton."""
    descriptor = TensorDescType(TensorType(buffer.shape, buffer.element, buffer.encoding))
    spelled = descriptor.spell(triton_version().version)
    size = math.prod(buffer.shape) * 2
    if name in _LOAD:
        move = f'''
    "ttng.barrier_expect"(%bar, %true) {{size = {size} : i32}} : ({_BAR}, i1) -> ()
    "{name}"(%to, %zero, %zero, %bar, %place, %true) : ({spelled}, i32, i32, {_BAR}, {buffer}, i1) -> ()
    "ttng.wait_barrier"(%bar, %zero) {{operandSegmentSizes = array<i32: 1, 1, 0, 0>}} : ({_BAR}, i32) -> ()'''  # noqa: E501
    else:
        move = f'''
    %value = "arith.constant"() {{value = dense<0.0> : tensor<{"x".join(map(str, buffer.shape))}xf16>}} : () -> tensor<{"x".join(map(str, buffer.shape))}xf16>
    "ttg.local_store"(%value, %place) : (tensor<{"x".join(map(str, buffer.shape))}xf16>, {buffer}) -> ()
    "ttng.fence_async_shared"() {{bCluster = false}} : () -> ()
    "{name}"(%to, %zero, %zero, %place) : ({spelled}, i32, i32, {buffer}) -> ()
    "ttng.async_tma_store_wait"() {{pendings = 0 : i32}} : () -> ()'''  # noqa: E501
    return f"""
#bar = #ttg.swizzled_shared<{{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}}>
#smem = #ttg.shared_memory
"builtin.module"() ({{
  "tt.func"() <{{function_type = ({spelled}) -> (), sym_name = "kernel", sym_visibility = "public"}}> ({{
  ^bb0(%to: {spelled}):
    %zero = "arith.constant"() {{value = 0 : i32}} : () -> i32
    %one = "arith.constant"() {{value = 1 : i32}} : () -> i32
    %true = "arith.constant"() {{value = true}} : () -> i1
    %bar = "ttg.local_alloc"() {{operandSegmentSizes = array<i32: 0>}} : () -> {_BAR}
    "ttng.init_barrier"(%bar) {{count = 1 : i32}} : ({_BAR}) -> (){body}{move}
    "ttng.inval_barrier"(%bar) : ({_BAR}) -> ()
    "tt.return"() : () -> ()
  }}) : () -> ()
}}) {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32}} : () -> ()
"""  # noqa: E501


def _slot(array: MemDescType) -> str:
    """The second slot of an array."""
    slot = _buffer(array.encoding, *array.shape[1:])
    return f"""
    %array = "ttg.local_alloc"() : () -> {array}
    %place = "ttg.memdesc_index"(%array, %one) : ({array}, i32) -> {slot}"""


def _part(buffer: MemDescType, at: Sequence[int], part: MemDescType) -> str:
    """A part of a buffer."""
    return f"""
    %all = "ttg.local_alloc"() : () -> {buffer}
    %place = "ttg.memdesc_subslice"(%all) {{offsets = array<i32: {", ".join(map(str, at))}>}} : ({buffer}) -> {part}"""  # noqa: E501


def _alone(buffer: MemDescType, attributes: str = "") -> str:
    return f"""
    %place = "ttg.local_alloc"() {{{attributes}}} : () -> {buffer}"""


@pytest.mark.parametrize(
    "name",
    [
        *_LOAD,
        "ttng.async_tma_copy_local_to_global",
        "ttng.async_tma_reduce",
        "ttng.async_tma_scatter",
    ],
)
def test_places_of_every_operation(name: str) -> None:
    row = _buffer(_flat(), 1, 32)
    found = _fault(_slot(_buffer(_flat(), 4, 1, 32)), name, row)
    assert found == (
        "misaligned TMA place: smem1[1] begins 64 bytes into its allocation, and TMA needs a "
        "multiple of 128"
    )
    assert not _fault(_slot(_buffer(_flat(), 4, 1, 64)), name, _buffer(_flat(), 1, 64))


def test_slots_and_parts() -> None:
    store = "ttng.async_tma_copy_local_to_global"
    rows, row = _buffer(_flat(), 8, 32), _buffer(_flat(), 1, 32)
    assert "64 bytes" in _fault(_part(rows, (1, 0), row), store, row)
    assert not _fault(_part(rows, (2, 0), row), store, row)
    tile, part = _buffer(_swizzled(), 64, 128), _buffer(_swizzled(), 8, 64)
    assert not _fault(_part(tile, (8, 64), part), store, part)
    assert "needs a multiple of 1024" in _fault(_part(tile, (2, 64), part), store, part)
    halves = _buffer(_swizzled(64), 4, 4, 32)
    found = _fault(_slot(halves), store, _buffer(_swizzled(64), 4, 32))
    assert "256 bytes into its allocation, and TMA needs a multiple of 512" in found


def test_what_an_allocation_promises() -> None:
    store, tile = "ttng.async_tma_copy_local_to_global", _buffer(_swizzled(), 64, 64)
    assert not _fault(_alone(tile), store, tile)
    assert not _fault(_alone(tile, "alignment = 2048 : i32"), store, tile)
    found = _fault(_alone(tile, "alignment = 128 : i32"), store, tile)
    assert found == (
        "misaligned TMA place: smem1 is in an allocation that begins at some multiple of 128 "
        "bytes, and TMA needs one of 1024"
    )


@pytest.mark.parametrize("scheme", SCHEMES)
def test_mutants_of_places_are_reported_as_such(scheme: str) -> None:
    module = load(scheme)
    found = [each for each in mutants(module) if each.group == "place"]
    assert len(found) >= 8
    for mutant in found:
        finding = find(ProtocolProgram(mutant.apply(module)), problem(2), range(1))
        assert finding, mutant.name
        assert finding.fault.message.startswith("misaligned TMA place: "), mutant.name


# (swizzle, transposed, element, shape, positions); a part is one atom.
_LAYOUTS = [
    (128, False, "f16", (64, 128), [(0, 0), (16, 64), (8, 0), (56, 64)]),
    (64, False, "f16", (512, 128), [(256, 0), (8, 32), (504, 96)]),
    (32, False, "i8", (64, 64), [(8, 32), (0, 32), (56, 0)]),
    (128, True, "f16", (128, 64), [(64, 8), (0, 8), (64, 56)]),
    (0, False, "f16", (4, 32), [(1, 0), (2, 0), (3, 0)]),
    (0, False, "f16", (512, 512), [(256, 0), (0, 256), (511, 256)]),
    (0, False, "f32", (1, 512), [(0, 256), (0, 32)]),
]


@pytest.mark.parametrize(("swizzle", "transposed", "element", "shape", "positions"), _LAYOUTS)
def test_parts_begin_where_triton_puts_them(
    swizzle: int,
    transposed: bool,
    element: str,
    shape: tuple[int, ...],
    positions: list[tuple[int, ...]],
) -> None:
    if transposed and triton_version().version > (3, 6, 9):
        pytest.skip("TMA descriptors of later Tritons are never transposed")
    bits = {"i8": 8, "f16": 16, "f32": 32}[element]
    encoding = NvmmaShared(
        swizzling_byte_width=swizzle, transposed=transposed, element_bit_width=bits
    )
    atom = [8, swizzle * 8 // bits] if swizzle else [1, 32]
    atom = atom[::-1] if transposed else atom
    buffer = _buffer(encoding, *shape, element=element)
    addresses = _addresses(buffer, positions, atom)
    size = slot_bytes(_buffer(encoding, 2, *shape, element=element))
    assert size is not None
    parts = [part_offset(buffer, each) for each in positions]
    assert addresses == [size + each for each in parts if each is not None]


def _addresses(
    buffer: MemDescType, positions: Sequence[Sequence[int]], atom: Sequence[int]
) -> list[int]:
    """Where Triton stores parts of the second slot of an array from, counted from its start."""
    array = _buffer(buffer.encoding, 2, *buffer.shape, element=buffer.element)
    part = MemDescType(
        tuple(atom), buffer.element, buffer.encoding, mutable=True, alloc_shape=buffer.shape
    )
    descriptor = TensorDescType(TensorType(part.shape, part.element, part.encoding))
    spelled = descriptor.spell(triton_version().version)
    zeros = ", ".join(["%zero"] * len(atom))
    stores = "\n".join(
        f"""
    %part{index} = ttg.memdesc_subslice %slot[{", ".join(map(str, at))}] : {buffer} -> {part}
    ttng.async_tma_copy_local_to_global %to[{zeros}] %part{index} : {spelled}, {part}"""
        for index, at in enumerate(positions)
    )
    module = bridge.load(
        f"""
module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32}} {{
  tt.func public @kernel(%to: {spelled}) {{
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %array = ttg.local_alloc : () -> {array}
    %slot = ttg.memdesc_index %array[%one] : {array} -> {buffer}{stores}
    tt.return
  }}
}}""",  # noqa: E501
        "parts.mlir",
    )
    _lower(module)
    lowered = bridge.to_engine(module)
    copies = [
        each
        for each in engine.operations(lowered)
        if each.name == "llvm.inline_asm" and "bulk.tensor" in str(each.attributes["asm_string"])
    ]
    return [_value(list(each.operands)[-1]) for each in copies]


def _lower(module: Any) -> None:
    manager: Any = cast("Any", libtriton).ir.pass_manager(module.context)
    target = Target("cuda", 90)
    discover()["allocate-shared-memory-nv"].add(manager, {}, target)
    options = {"compute-capability": "90", "ptx-version": "80"}
    discover()["convert-triton-gpu-to-llvm"].add(manager, options, target)
    discover()["canonicalize"].add(manager, {}, target)
    manager.run(module, "lower")


_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "add": int.__add__,
    "and": int.__and__,
    "getelementptr": int.__add__,
    "icmp": int.__eq__,
    "lshr": int.__rshift__,
    "mul": int.__mul__,
    "or": int.__or__,
    "shl": int.__lshift__,
    "sub": int.__sub__,
    "xor": int.__xor__,
}


def _value(value: ir.Value) -> int:
    """What a value of the LLVM dialect is in the first thread, shared memory beginning at 0."""
    owner: Any = value.owner
    name = owner.name.removeprefix("llvm.")
    if name == "mlir.constant":
        return int(owner.attributes["value"].value)
    operands: list[ir.Value] = list(owner.operands)
    if name == "select":
        return _value(operands[1] if _value(operands[0]) else operands[2])
    if name not in _ARITHMETIC:
        return 0
    one = _value(operands[0])
    other = _value(operands[1]) if operands[1:] else int(owner.attributes["rawConstantIndices"][0])
    if name == "icmp":
        assert int(owner.attributes["predicate"].value) == 0  # eq
    elif name == "getelementptr":
        other = other * element_bits(str(owner.attributes["elem_type"].value)) // 8
    return int(_ARITHMETIC[name](one, other))
