"""Typed views of the types of Triton's dialects."""

from __future__ import annotations

import re

# Triton 3.8 dropped the `tensor<...>` inside `!tt.tensordesc<...>`.
_FLAT_SPELLING_SINCE = (3, 8)
_WRAPPED = re.compile(r"!tt\.tensordesc(_im2col)?<tensor<")
_FLAT = re.compile(r"!tt\.tensordesc(_im2col)?<\d")


def spelling_hint(text: str, triton_version: tuple[int, ...]) -> str:
    """A note to append to a parse error when `text` spells tensordesc as other Tritons do."""
    wants_flat = triton_version >= _FLAT_SPELLING_SINCE
    if not (_WRAPPED if wants_flat else _FLAT).search(text):
        return ""
    spellings = {
        False: "!tt.tensordesc<tensor<128x64xbf16>> (Triton 3.6 and 3.7)",
        True: "!tt.tensordesc<128x64xbf16> (Triton 3.8 and 3.9)",
    }
    installed = ".".join(map(str, triton_version))
    return (
        f"\nnote: the text has the tensor descriptor spelling {spellings[not wants_flat]}; "
        f"the installed Triton {installed} wants {spellings[wants_flat]}"
    )
