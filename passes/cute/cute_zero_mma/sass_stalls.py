"""Issue stalls, read from the control bits of SASS."""

from __future__ import annotations

import re

# nvdisasm prints an instruction of 128 bits as two lines, each with 64 of its bits.
_WORDS = re.compile(r"/\* 0x([0-9a-f]{16}) \*/")
# Bits 105 to 108 of an instruction, from Volta on (Jia et al. 2018, "Dissecting the NVIDIA Volta
# GPU architecture via microbenchmarking", section 2.1).
_STALL_SHIFT = 105 - 64
_STALL_MASK = 0xF


def issue_stalls(sass: str) -> int:
    """The sum over all instructions of the cycles for which a warp's issue waits after them."""
    words = [int(word, 16) for word in _WORDS.findall(sass)]
    return sum(word >> _STALL_SHIFT & _STALL_MASK for word in words[1::2])
