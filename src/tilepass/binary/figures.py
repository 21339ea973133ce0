"""The static figures of a compiled kernel: registers, spills, shared memory, instruction counts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tilepass.binary.artifacts import Artifacts, CompiledKernel, artifacts_of, read_artifacts
from tilepass.binary.elf import code_hash
from tilepass.binary.ptxas import read_listing, run_ptxas
from tilepass.binary.register_hazards import find_register_hazards
from tilepass.binary.sass import count_instructions, listing, resources
from tilepass.core.errors import TilepassError

# Families that the summary shows: title -> operations that belong to it. sm_90's warp-group MMAs
# are HGMMA (16 bit), QGMMA (fp8), IGMMA; sm_100's are UTCHMMA, UTCQMMA, UTCOMMA, ...
_FAMILIES: Mapping[str, re.Pattern[str]] = {
    title: re.compile(pattern)
    for title, pattern in (
        ("HGMMA", r"HGMMA"),
        ("QGMMA", r"QGMMA"),
        ("IGMMA", r"[IB]GMMA"),
        ("HMMA", r"HMMA"),
        ("QMMA", r"[QO]MMA"),
        ("IMMA", r"[IBD]MMA"),
        ("UTCMMA", r"UTC\w*MMA"),
        ("MFMA", r"v_s?mfma\w*|v_s?wmma\w*"),
        ("UTMA", r"UTMA\w+"),
        ("BAR", r"BAR|s_barrier\w*"),
        ("LDSM", r"LDSM"),
        ("STSM", r"STSM"),
        ("LDGSTS", r"LDGSTS"),
        ("SYNCS", r"SYNCS"),
    )
}
_ALWAYS_SHOWN = ("HGMMA", "HMMA", "QGMMA", "UTMA", "BAR", "LDSM")
_AMD_FIELD = re.compile(r"^\s+(?:- )?\.(\w+):\s+(\d+)$", re.M)
# LLVM says so at each: the instructions themselves differ from one architecture to the next.
_AMD_SPILL = re.compile(r"; (\d+)-byte Folded (Spill|Reload)$", re.M)


# Line tables, and the labels and comments that they bring along.
_DEBUG_LINE = re.compile(r"^(?:\s*\.(?:loc|file)\b.*|\s*(?:\$L__|\.L)tmp\d+:.*|\s*//.*)\n", re.M)


@dataclass(frozen=True)
class KernelFigures:
    """What can be said of a kernel without running it.

    `registers` per thread; `stack_bytes` and the spills in bytes per thread (spills: the sum over
    the spilling instructions, as ptxas counts; of a kernel of the CuTe DSL over all instructions
    on local memory, those on arrays included); `static_shared_bytes` is in the binary,
    `shared_bytes` what a launch asks for on top (both per CTA; None where the metadata is not
    there). `instructions` counts operations without modifiers. `ptxas_messages` are ptxas's
    warnings and performance notes. `register_hazards` counts registers that are overwritten in a
    loop while an unfinished wgmma may read them (`find_register_hazards`). `exact` is False where
    assembling the PTX again gave other code than the binary's: spills and messages then describe
    that other code. `binary_hash`, `code_hash` (executable sections only) and `assembly_hash` (PTX
    or AMD assembly without line tables) are sha256 in hex. ptxas is not deterministic: one PTX can
    give binaries that differ in register numbers, so different programs show in `assembly_hash`,
    not in the other two.
    """

    name: str
    target: str
    registers: int
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    static_shared_bytes: int
    shared_bytes: int | None
    instructions: Mapping[str, int]
    ptxas_messages: tuple[str, ...]
    binary_hash: str
    code_hash: str
    assembly_hash: str
    register_hazards: int = 0
    exact: bool = True

    @property
    def serialized(self) -> bool:
        """Whether ptxas runs asynchronous MMAs one by one (its C7510 family of notes)."""
        return any("serialized" in message for message in self.ptxas_messages)

    @property
    def families(self) -> Mapping[str, int]:
        """Counts by family (HGMMA, HMMA, QGMMA, UTCMMA, MFMA, UTMA, BAR, LDSM, ...), zeros too."""
        return {title: self.count(pattern) for title, pattern in _FAMILIES.items()}

    def count(self, pattern: str | re.Pattern[str]) -> int:
        """How many instructions have an operation that matches the whole of `pattern`."""
        return sum(n for name, n in self.instructions.items() if re.fullmatch(pattern, name))

    def summary(self) -> str:
        """One line: `mm (cuda:90): 154 registers, spills 0/0 B, ..., HGMMA 16, UTMA 9, ...`."""
        counts = ", ".join(
            f"{title} {count}"
            for title, count in self.families.items()
            if count or (title in _ALWAYS_SHOWN and self.target.startswith("cuda"))
        )
        shared = self.static_shared_bytes + (self.shared_bytes or 0)
        line = (
            f"{self.name} ({self.target}): {self.registers} registers, "
            f"spills {self.spill_store_bytes}/{self.spill_load_bytes} B, "
            f"stack {self.stack_bytes} B, shared {shared} B"
        )
        line += f"; {counts}" if counts else ""
        if self.register_hazards:
            line += f"; {self.register_hazards} wgmma operand registers OVERWRITTEN while in flight"
        return line + ("; MMAs SERIALIZED by ptxas" if self.serialized else "")

    def to_dict(self) -> dict[str, Any]:
        """A dictionary that json can write."""
        return {**asdict(self), "families": dict(self.families), "serialized": self.serialized}


def kernel_figures(kernel: CompiledKernel | Artifacts | Path) -> KernelFigures:
    """Figures of what `triton.compile` returned, or of a `.cubin`/`.hsaco` with its neighbours.

    Takes 0.5 s or more: the tools of Triton's wheel disassemble the binary and assemble its PTX
    again (for spills, which the binary does not tell; not what CuTe compiled, whose assembler is
    another one). Raises TilepassError where they fail or the
    PTX is missing.
    """
    if isinstance(kernel, Path):
        artifacts = read_artifacts(kernel)
    else:
        artifacts = kernel if isinstance(kernel, Artifacts) else artifacts_of(kernel)
    return _nvidia(artifacts) if artifacts.is_nvidia else _amd(artifacts)


def _nvidia(kernel: Artifacts) -> KernelFigures:
    if "ptx" not in kernel.texts:
        raise TilepassError(f"kernel '{kernel.name}': its PTX is needed to find its spills")
    registers, stack, shared = _resources(kernel)
    code = listing(kernel)
    if kernel.compiled_by == "cute":
        report = read_listing(code, kernel.binary)
    else:
        report = run_ptxas(kernel.texts["ptx"], kernel.nvidia_tools(), kernel.metadata)
    return KernelFigures(
        name=kernel.name,
        target=_target(kernel),
        registers=registers,
        stack_bytes=stack,
        spill_store_bytes=report.spill_store_bytes,
        spill_load_bytes=report.spill_load_bytes,
        static_shared_bytes=shared,
        shared_bytes=kernel.metadata.get("shared"),
        instructions=count_instructions(code, nvidia=True),
        ptxas_messages=report.messages,
        binary_hash=hashlib.sha256(kernel.binary).hexdigest(),
        code_hash=code_hash(kernel.binary),
        assembly_hash=_assembly_hash(kernel.texts["ptx"]),
        register_hazards=len({hazard.register for hazard in find_register_hazards(code)}),
        exact=code_hash(report.cubin) == code_hash(kernel.binary),
    )


def _resources(kernel: Artifacts) -> tuple[int, int, int]:
    """Registers, stack bytes, static shared bytes of the entry, from the binary itself.

    Where the artifacts are those of several kernels (CuTe), of the kernel that has most of each.
    """
    found = resources(kernel.binary, kernel.nvidia_tools())
    if kernel.compiled_by == "cute" and kernel.name not in found and found:
        registers, stack, shared = map(max, zip(*found.values(), strict=True))
        return registers, stack, shared
    if kernel.name not in found:
        raise TilepassError(
            f"kernel '{kernel.name}': cuobjdump knows only {', '.join(found) or 'nothing'}"
        )
    return found[kernel.name]


def _amd(kernel: Artifacts) -> KernelFigures:
    code = listing(kernel)
    head, _, described = code.partition(".amdgpu_metadata")
    fields = {name: int(value) for name, value in _AMD_FIELD.findall(described)}
    spills = {"Spill": 0, "Reload": 0}
    for size, direction in _AMD_SPILL.findall(head):
        spills[direction] += int(size)
    return KernelFigures(
        name=kernel.name,
        target=_target(kernel),
        registers=fields["vgpr_count"],
        stack_bytes=fields["private_segment_fixed_size"],
        spill_store_bytes=spills["Spill"],
        spill_load_bytes=spills["Reload"],
        static_shared_bytes=fields["group_segment_fixed_size"],
        shared_bytes=kernel.metadata.get("shared"),
        instructions=count_instructions(head, nvidia=False),
        ptxas_messages=(),
        binary_hash=hashlib.sha256(kernel.binary).hexdigest(),
        code_hash=code_hash(kernel.binary),
        assembly_hash=_assembly_hash(code),
    )


def _target(kernel: Artifacts) -> str:
    backend, arch = kernel.target
    return f"{backend}:{arch}"


def _assembly_hash(text: str) -> str:
    """sha256 of PTX or AMD assembly without line tables and debug sections."""
    instructions = _DEBUG_LINE.sub("", text.partition("\t.section\t.debug_")[0])
    return hashlib.sha256(instructions.encode()).hexdigest()
