"""Typed views of what passes inspect: types of Triton's dialects and their encodings.

`parse_type` and `parse_encoding` read the text of a type or attribute, `str()` gives it back; a
tensor descriptor's text depends on the Triton that is to read it. Parameters that the class of an
encoding does not know (those of later Tritons) are kept in `extra` and printed after the others.
`cga_layout` distributes over the CTAs of a cluster; None means one CTA.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache, cached_property, lru_cache
from typing import Any, ClassVar, Literal, cast

from tilepass.core.errors import ParseError

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
    """The fields that are not parameters between `opening` and `closing`."""

    extra: tuple[tuple[str, Parameter], ...] = ()

    @property
    def parameters(self) -> dict[str, Parameter]:
        """The parameters as MLIR names them, in the order in which it prints them."""
        known = {
            _mlir_name(each.name): _to_parameter(getattr(self, each.name))
            for each in fields(self)
            if each.name not in self.apart and getattr(self, each.name) != each.default
        }
        return known | dict(self.extra)

    @cached_property
    def _text(self) -> str:
        return f"#{self.mnemonic}{self.opening}{_print_parameters(self.parameters)}{self.closing}"

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
        inner = _print_parameters(self.parameters)
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
    """An encoding without its own view, as text."""

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
    if body := _unwrap(text, "#ttg.shared_linear<"):
        return _shared_linear(text, body)
    for mnemonic, view in _VIEWS.items():
        body = _unwrap(text, f"#{mnemonic}{view.opening}", view.closing)
        if body is not None:
            return _view(view, text, _parse_parameters(body))
    return OtherEncoding(text=text)


def _shared_linear(text: str, body: str) -> Encoding:
    bases, *rest = split_list(body)
    inner = _unwrap(bases, "{", "}")
    alignment = _parse_parameters(", ".join(rest)).get("alignment")
    if inner is None or alignment is None:
        raise ParseError(f"encoding '{text}': expected {{bases}}, alignment = BYTES")
    return _view(SharedLinear, text, _parse_parameters(inner), alignment=alignment)


def _view(view: type[Encoding], text: str, given: dict[str, Parameter], **more: object) -> Encoding:
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


def _to_parameter(value: object) -> Parameter:
    return str(value) if isinstance(value, Encoding) else cast("Parameter", value)


# Triton 3.8 dropped the `tensor<...>` inside `!tt.tensordesc<...>`.
_FLAT_SPELLING_SINCE = (3, 8)
_WRAPPED = re.compile(r"!tt\.tensordesc<tensor<")
_FLAT = re.compile(r"!tt\.tensordesc<\d")
_SHAPED = re.compile(r"((?:\d+x)*)(.*)$", re.DOTALL)
# `f8E4M3FN`, `si8`, `tf32`.
_NUMBER = re.compile(r"[a-z]+(\d+)")
_POINTER_BITS = 64

_SPACES = {"shared": "#ttg.shared_memory", "tensor": "#ttng.tensor_memory"}


class TensorDescSpellingError(ParseError):
    """IR that spells tensor descriptors as Tritons other than the installed one do."""


@dataclass(frozen=True)
class TensorType:
    """`tensor<SHAPExELEMENT, ENCODING>`; the element is the text of a type."""

    shape: tuple[int, ...]
    element: str
    encoding: Encoding | None = None

    def __str__(self) -> str:
        encoding = f", {self.encoding}" if self.encoding else ""
        return f"tensor<{_shaped(self.shape, self.element)}{encoding}>"

    @property
    def pointee(self) -> str | None:
        """What the elements point to, None where they are not pointers."""
        pointer = parse_type(self.element)
        return pointer.pointee if isinstance(pointer, PointerType) else None


@dataclass(frozen=True)
class PointerType:
    """`!tt.ptr<POINTEE>`; the address space is 1, global memory, where the text names none."""

    pointee: str
    address_space: str = "1"

    def __str__(self) -> str:
        space = "" if self.address_space == "1" else f", {self.address_space}"
        return f"!tt.ptr<{self.pointee}{space}>"


@dataclass(frozen=True)
class MemDescType:
    """`!ttg.memdesc<...>`: a buffer in shared or tensor memory.

    `alloc_shape` is that of the whole allocation, None where it is `shape`.
    """

    shape: tuple[int, ...]
    element: str
    encoding: Encoding
    space: Literal["shared", "tensor"] = "shared"
    mutable: bool = False
    alloc_shape: tuple[int, ...] | None = None

    def __str__(self) -> str:
        parts = [_shaped(self.shape, self.element), str(self.encoding), _SPACES[self.space]]
        if self.mutable:
            parts.append("mutable")
        if self.alloc_shape is not None:
            parts.append("x".join(map(str, self.alloc_shape)))
        return f"!ttg.memdesc<{', '.join(parts)}>"


@dataclass(frozen=True)
class TensorDescType:
    """`!tt.tensordesc<...>`, or `!ttng.tensordesc_im2col<...>`: blocks that TMA moves."""

    block: TensorType
    im2col: bool = False

    def spell(self, triton_version: tuple[int, ...]) -> str:
        """The type as the given Triton, e.g. (3, 6, 0), reads and prints it."""
        block = str(self.block)
        if self.im2col:
            return f"!ttng.tensordesc_im2col<{block[len('tensor<') :]}"
        if triton_version >= _FLAT_SPELLING_SINCE:
            return f"!tt.tensordesc<{block[len('tensor<') :]}"
        return f"!tt.tensordesc<{block}>"


@dataclass(frozen=True)
class OtherType:
    """A type without its own view, as text: `i32`, `!ttg.async.token`."""

    text: str

    def __str__(self) -> str:
        return self.text


TypeView = TensorType | PointerType | MemDescType | TensorDescType | OtherType


def parse_type(type_: object) -> TypeView:
    """The view of a type or of its text, aliases expanded. Raises ParseError with the text."""
    return _parse(str(type_).strip())


# A module has few types and many values; views are immutable.
@lru_cache(maxsize=1024)
def _parse(text: str) -> TypeView:
    if body := _unwrap(text, "tensor<"):
        return _tensor(body)
    if body := _unwrap(text, "!tt.ptr<"):
        return PointerType(*split_list(body))
    if body := _unwrap(text, "!ttg.memdesc<"):
        return _memdesc(text, body)
    if body := _unwrap(text, "!tt.tensordesc<"):
        return TensorDescType(_tensor(_unwrap(body, "tensor<") or body))
    if body := _unwrap(text, "!ttng.tensordesc_im2col<"):
        return TensorDescType(_tensor(body), im2col=True)
    return OtherType(text)


def element_bits(element: str) -> int:
    """Bits that an element takes in memory. Raises ParseError but for numbers and pointers."""
    if element.startswith("!tt.ptr<"):
        return _POINTER_BITS
    match = _NUMBER.match(element)
    if match is None:
        raise ParseError(f"type '{element}': expected a number's, e.g. f16")
    return max(8, int(match[1]))


def shape_of(type_: object) -> tuple[int, ...]:
    """The shape of a tensor or a buffer. Raises ParseError for another type."""
    view = parse_type(type_)
    if not isinstance(view, TensorType | MemDescType):
        raise ParseError(f"type '{view}': expected a tensor's or a buffer's")
    return view.shape


def bytes_of(type_: object) -> int:
    """Bytes of a tensor of numbers in memory, 0 for anything else (pointers, descriptors)."""
    view = parse_type(type_)
    if not isinstance(view, TensorType) or view.element.startswith("!"):
        return 0
    return math.prod(view.shape) * element_bits(view.element) // 8


def check_spelling(text: str, triton_version: tuple[int, ...]) -> None:
    """Raise TensorDescSpellingError if `text` spells tensor descriptors as other Tritons do."""
    wants_flat = triton_version >= _FLAT_SPELLING_SINCE
    found = (_WRAPPED if wants_flat else _FLAT).search(text)
    if not found:
        return
    spellings = {
        False: "!tt.tensordesc<tensor<128x64xbf16>> (Triton 3.6 and 3.7)",
        True: "!tt.tensordesc<128x64xbf16> (Triton 3.8 and 3.9)",
    }
    installed = ".".join(map(str, triton_version))
    raise TensorDescSpellingError(
        f"the text spells tensor descriptors as {spellings[not wants_flat]}; "
        f"the installed Triton {installed} wants {spellings[wants_flat]}"
    )


def _tensor(body: str) -> TensorType:
    shaped, *encoding = split_list(body)
    shape, element = _split_shape(shaped)
    return TensorType(shape, element, parse_encoding(encoding[0]) if encoding else None)


def _memdesc(text: str, body: str) -> MemDescType:
    parts = split_list(body)
    spaces = {name: space for space, name in _SPACES.items()}
    if len(parts) < 3 or parts[2] not in spaces:
        raise ParseError(f"type '{text}': expected shape, encoding, memory space")
    shape, element = _split_shape(parts[0])
    rest = parts[3:]
    mutable = "mutable" in rest
    allocation = [part for part in rest if part != "mutable"]
    return MemDescType(
        shape,
        element,
        parse_encoding(parts[1]),
        "tensor" if spaces[parts[2]] == "tensor" else "shared",
        mutable,
        tuple(map(int, allocation[0].split("x"))) if allocation else None,
    )


def _split_shape(text: str) -> tuple[tuple[int, ...], str]:
    match = _SHAPED.match(text)
    assert match is not None
    return tuple(int(size) for size in match[1].split("x") if size), match[2]


def _shaped(shape: tuple[int, ...], element: str) -> str:
    return "".join(f"{size}x" for size in shape) + element


Parameter = int | bool | str | tuple["Parameter", ...]
"""A parameter: a number, a flag, a list, or the text of anything else."""

_OPENING, _CLOSING = "<{[(", ">}])"
_INTEGER = re.compile(r"-?\d+$")


def split_list(text: str) -> list[str]:
    """The parts of a text between its outermost commas, those in strings aside; blanks around them
    are dropped."""
    parts: list[str] = []
    depth, start, quoted = 0, 0, False
    for at, character in enumerate(text):
        if character == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif character in _OPENING:
            depth += 1
        elif character in _CLOSING and not (character == ">" and text[at - 1] == "-"):
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    last = text[start:].strip()
    return [*parts, last] if last or parts else []


def _parse_parameters(text: str) -> dict[str, Parameter]:
    """The parameters in `a = 1, b = [2, 3]`, in order. Raises ParseError for another form."""
    parameters: dict[str, Parameter] = {}
    for part in split_list(text):
        name, equals, value = part.partition("=")
        if not equals:
            raise ParseError(f"expected 'name = value' in '{part}'")
        parameters[name.strip()] = _parse_parameter(value.strip())
    return parameters


def _parse_parameter(text: str) -> Parameter:
    """The value of a parameter."""
    if text in ("true", "false"):
        return text == "true"
    if _INTEGER.match(text):
        return int(text)
    if text.startswith("[") and text.endswith("]"):
        return tuple(_parse_parameter(part) for part in split_list(text[1:-1]))
    return text


def _print_parameter(value: Parameter) -> str:
    """The value as MLIR prints it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_print_parameter, value))}]"
    return str(value)


def _print_parameters(parameters: Mapping[str, Parameter]) -> str:
    """The parameters as MLIR prints them."""
    return ", ".join(f"{name} = {_print_parameter(value)}" for name, value in parameters.items())


def _unwrap(text: str, start: str, end: str = ">") -> str | None:
    """What stands between `start` and `end`, None where `text` is not so wrapped."""
    if text.startswith(start) and text.endswith(end):
        return text[len(start) : len(text) - len(end)]
    return None
