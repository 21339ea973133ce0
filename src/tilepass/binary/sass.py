"""Machine code as text: SASS by the nvdisasm of Triton's wheel, AMD's assembly as compiled."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from tilepass.binary.artifacts import Artifacts
from tilepass.binary.tools import Tools, as_file, run_tool
from tilepass.core.errors import TilepassError

# `/*0150*/  @!P0 BRA ...`: address, an optional guard predicate, the operation.
_SASS = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:\{\s*)?(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)", re.M)
_RESOURCES = re.compile(r"Function (\S+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+)")
_AMD = re.compile(r"^\s+((?:v|s|ds|buffer|global|scratch|flat)_\w+)", re.M)


def listing(artifacts: Artifacts) -> str:
    """The code of a kernel with source lines where the binary has them.

    Triton's wheel holds no disassembler for AMD: there the assembly from which the binary was
    made is the listing. Raises TilepassError where neither is to be had.
    """
    if artifacts.is_nvidia:
        return sass(artifacts.binary, artifacts.nvidia_tools())
    if "amdgcn" in artifacts.texts:
        return artifacts.texts["amdgcn"]
    raise TilepassError(
        f"kernel '{artifacts.name}': Triton's wheel cannot disassemble a {artifacts.binary_stage} "
        "and its assembly was not kept"
    )


def sass(cubin: bytes, tools: Tools) -> str:
    """SASS of all functions of a cubin, with `//## File` lines. Raises TilepassError."""
    with as_file(cubin, ".cubin") as path:
        return run_tool([tools.nvdisasm, "--print-code", "-g", path]).stdout


def resources(cubin: bytes, tools: Tools) -> Mapping[str, tuple[int, int, int]]:
    """Registers, stack and static shared bytes of each function. Raises TilepassError."""
    with as_file(cubin, ".cubin") as path:
        text = run_tool([tools.cuobjdump, "--dump-resource-usage", path]).stdout
    return {name: (int(r), int(k), int(s)) for name, r, k, s in _RESOURCES.findall(text)}


def count_instructions(code: str, nvidia: bool) -> Mapping[str, int]:
    """Instruction counts by operation without its modifiers: `HGMMA`, `UTMALDG`, `LDSM`, or on AMD
    `v_mfma_f32_16x16x16_f16`."""
    pattern = _SASS if nvidia else _AMD
    counts = Counter(pattern.findall(code))
    return dict(sorted(counts.items()))
