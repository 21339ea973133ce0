"""The IR engine: real MLIR through the Python bindings that nvidia-cutlass-dsl ships.

The only module that names the bindings. Triton IR enters in generic form, its dialects
unregistered; attributes and types of those dialects are opaque texts (see ir.layouts for views).
"""

from __future__ import annotations

import io
import re
import sys
import threading
from types import ModuleType
from typing import Any

from tilepass.core.diagnostics import Diagnostic, SourceLocation
from tilepass.core.errors import ParseError
from tilepass.core.versions import CUTE, cute_version, importing
from tilepass.ir.aliases import expand_aliases
from tilepass.ir.light_import import without_package_init
from tilepass.ir.memory_file import MemoryFile

# What Triton's IR is made of: dialects that the bindings know, and those that they do not.
_DIALECTS = ("builtin", "func", "arith", "math", "scf", "cf", "ub", "llvm")
_TRITON_DIALECTS = ("tt", "ttg", "ttng", "amdg")


def _load_dialects() -> None:
    """Let the bindings load the dialects' Python modules while `cutlass` itself is held back.

    When they first look at an operation of a dialect, they import its module and `cutlass` with it,
    and then never again. That would bring the DSL along: 0.4 s, and for each value that is looked
    at a constructor in Python, which is half of the time of a pass. Where a dialect has no module
    they search the disk each time; an empty one answers at once.
    """
    # The module of llvm needs what this adds; the package's `__init__` begins with it too.
    _cutlass_ir.populate(_cutlass_ir)
    for dialect in _TRITON_DIALECTS:
        name = f"{ir.__name__.rpartition('.')[0]}.dialects.{dialect}"
        sys.modules.setdefault(name, ModuleType(name))
    context = ir.Context()
    context.allow_unregistered_dialects = True
    for dialect in _DIALECTS:
        context.dialects[dialect]
    text = "\n".join(f'"{dialect}.any"() : () -> ()' for dialect in _TRITON_DIALECTS)
    for view in ir.Module.parse(text, context).body:
        # The first walk imports `cutlass` as well.
        view.operation.walk(lambda _: ir.WalkResult.ADVANCE, ir.WalkOrder.PRE_ORDER)


cute_version()
with importing(CUTE.distribution), without_package_init("cutlass"):
    from cutlass._mlir import ir, passmanager, rewrite
    from cutlass._mlir._mlir_libs import _cutlass_ir

    _load_dialects()

Module = ir.Module
Operation = ir.Operation

__all__ = [
    "Module",
    "Operation",
    "copied",
    "copied_at",
    "expand_aliases",
    "ir",
    "location_of",
    "new_context",
    "operation_names",
    "operations",
    "parse",
    "parse_expanded",
    "passmanager",
    "print_generic",
    "print_readable",
    "print_to",
    "rewrite",
    "shared_context",
    "verify",
]

# A context keeps every type, attribute and location for good. After this much text the next
# module gets its own context; the old one goes when its last module goes.
_CONTEXT_BUDGET = 8_000_000

# Taken at import: `ir.guards` replaces it by one that looks after what the callback raises.
_walk: Any = ir.Operation.walk

_FILE_LOCATION = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)')


class _PerThread(threading.local):
    """The context that a thread reuses (a new one costs 2 to 3 ms) and the characters read."""

    context: ir.Context | None = None
    read = 0


_per_thread = _PerThread()


def new_context() -> ir.Context:
    """A context in which operations of any dialect are allowed."""
    context = ir.Context()
    context.allow_unregistered_dialects = True
    # One thread pool per context would be made and torn down for modules of a few 100 operations.
    context.enable_multithreading(False)
    return context


def shared_context() -> ir.Context:
    """The calling thread's context."""
    if _per_thread.context is None or _per_thread.read > _CONTEXT_BUDGET:
        _per_thread.context, _per_thread.read = new_context(), 0
    return _per_thread.context


def parse(text: str, filename: str | None = None, context: ir.Context | None = None) -> Module:
    """Parse MLIR text in the thread's shared context, or in the one given.

    `filename` is what diagnostics name. Raises ParseError with the diagnostics.
    """
    return parse_expanded(expand_aliases(text), filename, context)


def parse_expanded(
    text: str, filename: str | None = None, context: ir.Context | None = None
) -> Module:
    """Parse text that holds no aliases but those of locations; else as `parse`."""
    _per_thread.read += len(text)
    try:
        return ir.Module.parse(text, context or shared_context())
    except ir.MLIRError as error:
        found = _diagnostics(error, filename)
        raise ParseError("\n".join(diagnostic.format() for diagnostic in found)) from error


def print_generic(module: Module) -> str:
    """Generic text of a module with locations."""
    with MemoryFile() as file:
        print_to(module, file)
        return file.read()


def print_readable(module: Module, *, locations: bool, generic: bool = False) -> str:
    """Text of a module that can be read back: pretty without locations unless `generic`.

    With locations it is always generic. In the pretty form of an operation that may end in an
    attribute, as `nvvm.barrier`, MLIR takes the location behind it for that attribute.
    """
    text: str = module.operation.get_asm(
        enable_debug_info=locations, print_generic_op_form=generic or locations
    )
    return text


def print_to(module: Module | Operation, file: MemoryFile) -> None:
    """Write the generic text of a module or operation, with locations, to a file."""
    # To a path the bindings print natively, else piece by piece through Python, four times slower.
    # Without `assume_verified` the printer verifies first, to choose a form that is given here.
    module.operation.print(
        file=file.path,
        binary=True,
        enable_debug_info=True,
        print_generic_op_form=True,
        assume_verified=True,
    )


def verify(module: Module) -> list[Diagnostic]:
    """The errors of the verifier; empty for a valid module."""
    try:
        module.operation.verify()
    except ir.MLIRError as error:
        return _diagnostics(error, None)
    return []


def copied(module: Module) -> Module:
    """A copy in the same context, with its locations."""
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return ir.Module.parse(buffer.getvalue(), module.context)


def copied_at(module: Module, operation: Operation) -> tuple[Module, Operation]:
    """A copy of a module, and the operation in it that one of the module has become."""
    copy = copied(module)
    return copy, operations(copy)[operations(module).index(operation)]


def operations(root: Module | ir.Operation | ir.OpView) -> list[Operation]:
    """`root` and all operations inside it, each before those in its regions.

    A list: the caller may erase what it finds.
    """
    if isinstance(root, ir.Operation) and not len(root.regions):
        # Most are; a walk is three times as long as the question.
        return [root]
    found: list[Operation] = []

    def visit(operation: Operation) -> ir.WalkResult:
        found.append(operation)
        return ir.WalkResult.ADVANCE

    _walk(root.operation, visit, ir.WalkOrder.PRE_ORDER)
    return found


def operation_names(module: Module) -> set[str]:
    """The names of all operations of a module."""
    return {operation.name for operation in operations(module)}


def location_of(operation: object) -> SourceLocation | None:
    """The innermost file, line and column in an operation's location, None if it has none."""
    return _location(str(getattr(operation, "location", operation)))


def _location(text: str) -> SourceLocation | None:
    match = _FILE_LOCATION.search(text)
    return SourceLocation(match[1], int(match[2]), int(match[3])) if match else None


def _diagnostics(error: Any, filename: str | None) -> list[Diagnostic]:
    """The diagnostics of an exception of the bindings, text parsed from memory named `filename`."""
    found = [_diagnostic(info, filename) for info in error.error_diagnostics]
    return found or [Diagnostic("error", str(error))]


def _diagnostic(info: Any, filename: str | None) -> Diagnostic:
    severity = str(info.severity).rpartition(".")[2].lower()
    location = _location(str(info.location))
    if location and filename and location.file == "-":
        location = SourceLocation(filename, location.line, location.column)
    notes = tuple(_diagnostic(note, filename) for note in info.notes)
    return Diagnostic(severity, info.message, location, notes)  # pyright: ignore[reportArgumentType]
