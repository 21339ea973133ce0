"""Typed views of tensor and buffer encodings: `#ttg.blocked<...>` and its kin.

`parse_encoding` reads the text of an attribute, `str()` gives it back. Parameters that a class does
not know (those of later Tritons) are kept in `extra` and printed after the others. `cga_layout`
distributes over the CTAs of a cluster; None means one CTA.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache, cached_property
from typing import Any, ClassVar, cast

from tilepass.core.errors import ParseError
from tilepass.ir._text import (
    Literal,
    parse_parameters,
    print_parameters,
    split_list,
    unwrap,
)

Bases = tuple[tuple[int, ...], ...]
"""Basis vectors of a linear layout: one coordinate per dimension of the tensor."""


_ACRONYMS = {"cta": "CTA", "ctas": "CTAs", "cga": "CGA"}


@cache
def _mlir_name(field_name: str) -> str:
    """`warps_per_cta` -> `warpsPerCTA`."""
    first, *rest = field_name.split("_")
    words = [_ACRONYMS.get(word, word.capitalize()) for word in rest]
    return _ACRONYMS.get(first, first) + "".join(words)


@dataclass(frozen=True, kw_only=True)
class Encoding:
    """Base of the views. `str()` is the attribute in MLIR's syntax."""

    mnemonic: ClassVar[str]
    opening: ClassVar[str] = "<{"
    closing: ClassVar[str] = "}>"
    apart: ClassVar[tuple[str, ...]] = ("extra",)
    """The fields that are no parameters between `opening` and `closing`."""

    extra: tuple[tuple[str, Literal], ...] = ()

    @property
    def parameters(self) -> dict[str, Literal]:
        """The parameters as MLIR names them, in the order in which it prints them."""
        known = {
            _mlir_name(each.name): _to_literal(getattr(self, each.name))
            for each in fields(self)
            if each.name not in self.apart and getattr(self, each.name) != each.default
        }
        return known | dict(self.extra)

    @cached_property
    def _text(self) -> str:
        return f"#{self.mnemonic}{self.opening}{print_parameters(self.parameters)}{self.closing}"

    def __str__(self) -> str:
        return self._text


@dataclass(frozen=True, kw_only=True)
class Blocked(Encoding):
    """`#ttg.blocked`: registers by lanes by warps, `order` from the fastest dimension."""

    mnemonic = "ttg.blocked"
    size_per_thread: tuple[int, ...]
    threads_per_warp: tuple[int, ...]
    warps_per_cta: tuple[int, ...]
    order: tuple[int, ...]
    cga_layout: Bases | None = None


@dataclass(frozen=True, kw_only=True)
class Slice(Encoding):
    """`#ttg.slice`: the parent's layout with dimension `dim` dropped."""

    mnemonic = "ttg.slice"
    dim: int
    parent: Encoding


@dataclass(frozen=True, kw_only=True)
class DotOperand(Encoding):
    """`#ttg.dot_op`: an operand of a dot in registers; `k_width` elements in a row per thread."""

    mnemonic = "ttg.dot_op"
    op_idx: int
    parent: Encoding
    k_width: int | None = None


@dataclass(frozen=True, kw_only=True)
class NvidiaMma(Encoding):
    """`#ttg.nvidia_mma`: an accumulator; version 2 is mma.sync, 3 is wgmma; shape M, N, K."""

    mnemonic = "ttg.nvidia_mma"
    version_major: int
    version_minor: int
    warps_per_cta: tuple[int, ...]
    instr_shape: tuple[int, ...]
    cga_layout: Bases | None = None


@dataclass(frozen=True, kw_only=True)
class NvmmaShared(Encoding):
    """`#ttg.nvmma_shared`: shared memory as TMA and wgmma read it; swizzle width in bytes."""

    mnemonic = "ttg.nvmma_shared"
    swizzling_byte_width: int
    transposed: bool
    element_bit_width: int
    fp4_padded: bool = False
    cga_layout: Bases | None = None


@dataclass(frozen=True, kw_only=True)
class SwizzledShared(Encoding):
    """`#ttg.swizzled_shared`: shared memory with vectors of `vec` elements XOR-swizzled."""

    mnemonic = "ttg.swizzled_shared"
    vec: int
    per_phase: int
    max_phase: int
    order: tuple[int, ...]
    cga_layout: Bases | None = None


@dataclass(frozen=True, kw_only=True)
class Linear(Encoding):
    """`#ttg.linear`: registers by basis vectors."""

    mnemonic = "ttg.linear"
    register: Bases
    lane: Bases
    warp: Bases
    block: Bases


@dataclass(frozen=True, kw_only=True)
class SharedLinear(Encoding):
    """`#ttg.shared_linear`: shared memory by basis vectors; alignment in bytes."""

    mnemonic = "ttg.shared_linear"
    apart = ("extra", "alignment")
    offset: Bases
    block: Bases | None = None
    alignment: int

    def __str__(self) -> str:
        inner = print_parameters(self.parameters)
        return f"#{self.mnemonic}<{{{inner}}}, alignment = {self.alignment}>"


@dataclass(frozen=True, kw_only=True)
class TensorMemory(Encoding):
    """`#ttng.tensor_memory_encoding`: accumulators and operands in tensor memory."""

    mnemonic = "ttng.tensor_memory_encoding"
    opening, closing = "<", ">"
    block_m: int
    block_n: int
    col_stride: int | None = None
    two_ctas: bool = False


@dataclass(frozen=True, kw_only=True)
class TensorMemoryScales(Encoding):
    """`#ttng.tensor_memory_scales_encoding`: block scales in tensor memory."""

    mnemonic = "ttng.tensor_memory_scales_encoding"
    opening, closing = "<", ">"


@dataclass(frozen=True, kw_only=True)
class OtherEncoding(Encoding):
    """An encoding without a view of its own, as text."""

    mnemonic = ""
    apart = ("extra", "text")
    text: str

    def __str__(self) -> str:
        return self.text


_VIEWS: Mapping[str, type[Encoding]] = {
    view.mnemonic: view
    for view in (
        Blocked,
        Slice,
        DotOperand,
        NvidiaMma,
        NvmmaShared,
        SwizzledShared,
        Linear,
        TensorMemory,
        TensorMemoryScales,
    )
}


def parse_encoding(attribute: object) -> Encoding:
    """The view of an attribute or of its text, aliases expanded.

    Raises ParseError, which holds the text, where a known encoding lacks a parameter.
    """
    text = str(attribute).strip()
    if body := unwrap(text, "#ttg.shared_linear<"):
        return _shared_linear(text, body)
    for mnemonic, view in _VIEWS.items():
        body = unwrap(text, f"#{mnemonic}{view.opening}", view.closing)
        if body is not None:
            return _view(view, text, parse_parameters(body))
    return OtherEncoding(text=text)


def _shared_linear(text: str, body: str) -> Encoding:
    bases, *rest = split_list(body)
    inner = unwrap(bases, "{", "}")
    alignment = parse_parameters(", ".join(rest)).get("alignment")
    if inner is None or alignment is None:
        raise ParseError(f"encoding '{text}': expected {{bases}}, alignment = BYTES")
    return _view(SharedLinear, text, parse_parameters(inner), alignment=alignment)


def _view(view: type[Encoding], text: str, given: dict[str, Literal], **more: object) -> Encoding:
    values: dict[str, object] = dict(more)
    for each in fields(view):
        name = _mlir_name(each.name)
        if name in given:
            value = given.pop(name)
            values[each.name] = parse_encoding(value) if each.name == "parent" else value
    if lacking := [
        _mlir_name(each.name)
        for each in fields(view)
        if each.default is MISSING and each.name not in values
    ]:
        raise ParseError(f"encoding '{text}' lacks {', '.join(lacking)}")
    return view(extra=tuple(given.items()), **cast("Any", values))


def _to_literal(value: object) -> Literal:
    return str(value) if isinstance(value, Encoding) else cast("Literal", value)
