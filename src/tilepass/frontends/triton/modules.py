"""Triton's modules: making contexts, parsing, and printing in generic form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol, cast

from triton._C import libtriton

from tilepass.core import underway
from tilepass.core.diagnostics import Diagnostic
from tilepass.core.errors import ParseError
from tilepass.core.versions import triton_version
from tilepass.frontends.triton.capture import Captured, capture_diagnostics
from tilepass.ir.aliases import in_quotes
from tilepass.ir.layouts import TensorDescSpellingError, check_spelling
from tilepass.ir.memory_file import MemoryFile

triton_ir: Any = libtriton.ir
_nvidia: Any = libtriton.nvidia
_amd: Any = libtriton.amd


_LINE_LENGTH = 300
_EXTRA_BLOCK = "\n^bb1:  // no predecessors\n"


class TritonOperation(Protocol):
    """`libtriton.ir.operation`: read only."""

    def get_name(self) -> str: ...


class TritonModule(Protocol):
    """`libtriton.ir.module`, as far as it is used here."""

    context: Any

    def str(self) -> str: ...
    def str_nodebug(self) -> str: ...
    def verify(self) -> bool: ...
    def get_entry_func_name(self) -> str: ...
    def walk(self, visit: Callable[[TritonOperation], None]) -> None: ...


def new_context() -> Any:
    """A `libtriton.ir.context` with the dialects of every back end of the installed Triton."""
    context = triton_ir.context()
    triton_ir.load_dialects(context)
    _nvidia.load_dialects(context)
    _amd.load_dialects(context)
    return context


def load(text: str, filename: str, context: Any = None, *, first_line: int = 1) -> TritonModule:
    """A Triton module from text in either form; operations without a location get `filename`'s.

    `first_line` is the line of `filename` on which `text` begins (a part of a split file). Raises
    ParseError with the diagnostics, located in `filename`.
    """
    context = new_context() if context is None else context
    with MemoryFile(["\n" * (first_line - 1), text]) as file:
        module = parse(file, context, filename)
        if f'"{file.path}"' not in module.str():
            return module
        located = generic_text(module).replace(f'"{file.path}"', in_quotes(filename))
    with MemoryFile([located]) as file:
        return parse(file, context, filename)


def parse(file: MemoryFile, context: Any, filename: str | None = None) -> TritonModule:
    """A verified Triton module from text in which operations have their locations.

    Raises ParseError. What it says about the text itself is located in `filename`; of a text that
    the user cannot open (None) it quotes the line.
    """
    with capture_diagnostics() as captured:
        try:
            module = underway.under_name(
                f"reading {filename or 'a module'} with Triton's parser",
                lambda: triton_ir.parse_mlir_module(file.path, context),
            )
        except RuntimeError as error:
            text = file.read()
            shown = [
                _shown(diagnostic, file.path, filename, text) for diagnostic in captured.diagnostics
            ]
            message = "\n".join(shown) or f"{filename or 'module'}: error: {error}"
            raise _with_spelling_note(message, text) from error
        _require_no_error(captured, file, filename)
    # A module whose context is collected first crashes the process.
    module.context = context
    return cast("TritonModule", module)


def _require_no_error(captured: Captured, file: MemoryFile, filename: str | None) -> None:
    """Raise ParseError where Triton reported an error in the text and went on all the same.

    What other threads write to stderr meanwhile is captured too.
    """
    errors = [one for one in captured.diagnostics if one.severity == "error"]
    if filename is None:
        errors = [one for one in errors if one.location and one.location.file == file.path]
    if errors:
        shown = [_shown(one, file.path, filename, file.read()) for one in errors]
        raise ParseError("\n".join(shown))


def _shown(diagnostic: Diagnostic, path: str, filename: str | None, text: str) -> str:
    place = diagnostic.location
    if filename is not None or place is None or place.file != path:
        return diagnostic.format().replace(path, filename or "module")
    line = text.split("\n")[place.line - 1].strip()
    return f"{replace(diagnostic, location=None).format()}\n  in: {line[:_LINE_LENGTH]}"


def generic_text(module: TritonModule) -> str:
    """Generic form of a Triton module, locations included; the module is left as it was.

    libtriton cannot be asked for it, but MLIR prints a module that does not verify in generic
    form, and a second block in the module's region makes it so. The block is taken out again.
    """
    native = cast("Any", module)
    region = native.get_operation().get_region(0)
    block = triton_ir.builder(module.context).create_block_with_parent(region, [])
    try:
        text = module.str()
    finally:
        block.erase()
    # No other line begins with a label: the blocks of operations inside are indented.
    generic = text.replace(_EXTRA_BLOCK, "\n", 1)
    if len(generic) == len(text):
        raise RuntimeError("libtriton did not print the module in generic form")
    return generic


def operation_names(module: TritonModule) -> set[str]:
    """The names of all operations of a module; costs about 1 us per operation."""
    names: set[str] = set()
    module.walk(lambda operation: names.add(operation.get_name()))
    return names


def _with_spelling_note(message: str, text: str) -> ParseError:
    try:
        check_spelling(text, triton_version().version)
    except TensorDescSpellingError as error:
        return TensorDescSpellingError(f"{message}\nnote: {error}")
    return ParseError(message)
