"""Diagnostics of libtriton: it prints them to the process's stderr and raises without a text."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace

from tilepass.core import underway
from tilepass.core.diagnostics import Diagnostic, Severity, SourceLocation

# File descriptor 2 belongs to the whole process.
_stderr_lock = threading.RLock()
_STDERR = 2
# What stderr was before the blocks that are being captured, the outermost first.
_saved: list[int] = []


def _renew() -> None:
    """In a forked child: the thread that holds the lock, and would restore stderr, is not there."""
    global _stderr_lock
    _stderr_lock = threading.RLock()
    if _saved:
        os.dup2(_saved[0], _STDERR)


os.register_at_fork(after_in_child=_renew)

_SEVERITY = r"(error|warning|remark|note)"
# MLIR's default handler prints `loc(LOCATION): error: ...`, its source manager `FILE:L:C: error:`.
_HEAD = re.compile(
    rf"^(?:loc\((?P<loc>.*?)\)|(?P<file>[^\n]*?):(?P<line>\d+):(?P<column>\d+)|<unknown>:0)?"
    rf"(?:: )?{_SEVERITY}: (?P<message>.*)$"
)
_FILE_LOCATION = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)')
# A pass manager that fails prints the module and a pipeline, at length.
_MODULE_START = re.compile(r'module\b|"builtin\.module"|[#!]\w+ = |\{-#')
_CARET = re.compile(r"\s*[~^]+\s*$")


class Captured:
    """What was written to stderr inside a `capture_diagnostics` block, during it and after it."""

    def __init__(self, sink: int) -> None:
        self._sink: int | None = sink
        self._text = ""

    @property
    def text(self) -> str:
        """What was written so far."""
        return self._text if self._sink is None else _read(self._sink)

    def close(self) -> None:
        """Keep the text; the descriptor goes."""
        self._text, self._sink = self.text, None

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """The diagnostics in the text, notes attached to the message before them."""
        return parse_diagnostics(self.text)[0]

    def forward(self) -> None:
        """Write to stderr what is not part of a diagnostic."""
        _write(parse_diagnostics(self.text)[1])


@contextmanager
def capture_diagnostics(*, forward: bool = True) -> Generator[Captured]:
    """Capture what native code writes to stderr; blocks of one thread may nest.

    Without an exception the text is passed on to stderr at the end, unless `forward` is false: what
    a successful pass prints was asked for by its user. With one, the text stays in the object for
    whoever handles it.
    Other threads' writes to stderr in the meantime are captured too, and passed on; processes that
    they fork have the real stderr, but a program that they start then has that of the block.
    """
    with _stderr_lock:
        if sys.stderr:
            sys.stderr.flush()
        saved, sink = _duplicate(_STDERR), _new_sink()
        captured = Captured(sink)
        try:
            _saved.append(saved)
            os.dup2(sink, _STDERR)
            try:
                yield captured
            finally:
                os.dup2(saved, _STDERR)
                _saved.pop()
                captured.close()
                os.ftruncate(sink, 0)
        finally:
            os.close(saved)
            os.close(sink)
        if forward:
            _write(captured.text)


def _new_sink() -> int:
    """A file for what is written; where a crash is attributed, one that outlives it."""
    if underway.native_output is None or _saved:
        return os.memfd_create("stderr")
    sink = os.dup(underway.native_output)
    os.ftruncate(sink, 0)
    os.lseek(sink, 0, os.SEEK_SET)
    return sink


def _duplicate(descriptor: int) -> int:
    """A duplicate; of a closed descriptor (a daemon's) one that swallows what it is given."""
    try:
        return os.dup(descriptor)
    except OSError:
        return os.open(os.devnull, os.O_WRONLY)


def parse_diagnostics(text: str) -> tuple[list[Diagnostic], str]:
    """The diagnostics in MLIR's output, and the text that belongs to none of them."""
    found: list[Diagnostic] = []
    rest: list[str] = []
    in_module = False
    for line in text.splitlines():
        if head := _HEAD.match(line):
            in_module = False
            _add(found, _diagnostic(head))
            continue
        in_module = in_module or _MODULE_START.match(line) is not None
        if found and not in_module:
            found[-1] = _continue(found[-1], line)
        else:
            rest.append(line + "\n")
    return [_without_source_line(diagnostic) for diagnostic in found], "".join(rest)


def _diagnostic(head: re.Match[str]) -> Diagnostic:
    severity: Severity = head[5]  # pyright: ignore[reportAssignmentType]
    location = None
    if head["file"] is not None:
        location = SourceLocation(head["file"], int(head["line"]), int(head["column"]))
    elif head["loc"] is not None and (place := _FILE_LOCATION.search(head["loc"])):
        location = SourceLocation(place[1], int(place[2]), int(place[3]))
    return Diagnostic(severity, head["message"], location)


def _add(found: list[Diagnostic], diagnostic: Diagnostic) -> None:
    if diagnostic.severity == "note" and found:
        found[-1] = replace(found[-1], notes=(*found[-1].notes, diagnostic))
    else:
        found.append(diagnostic)


def _continue(diagnostic: Diagnostic, line: str) -> Diagnostic:
    """A further line of the message: of the last note, if there is one."""
    if diagnostic.notes:
        last = _continue(diagnostic.notes[-1], line)
        return replace(diagnostic, notes=(*diagnostic.notes[:-1], last))
    return replace(diagnostic, message=f"{diagnostic.message}\n{line}")


def _without_source_line(diagnostic: Diagnostic) -> Diagnostic:
    """Without the excerpt of the source and the caret that MLIR's source manager adds."""
    lines = diagnostic.message.split("\n")
    if len(lines) >= 3 and _CARET.match(lines[2]):
        del lines[1:3]
    notes = tuple(map(_without_source_line, diagnostic.notes))
    return replace(diagnostic, message="\n".join(lines), notes=notes)


def _read(descriptor: int) -> str:
    size = os.lseek(descriptor, 0, os.SEEK_END)
    return os.pread(descriptor, size, 0).decode(errors="replace")


def _write(text: str) -> None:
    if text:
        os.write(_STDERR, text.encode())
