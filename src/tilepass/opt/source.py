"""The input of `tilepass-opt` and its parts."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from tilepass.core.diagnostics import Diagnostic, SourceLocation
from tilepass.core.errors import TilepassError

SPLIT_MARKER = "// -----"
_NEAR_MISS = re.compile(r"\s*//\s*-{3,}\s*$")


@dataclass(frozen=True)
class Part:
    """A piece of a file that is a separate module; `first_line` counts from 1."""

    file: str
    text: str
    first_line: int = 1


def read_source(file: str) -> Part:
    """The whole of `file`, or of standard input for `-`, as one part.

    Raises TilepassError for a file that cannot be read, is not text, or is empty.
    """
    name = "<stdin>" if file == "-" else file
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise TilepassError(f"{name}: {error.strerror or error}") from error
    try:
        # Some editors begin a file with a byte order mark.
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise TilepassError(f"{name}:{line}: not MLIR text: the bytes are not UTF-8") from error
    if (at := text.find("\0")) >= 0:
        line = text.count("\n", 0, at) + 1
        raise TilepassError(f"{name}:{line}: not MLIR text: it holds a zero byte")
    if not text.strip():
        raise TilepassError(f"{name}: the file is empty")
    return Part(name, text)


def lines_of(text: str) -> list[str]:
    """The lines with their ends, as MLIR counts them: `splitlines` ends one at a form feed too."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def split(source: Part) -> tuple[list[Part], list[Diagnostic]]:
    """The parts between the lines `// -----`, and a warning for every line that nearly is one."""
    parts: list[Part] = []
    warnings: list[Diagnostic] = []
    lines: list[str] = []
    first_line = source.first_line
    for number, line in enumerate(lines_of(source.text), source.first_line):
        if line.rstrip() == SPLIT_MARKER:
            parts.append(Part(source.file, "".join(lines), first_line))
            lines, first_line = [], number + 1
            continue
        if _NEAR_MISS.match(line):
            location = SourceLocation(source.file, number, line.index("/") + 1)
            message = f"near miss with the split marker '{SPLIT_MARKER}'"
            warnings.append(Diagnostic("warning", message, location))
        lines.append(line)
    parts.append(Part(source.file, "".join(lines), first_line))
    return parts, warnings
