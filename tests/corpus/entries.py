"""What to compile: a kernel, the types and constants of its arguments, a target, options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from triton.backends.compiler import GPUTarget

HOPPER = GPUTarget("cuda", 90, 32)
BLACKWELL = GPUTarget("cuda", 100, 32)
AMPERE = GPUTarget("cuda", 80, 32)
MI300 = GPUTarget("hip", "gfx942", 64)


@dataclass(frozen=True)
class Entry:
    """One compilation. `types` are those of the run-time arguments, in Triton's notation.

    Pointers are given a divisibility of 16, as 16-byte aligned tensors have it.
    """

    kernel: Any
    types: Mapping[str, Any]
    constants: Mapping[str, Any] = field(default_factory=dict[str, Any])
    target: GPUTarget = HOPPER
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    variant: str = ""
    since: tuple[int, int] = (3, 6)
    """The first Triton that compiles it."""
    before: tuple[int, int] = (9, 9)
    """The first Triton that no longer does."""
    gluon: bool = False

    @property
    def name(self) -> str:
        """Kernel, variant and target: `persistent_matmul-flat@90`."""
        variant = f"-{self.variant}" if self.variant else ""
        return f"{self.kernel.__name__}{variant}@{self.target.arch}"

    @property
    def signature(self) -> dict[str, str]:
        """The types of all arguments."""
        return {**self.types, **dict.fromkeys(self.constants, "constexpr")}

    @property
    def attributes(self) -> dict[tuple[int, ...], list[list[object]]]:
        """Divisibility by argument position."""
        names = list(self.kernel.arg_names)
        pointers = [name for name, type_ in self.types.items() if str(type_).startswith("*")]
        return {(names.index(name),): [["tt.divisibility", 16]] for name in pointers}


def pointers(element: str, *names: str) -> dict[str, str]:
    """Types of pointer arguments that share an element type."""
    return dict.fromkeys(names, f"*{element}")


def sizes(*names: str) -> dict[str, str]:
    """Types of 32-bit integer arguments."""
    return dict.fromkeys(names, "i32")


def all_entries() -> list[Entry]:
    """Every entry that the installed Triton has the features for."""
    import triton

    from . import (
        attention,
        control_flow,
        descriptors,
        elementwise,
        gluon_kernels,
        matmuls,
        memory,
        reductions,
    )

    installed = tuple(int(part) for part in triton.__version__.split(".")[:2])
    families = (
        matmuls,
        attention,
        reductions,
        memory,
        elementwise,
        control_flow,
        descriptors,
        gluon_kernels,
    )
    return [e for family in families for e in family.ENTRIES if e.since <= installed < e.before]
