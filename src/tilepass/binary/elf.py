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
_VECTOR_REGISTERS = b".vgpr_count"
# As `readelf` names them for cubins: EIFMT_SVAL and EIATTR_REGCOUNT.
_SIZED, _REGISTER_COUNT = 0x04, 0x2F


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


def registers(binary: bytes) -> int:
    """Registers of a thread, of the kernel that takes the most; 0 where the binary does not say.

    Raises TilepassError.
    """
    if (at := binary.rfind(_VECTOR_REGISTERS)) >= 0:
        # MessagePack: small numbers are a byte, larger ones follow one that tells their size.
        at += len(_VECTOR_REGISTERS)
        return binary[at] if binary[at] < 0x80 else binary[at + 1]
    content = next((each.content for each in sections(binary) if each.name == ".nv.info"), b"")
    return max(_register_counts(content), default=0)


def _register_counts(info: bytes) -> Iterator[int]:
    """Of the records of `.nv.info`: format, attribute, size or value, and what the size counts."""
    at = 0
    while at + 4 <= len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, at)
        at += 4
        if form == _SIZED:
            if attribute == _REGISTER_COUNT:
                yield struct.unpack_from("<II", info, at)[1]
            at += size


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
