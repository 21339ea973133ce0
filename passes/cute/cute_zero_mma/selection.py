"""The option `sites`: which gemms of a module a pass is to look at."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tilepass.core.errors import OptionError
from tilepass.core.refusal import Refusal
from tilepass.passes.cute.cute_zero_mma.sites import GemmSite

ALL = "all"


def selected(sites: Sequence[GemmSite | Refusal], text: str) -> dict[int, GemmSite | Refusal]:
    """The gemms that the option names, by their index: `all`, or words joined by `+`.

    A word is an index (`3`), a line (`:1021` or `file.py:1021`), or a part of the source statement
    (`tNewVrC`). Raises OptionError where a word names no gemm, and where there is no word.
    """
    if text == ALL:
        return dict(enumerate(sites))
    words = list(filter(None, re.split(r"[\s+]+", text)))
    if not words:
        raise OptionError(f"sites='{text}' names no gemm{_known(sites)}")
    chosen: set[int] = set()
    for word in words:
        found = {index for index, site in enumerate(sites) if _names(word, index, site)}
        if not found:
            raise OptionError(f"sites='{text}': no gemm matches '{word}'{_known(sites)}")
        chosen |= found
    return {index: sites[index] for index in sorted(chosen)}


def _names(word: str, index: int, site: GemmSite | Refusal) -> bool:
    """Whether one word of the option stands for a gemm."""
    if word.isdecimal():
        return index == int(word)
    if not isinstance(site, GemmSite):
        return False
    file, colon, line = word.rpartition(":")
    if colon and line.isdecimal():
        place = site.location
        return place is not None and place.line == int(line) and place.file.endswith(file)
    return word.lower() in site.text.lower()


def _known(sites: Sequence[GemmSite | Refusal]) -> str:
    if not sites:
        return ": the module has none"
    located = any(isinstance(site, GemmSite) and site.location for site in sites)
    hint = "" if located else " (without line information only indices name one)"
    return f"; gemms 0 to {len(sites) - 1}{hint}"
