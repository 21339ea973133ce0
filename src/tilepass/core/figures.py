"""What can be said of a compiled kernel without running it, and which of two is the worse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class StaticFigures:
    """Figures of the kernel that a module is compiled to.

    Registers, stack and spills are per thread, the latter in bytes; shared memory in bytes per
    CTA. `serialized` says, once for each of ptxas's codes, why wgmma instructions do not run
    asynchronously. `milliseconds` is what compiling took; where `cached`, that was earlier.
    """

    registers: int
    stack_bytes: int = 0
    shared_bytes: int = 0
    spill_store_bytes: int = 0
    spill_load_bytes: int = 0
    serialized: tuple[str, ...] = ()
    milliseconds: int = field(default=0, compare=False)
    cached: bool = field(default=False, compare=False)

    @property
    def cost(self) -> str:
        """`840 ms` or `840 ms, cached`."""
        return f"{self.milliseconds} ms" + (", cached" if self.cached else "")

    @property
    def spill_bytes(self) -> int:
        """Stores and loads together."""
        return self.spill_store_bytes + self.spill_load_bytes

    def drawback(self, source: StaticFigures) -> str:
        """What speaks against this kernel where `source` is another form of it; empty if nothing
        does."""
        found: list[str] = []
        if self.serialized and not source.serialized:
            found.append(f"ptxas runs its dots one after the other ({self.serialized[0]})")
        if self.spill_bytes > source.spill_bytes:
            found.append(f"it spills {self.spills}, the source's form {source.spills}")
        return "; ".join(found)

    @property
    def suspicious(self) -> bool:
        """Whether another form of the kernel may be better: without this none has a drawback."""
        return bool(self.serialized or self.spill_bytes)

    @property
    def spills(self) -> str:
        """`96 bytes a thread and loads 104`."""
        return f"{self.spill_store_bytes} bytes a thread and loads {self.spill_load_bytes}"

    def __str__(self) -> str:
        return (
            f"{self.registers} registers, spills {self.spill_store_bytes}/{self.spill_load_bytes}"
            f" bytes, {self.shared_bytes} bytes of shared memory"
        ) + (f", serialized: {'; '.join(self.serialized)}" if self.serialized else "")


@dataclass(frozen=True, kw_only=True)
class BinaryFigures(StaticFigures):
    """Those that a CuTe module's binary holds, and its text.

    Registers and stack are those of the kernel that has most, the counts sums over all kernels of
    the module: `local_loads` and `local_stores` are instructions on local memory (LDL, STL: spills
    and arrays that are not in registers), `mma_count` the `mma.sync` of the PTX. `sass` is
    nvdisasm's listing with the encoding of each instruction, whose control bits hold its issue
    stalls.
    """

    local_loads: int
    local_stores: int
    mma_count: int
    sass: str
    ptx: str


@dataclass(frozen=True)
class Trial:
    """The trial compilation of one form of a kernel: its figures, or why there are none."""

    form: str
    figures: StaticFigures | None
    failure: str = ""

    @property
    def cost(self) -> str:
        """`840 ms` or `840 ms, cached`; empty where there are no figures."""
        return self.figures.cost if self.figures else ""

    def drawback(self, source: Trial | None, limit: int | None) -> str:
        """What speaks against this form; `source` is the trial of the source's, None while that
        has not been compiled, `limit` the target's shared memory in bytes."""
        if self.figures is None:
            return f"it does not compile ({self.failure})"
        if limit is not None and self.figures.shared_bytes > limit:
            return f"it takes {self.figures.shared_bytes} bytes of shared memory of {limit}"
        if source is None or source.figures is None:
            return ""
        return self.figures.drawback(source.figures)

    def __str__(self) -> str:
        return (
            f"{self.form}: {self.figures} ({self.cost})"
            if self.figures
            else (f"{self.form}: {self.failure}")
        )


def trial_of(fields: Mapping[str, Any]) -> Trial:
    """The trial of which `asdict` made the fields, also after a way through JSON."""
    figures = fields["figures"]
    if figures is not None:
        kind = BinaryFigures if "ptx" in figures else StaticFigures
        made: dict[str, Any] = {**figures, "serialized": tuple(figures["serialized"])}
        figures = kind(**made)
    return Trial(fields["form"], figures, fields["failure"])
