"""Typed views of types: tensors with encodings, pointers, buffers, tensor descriptors.

`parse_type` reads the text of a type, `str()` gives it back; a tensor descriptor's text depends on
the Triton that is to read it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from tilepass.core.errors import ParseError
from tilepass.ir._text import split_list, unwrap
from tilepass.ir.encodings import Encoding, parse_encoding

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
        """What the elements point to, None where they are no pointers."""
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
    """A type without a view of its own, as text: `i32`, `!ttg.async.token`."""

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
    if body := unwrap(text, "tensor<"):
        return _tensor(body)
    if body := unwrap(text, "!tt.ptr<"):
        return PointerType(*split_list(body))
    if body := unwrap(text, "!ttg.memdesc<"):
        return _memdesc(text, body)
    if body := unwrap(text, "!tt.tensordesc<"):
        return TensorDescType(_tensor(unwrap(body, "tensor<") or body))
    if body := unwrap(text, "!ttng.tensordesc_im2col<"):
        return TensorDescType(_tensor(body), im2col=True)
    return OtherType(text)


def element_bits(element: str) -> int:
    """Bits that an element takes in memory. Raises ParseError for what is no number or pointer."""
    if element.startswith("!tt.ptr<"):
        return _POINTER_BITS
    match = _NUMBER.match(element)
    if match is None:
        raise ParseError(f"type '{element}': expected a number's, e.g. f16")
    return max(8, int(match[1]))


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
