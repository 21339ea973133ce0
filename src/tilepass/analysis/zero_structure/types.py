"""Sizes of the types of a lowered module, from their text.

Only what the interpreters need: scalars, vectors, pointers, LLVM arrays and structs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from tilepass.ir.layouts import split_list

_FLOATS = {
    "f16": 2,
    "bf16": 2,
    "f32": 4,
    "f64": 8,
    "f8E4M3FN": 1,
    "f8E5M2": 1,
}
_INTEGER = re.compile(r"i(\d+)")
_VECTOR = re.compile(r"vector<((?:\d+x)+)([\w!.<>]+)>")
_POINTER = re.compile(r"!llvm\.ptr(?:<(\d+)>)?|ptr(?:<(\d+)>)?")
_ARRAY = re.compile(r"(?:!llvm\.)?array<(\d+) x (.+)>", re.DOTALL)
_STRUCT = re.compile(r"(?:!llvm\.)?struct<(packed )?\((.*)\)>", re.DOTALL)

INDEX_WIDTH = 64
POINTER_BYTES = {None: 8, 3: 4, 5: 4}


@dataclass(frozen=True)
class Scalar:
    """A number: `width` in bits; `floating` tells f16 from i16."""

    text: str
    width: int
    floating: bool

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return max(1, self.width // 8)


@dataclass(frozen=True)
class Vector:
    """A vector of any rank, its elements in row-major order."""

    element: Scalar
    shape: tuple[int, ...]

    @property
    def count(self) -> int:
        """Number of elements."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return self.count * self.element.size


@dataclass(frozen=True)
class Address:
    """A pointer: space None is generic, 1 global, 3 shared, 4 constant, 7 of the cluster."""

    space: int | None

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return POINTER_BYTES.get(self.space, 8)


@dataclass(frozen=True)
class Fields:
    """A struct or array of LLVM."""

    members: tuple[Type, ...]
    packed: bool = False


@dataclass(frozen=True)
class Opaque:
    """A type that the analysis does not look into."""

    text: str


Type = Scalar | Vector | Address | Fields | Opaque


@cache
def parse_type(text: str) -> Type:
    """The view of a type printed by MLIR."""
    text = text.strip()
    if text == "index":
        return Scalar(text, INDEX_WIDTH, floating=False)
    if text in _FLOATS:
        return Scalar(text, 8 * _FLOATS[text], floating=True)
    if match := _INTEGER.fullmatch(text):
        width = int(match[1])
        usable = width in (1, 8, 16, 32, 64)
        return Scalar(text, width, floating=False) if usable else Opaque(text)
    if match := _POINTER.fullmatch(text):
        space = match[1] or match[2]
        return Address(int(space) if space and int(space) else None)
    if match := _VECTOR.fullmatch(text):
        element = parse_type(match[2])
        if isinstance(element, Scalar):
            # A vector of i1 is one element per flag in values; it never reaches memory.
            return Vector(element, tuple(int(part) for part in match[1].split("x")[:-1]))
        return Opaque(text)
    return _aggregate(text)


def _aggregate(text: str) -> Type:
    if match := _ARRAY.fullmatch(text):
        count = int(match[1])
        # The array of 0 elements is shared memory whose size the launch gives.
        return Fields((parse_type(match[2]),) * count) if count <= 4096 else Opaque(text)
    if match := _STRUCT.fullmatch(text):
        members = tuple(parse_type(part) for part in split_list(match[2]))
        return Fields(members, packed=match[1] is not None)
    return Opaque(text)


@cache
def size_of(kind: Type) -> int | None:
    """Bytes that a value takes in memory, None for a type of unknown size.

    Structs are laid out as LLVM does: members at multiples of their alignment.
    """
    if isinstance(kind, Scalar | Vector | Address):
        return kind.size
    if isinstance(kind, Opaque):
        return None
    offset = 0
    for member in kind.members:
        size, alignment = size_of(member), alignment_of(member)
        if size is None:
            return None
        if not kind.packed:
            offset = -(-offset // alignment) * alignment
        offset += size
    return -(-offset // alignment_of(kind)) * alignment_of(kind)


@cache
def alignment_of(kind: Type) -> int:
    """The alignment in bytes that LLVM gives a type on NVPTX."""
    if isinstance(kind, Fields):
        members = () if kind.packed else kind.members
        return max((alignment_of(member) for member in members), default=1)
    size = size_of(kind) or 1
    return 1 << (size - 1).bit_length()
