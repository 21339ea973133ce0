"""Kernels that a program compiled and that were not asked for, to be named where none was."""

from __future__ import annotations

from pathlib import Path

from tilepass.dump.store import append_line, read_lines

_FILE = "left-out.jsonl"


def note_left_out(dump: Path, kernel: str) -> None:
    """A kernel was compiled and is not dumped. Raises DumpError."""
    append_line(dump / _FILE, {"kernel": kernel})


def take_left_out(dump: Path) -> list[str]:
    """The names that were noted, each once, sorted; no trace of them stays in the dump."""
    names = {str(record["kernel"]) for record in read_lines(dump / _FILE)}
    (dump / _FILE).unlink(missing_ok=True)
    return sorted(names)
