"""What ptxas says of a kernel: registers, spills, and what it could not do well."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilepass.binary.tools import Tools, as_file, run_tool
from tilepass.core.assembler import AssemblerLog
from tilepass.core.errors import TilepassError

_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_USED = re.compile(r"Used (\d+) registers")
# `(C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to ...`
_MESSAGE = re.compile(r"^ptxas\S* (?:info|warning)\s*: (.*(?:\(C\d+\)|Performance Loss).*)$", re.M)
_WARNING = re.compile(r"^ptxas\S* warning\s*: (.*)$", re.M)

# `STL.64 [R1+0x8], R4 ;`; without a width it is 32 bits.
_ACCESS = re.compile(r"\b(LDL|STL)((?:\.\w+)*)\s")
_BYTES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}


@dataclass(frozen=True)
class PtxasReport:
    """Figures of one run of `ptxas -v`. Spills and stack are in bytes per thread, summed over the
    entry and the functions that it calls; `messages` are warnings and performance notes."""

    entry: str
    registers: int
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    messages: tuple[str, ...]
    cubin: bytes = b""

    @property
    def serialized(self) -> bool:
        """Whether ptxas gave up running wgmma instructions asynchronously (C7510 and its like)."""
        return any("serialized" in message for message in self.messages)


def run_ptxas(ptx: str, tools: Tools, metadata: Mapping[str, Any]) -> PtxasReport:
    """Assemble `ptx` as Triton did with the options in its metadata.

    Registers may be numbered otherwise than in Triton's own binary: for some inputs ptxas itself
    gives different code from run to run. Raises TilepassError where ptxas fails.
    """
    descriptor, output = tempfile.mkstemp(suffix=".cubin", prefix="tilepass-")
    os.close(descriptor)
    try:
        with as_file(ptx.encode(), ".ptx") as source:
            command = [tools.ptxas, *_options(metadata), "-v"]
            log = run_tool([*command, f"--gpu-name={tools.gpu_name}", source, "-o", output])
        cubin = Path(output).read_bytes()
    finally:
        os.unlink(output)
    return parse_log(log.stderr, cubin)


def parse_log(log: str, cubin: bytes = b"") -> PtxasReport:
    """Read what `ptxas -v` printed. Raises TilepassError where it is not such a log."""
    entries, used = _ENTRY.findall(log), _USED.findall(log)
    if not entries or not used:
        raise TilepassError(f"ptxas printed no figures:\n{log.strip()}")
    summed = AssemblerLog.parse(log)
    messages = dict.fromkeys(_MESSAGE.findall(log) + _WARNING.findall(log))
    return PtxasReport(
        entries[-1],
        int(used[-1]),
        summed.stack_bytes,
        summed.spill_store_bytes,
        summed.spill_load_bytes,
        tuple(messages),
        cubin,
    )


def _options(metadata: Mapping[str, Any]) -> list[str]:
    """The flags of Triton's make_cubin (backends/nvidia/compiler.py) for these options."""
    options = ["-lineinfo"]
    if metadata.get("enable_fp_fusion") is False:
        options.append("--fmad=false")
    if extra := metadata.get("ptx_options"):
        options += str(extra).split()
    return options


def read_listing(code: str, cubin: bytes) -> PtxasReport:
    """What a listing tells of local memory, as a report of the assembler that made `cubin`.

    Spills and arrays in local memory look alike: bytes of both are counted. Registers and stack
    are not in a listing, and 0.
    """
    moved = {"LDL": 0, "STL": 0}
    for name, modifiers in _ACCESS.findall(code):
        widths = [_BYTES[part] for part in modifiers.split(".") if part in _BYTES]
        moved[name] += widths[0] if widths else 4
    return PtxasReport("", 0, 0, moved["STL"], moved["LDL"], (), cubin)
