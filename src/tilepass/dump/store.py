"""Files of a dump: each appears under its name only when it is complete."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilepass.core.errors import TilepassError
from tilepass.core.files import write_whole


class DumpError(TilepassError):
    """A file or folder of a dump could not be written; the message names it and the reason."""


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file, whole or not at all. Raises DumpError."""
    try:
        write_whole(path, content)
    except OSError as error:
        raise DumpError(f"cannot write {path}: {error.strerror}") from error


def read_text(path: Path) -> str:
    """The text of a file of a dump."""
    return path.read_text(encoding="utf-8", errors="replace")


def append_line(path: Path, record: Mapping[str, Any]) -> None:
    """Append a record to a file of JSON lines. Raises DumpError."""
    line = json.dumps(record, default=str) + "\n"
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(line)
    except OSError as error:
        raise DumpError(f"cannot write {path}: {error.strerror}") from error


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The records of a file of JSON lines; a last line that was cut off is left out."""
    if not path.is_file():
        return []
    lines = read_text(path).split("\n")
    return [json.loads(line) for line in lines[:-1]]


def new_folder(parent: Path, name: str) -> Path:
    """A folder that did not exist before: `name`, or `name-2`, `name-3`, ... Raises DumpError.

    Safe against other threads and processes that do the same.
    """
    number = 1
    while True:
        folder = parent / (name if number == 1 else f"{name}-{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            number += 1
            continue
        except OSError as error:
            raise DumpError(f"cannot make the folder {folder}: {error.strerror}") from error
        return folder
