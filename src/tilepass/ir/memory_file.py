"""Files without a disk: what native code reads from or writes to a path, at memory's speed."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator
from typing import Self

_CHUNK = 1 << 20


class MemoryFile:
    """A text under a path that any code of this process can open; gone when the block ends."""

    def __init__(self, parts: Iterable[str] = ()) -> None:
        self._descriptor = _beyond_streams(os.memfd_create("tilepass"))
        self.path = f"/proc/self/fd/{self._descriptor}"
        for part in parts:
            self._write(part.encode())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        os.close(self._descriptor)

    def read(self) -> str:
        """The whole text."""
        return "".join(self.chunks())

    def chunks(self) -> Iterator[str]:
        """The text in parts of about 1 MB that end at line ends."""
        at, begun = 0, b""
        while data := os.pread(self._descriptor, _CHUNK, at):
            at += len(data)
            whole, newline, rest = (begun + data).rpartition(b"\n")
            begun = rest
            if newline:
                yield (whole + newline).decode()
        if begun:
            yield begun.decode()

    def _write(self, data: bytes) -> None:
        written = 0
        while written < len(data):
            written += os.write(self._descriptor, data[written:])


def _beyond_streams(descriptor: int) -> int:
    """The same file under a number that no standard stream has: one that is closed gives its
    number away, and whoever redirects standard error would redirect the file."""
    if descriptor > 2:
        return descriptor
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(descriptor)
    return moved
