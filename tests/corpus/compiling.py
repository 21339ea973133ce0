"""Compiling an entry stage by stage, without a GPU and without Triton's cache."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from triton.compiler import ASTSource
from triton.compiler.compiler import make_backend
from triton.experimental.gluon._runtime import GluonASTSource

from tilepass.frontends.triton.modules import triton_ir

from .entries import Entry


def source_of(entry: Entry) -> Any:
    """The entry as a source for Triton's compiler."""
    make = GluonASTSource if entry.gluon else ASTSource
    return make(entry.kernel, entry.signature, dict(entry.constants), entry.attributes)


def run_stages(entry: Entry, last: str) -> Iterator[tuple[str, Any]]:
    """(`source`, module), then each stage's name and result, up to and including `last`.

    Results are Triton modules up to the last IR stage, LLVM modules, texts, and bytes after it.
    The caller may send a module back, with which the next stage then starts.
    """
    source, backend = source_of(entry), make_backend(entry.target)
    options = backend.parse_options({**entry.options, **source.parse_options()})
    stages: dict[str, Any] = {}
    backend.add_stages(stages, options, source.language)
    context = triton_ir.context()
    triton_ir.load_dialects(context)
    backend.load_dialects(context)
    module = source.make_ir(
        entry.target,
        options,
        backend.get_codegen_implementation(options),
        backend.get_module_map(),
        context,
    )
    # A module outlives this function's frame, its context must too.
    module.context = context
    metadata: dict[str, Any] = {"hash": "", "target": entry.target, **vars(options)}
    yield "source", module
    names = list(stages)
    for name in names[names.index(source.ext) : names.index(last) + 1]:
        module = stages[name](module, metadata)
        yield name, module
