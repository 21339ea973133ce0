"""A kernel as `triton.compile` takes it: what a launch would find out from real arguments."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from triton.compiler import ASTSource


def ast_source(
    function: Any,
    arguments: Mapping[str, str | None],
    constants: Mapping[str, object],
    aligned: Collection[str] = (),
) -> ASTSource:
    """The source of a jitted function with typed arguments.

    `arguments` maps run-time arguments to Triton's signature types (`"*bf16"`, `"i32"`,
    `"tensordesc<bf16[128,64]>"`); None is an argument that the variant does not use, as when None
    is passed to a launch. `aligned` names those divisible by 16, pointers included.
    """
    absent = {name: None for name, kind in arguments.items() if kind is None}
    types = {name: kind for name, kind in arguments.items() if kind is not None}
    signature = {name: types.get(name, "constexpr") for name in function.arg_names}
    attributes = {
        (function.arg_names.index(name),): [["tt.divisibility", 16]]
        for name in aligned
        if name in types
    }
    return ASTSource(function, signature, constexprs={**absent, **constants}, attrs=attributes)
