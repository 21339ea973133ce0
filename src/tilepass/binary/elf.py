"""Just enough of ELF to find a binary's code."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from tilepass.core.errors import TilepassError

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_EXECUTABLE = 0x4


@dataclass(frozen=True)
class Section:
    """A section of the file: its name, its flags, its bytes."""

    name: str
    flags: int
    content: bytes


def sections(binary: bytes) -> Iterator[Section]:
    """The sections of a 64-bit little-endian ELF file (cubin, hsaco). Raises TilepassError."""
    if binary[:6] != b"\x7fELF\x02\x01":
        raise TilepassError("the binary is not a 64-bit little-endian ELF file")
    try:
        yield from _sections(binary)
    except (struct.error, IndexError, ValueError) as error:
        raise TilepassError(f"the ELF file is damaged: {error}") from error


def code_hash(binary: bytes) -> str:
    """sha256 (hex) of the executable sections: line tables do not count."""
    digest = hashlib.sha256()
    for section in sections(binary):
        if section.flags & _EXECUTABLE:
            digest.update(section.name.encode() + b"\0" + section.content + b"\0")
    return digest.hexdigest()


def _sections(binary: bytes) -> Iterator[Section]:
    header: tuple[int, ...] = _HEADER.unpack_from(binary)[1:]
    table, size, count, names_index = header[5], header[10], header[11], header[12]
    rows: list[tuple[int, ...]] = [
        _SECTION.unpack_from(binary, table + index * size) for index in range(count)
    ]
    names = _content(binary, rows[names_index])
    for row in rows:
        name = names[row[0] : names.index(b"\0", row[0])].decode()
        yield Section(name, row[2], _content(binary, row))


def _content(binary: bytes, row: tuple[int, ...]) -> bytes:
    return binary[row[4] : row[4] + row[5]]
