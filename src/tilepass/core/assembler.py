"""What the assembler said of a kernel that a pass has rewritten."""

from __future__ import annotations

import re
from dataclasses import dataclass

_SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
# `(C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to ...`
_SERIALIZED = re.compile(
    r"\((C\d+)\).*?instructions are serialized due to (.*?)(?: in function|$)", re.M
)


@dataclass(frozen=True)
class AssemblerLog:
    """Spills in bytes per thread, summed over all functions; `serialized` says, once for each code,
    why wgmma instructions do not run asynchronously."""

    spill_store_bytes: int
    spill_load_bytes: int
    serialized: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> AssemblerLog:
        """Read what `ptxas -v` printed."""
        spills = [(int(stores), int(loads)) for stores, loads in _SPILLS.findall(text)]
        reasons = dict.fromkeys(f"{code}: {why.strip()}" for code, why in _SERIALIZED.findall(text))
        return cls(
            sum(stores for stores, _ in spills), sum(loads for _, loads in spills), tuple(reasons)
        )
