"""The bridge between Triton's modules and the IR engine's: generic text both ways."""

from __future__ import annotations

import os
import tempfile
from typing import Any

from triton._C.libtriton import ir as triton_ir

from tilepass.core.errors import ParseError
from tilepass.ir import engine

# Not a legal name (no dialect prefix): a module that carries it does not verify, and MLIR prints
# modules that do not verify in generic form. libtriton offers no other way to ask for it.
_STAMP = "tilepass_generic"


def generic_text(module: Any) -> str:
    """Generic form of a Triton module. The module keeps the stamp: continue with a reparsed one."""
    module.set_attr(_STAMP, triton_ir.builder(module.context).get_unit_attr())
    text: str = module.str()
    return text.replace(f"{_STAMP}, ", "", 1).replace(f", {_STAMP}", "", 1).replace(
        f"{{{_STAMP}}}", "{}", 1
    )


def parse_triton(text: str, context: Any) -> Any:
    """A Triton module from text in either form. Raises ParseError."""
    with tempfile.NamedTemporaryFile("w", suffix=".mlir", delete=False) as file:
        file.write(text)
    try:
        module = triton_ir.parse_mlir_module(file.name, context)
    except RuntimeError as error:
        raise ParseError(str(error)) from error
    finally:
        os.unlink(file.name)
    module.context = context
    return module


def to_engine(module: Any) -> engine.Module:
    """The module in the IR engine; the Triton module must not be used afterwards."""
    return engine.parse(generic_text(module))


def from_engine(module: engine.Module, context: Any) -> Any:
    """The module back in Triton's context."""
    return parse_triton(engine.print_generic(module), context)
