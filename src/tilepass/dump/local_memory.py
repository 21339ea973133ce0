"""Accesses to local memory in SASS, for binaries whose assembler cannot be asked for its spills."""

from __future__ import annotations

import re

from tilepass.dump.ptxas import PtxasReport

# `STL.64 [R1+0x8], R4 ;`; without a width it is 32 bits.
_ACCESS = re.compile(r"\b(LDL|STL)((?:\.\w+)*)\s")
_BYTES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}


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
