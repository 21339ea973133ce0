"""What a pass is, and what it is given to run with."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from tilepass.core.anchor import Anchor
from tilepass.core.assembler import AssemblerLog
from tilepass.core.decisions import (
    Choice,
    Decision,
    Fact,
    ProfileLookup,
    decide,
    no_profile,
)
from tilepass.core.errors import TilepassError
from tilepass.core.pipeline_spec import spell_value
from tilepass.core.remarks import RemarkSink

if TYPE_CHECKING:
    from tilepass.ir.engine import Module

__all__ = [
    "Anchor",
    "BinaryFigures",
    "CompilerVersion",
    "NoOptions",
    "Pass",
    "PassContext",
    "Target",
]


@dataclass(frozen=True)
class Target:
    """The GPU compiled for: `arch` is 90 for sm_90, "gfx942" on AMD; warp size in lanes."""

    backend: Literal["cuda", "hip"]
    arch: int | str
    warp_size: int = 32

    @classmethod
    def parse(cls, text: str, origin: str = "target") -> Target:
        """Read `cuda:90` or `hip:gfx942`. Raises TilepassError, which names `origin`."""
        backend, _, arch = text.partition(":")
        if backend == "cuda" and re.fullmatch(r"[0-9]+", arch):
            return cls("cuda", int(arch), 32)
        if backend == "hip" and re.fullmatch(r"gfx\w+", arch):
            # Wavefronts are 64 lanes wide up to CDNA (gfx9), 32 on RDNA (gfx10 and later).
            return cls("hip", arch, 64 if arch.startswith("gfx9") else 32)
        raise TilepassError(
            f"{origin} '{text}': expected cuda:NUMBER (cuda:90) or hip:gfxNAME (hip:gfx942)"
        )

    def __str__(self) -> str:
        return f"{self.backend}:{self.arch}"


@dataclass(frozen=True, order=True)
class CompilerVersion:
    """The compiler that a pass runs in, e.g. `("triton", (3, 6, 0))`."""

    name: str
    version: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.name} {'.'.join(map(str, self.version))}"


@dataclass(frozen=True)
class BinaryFigures:
    """What a trial compilation of a module led to, read without running it.

    `registers` and `stack_bytes` are per thread, of the kernel that has most; the counts are sums
    over all kernels of the module: `local_loads` and `local_stores` are instructions on local
    memory (LDL, STL: spills and arrays that are not in registers), `mma_count` the `mma.sync` of
    the PTX. `sass` is nvdisasm's listing with the encoding of each instruction, whose control bits
    hold its issue stalls.
    """

    registers: int
    stack_bytes: int
    local_loads: int
    local_stores: int
    mma_count: int
    sass: str
    ptx: str


@dataclass
class PassContext:
    """What a pass may know and use besides the module.

    `target` is None where neither the command line nor the module names one; `compile_options`
    are the compiler's own (num_warps, num_stages, ...), empty when a file is processed.

    Two ways to see what the compiler would make of a module, which stays as it is. None where the
    compiler offers none (Triton):
    `lower` gives a lowered copy for analysis; its operations keep their locations, and live only
    as long as the copy is held.
    `trial` compiles a copy to a binary and returns its figures.
    Both raise TilepassError where the compiler does not take the module.
    """

    pass_name: str
    compiler: CompilerVersion
    remarks: RemarkSink
    target: Target | None = None
    compile_options: Mapping[str, object] = field(default_factory=dict[str, object])
    profile: ProfileLookup = no_profile
    decisions: list[Decision] = field(default_factory=list[Decision])
    lower: Callable[[Module], Module] | None = None
    trial: Callable[[Module], BinaryFigures] | None = None

    def decide(
        self,
        kind: str,
        where: object,
        facts: Mapping[str, Fact],
        *,
        forced: str | None = None,
        model: Callable[[Mapping[str, Fact]], Choice | None],
        default: Choice,
    ) -> Decision:
        """Decide and record: forced > profile > cost model > default (see core.decisions)."""
        decision = decide(
            kind,
            facts,
            forced=forced,
            model=model,
            default=default,
            profile=self.profile,
            location=self.remarks.locate(where),
        )
        self.decisions.append(decision)
        return decision


@dataclass(frozen=True)
class NoOptions:
    """The options of a pass that has none."""


class Pass(ABC):
    """A compiler pass. Subclasses set `name`, `anchor`, `touches`, and `Options` if they have any.

    `touches` names operations (`"tt.dot"`): a module whose text holds none of them is not even
    parsed. An empty tuple means every module. A pass that touches operations stays in the compiler
    that its `anchor` is in, wherever a pipeline places it.

    A pass that is not `movable` stays at its anchor: what it rests on may not hold elsewhere.
    """

    name: ClassVar[str]
    anchor: ClassVar[Anchor]
    touches: ClassVar[tuple[str, ...]] = ()
    movable: ClassVar[bool] = True
    Options: ClassVar[type[Any]] = NoOptions

    def __init__(self, options: Any = None) -> None:
        self.options: Any = self.Options() if options is None else options

    @abstractmethod
    def run(self, module: Module, context: PassContext) -> None:
        """Inspect and rewrite `module` in place."""

    def assembled(self, log: AssemblerLog, context: PassContext) -> None:
        """Look at what the assembler said of a kernel, with the context that `run` had for it.

        Only where a pass overrides this is the log kept.
        """
        del log, context

    def __str__(self) -> str:
        """The pass in pipeline syntax, with every option spelled out."""
        options = ",".join(
            f"{option.name.replace('_', '-')}="
            + spell_value(spell(getattr(self.options, option.name)))
            for option in fields(self.options)
        )
        return f"{self.name}{{{options}}}" if options else self.name


def spell(value: object) -> str:
    """An option value as text, as `build_options` reads it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
