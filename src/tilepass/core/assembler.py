"""What the assembler said of a kernel that a pass has rewritten."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")
# `(C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to ...`
_SERIALIZED = re.compile(
    r"\((C\d+)\).*?instructions are serialized due to (.*?)(?: in function|$)", re.M
)


@dataclass(frozen=True)
class AssemblerLog:
    """Spills in bytes per thread, summed over all functions; `serialized` says, once for each code,
    why wgmma instructions do not run asynchronously. Two logs are equal where these are."""

    spill_store_bytes: int
    spill_load_bytes: int
    serialized: tuple[str, ...]
    registers: int = field(default=0, compare=False)
    stack_bytes: int = field(default=0, compare=False)

    @classmethod
    def parse(cls, text: str) -> AssemblerLog:
        """Read what `ptxas -v` printed."""
        functions = [tuple(map(int, found)) for found in _SPILLS.findall(text)]
        stack, stores, loads = (sum(column) for column in zip((0, 0, 0), *functions, strict=True))
        reasons = dict.fromkeys(f"{code}: {why.strip()}" for code, why in _SERIALIZED.findall(text))
        registers = max(map(int, _REGISTERS.findall(text)), default=0)
        return cls(stores, loads, tuple(reasons), registers, stack)
