"""The option `sites`: which gemms of a module a pass is to look at."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tilepass.core.errors import OptionError
from tilepass.passes.cute.cute_zero_mma.sites import GemmSite, OutOfReach

ALL = "all"


def selected(sites: Sequence[GemmSite | OutOfReach], text: str) -> list[GemmSite | OutOfReach]:
    """The gemms that the option names: `all`, or words joined by `+`.

    A word is an index (`3`), a line (`:1021` or `file.py:1021`), or a part of the source statement
    (`tNewVrC`). Raises OptionError where a word names no gemm, and where there is no word.
    """
    if text == ALL:
        return list(sites)
    words = list(filter(None, re.split(r"[\s+]+", text)))
    if not words:
        raise OptionError(f"sites='{text}' names no gemm{_known(sites)}")
    chosen: set[int] = set()
    for word in words:
        found = {site.index for site in sites if names(word, site)}
        if not found:
            raise OptionError(f"sites='{text}': no gemm matches '{word}'{_known(sites)}")
        chosen |= found
    return [site for site in sites if site.index in chosen]


def names(word: str, site: GemmSite | OutOfReach) -> bool:
    """Whether one word of the option stands for a gemm."""
    if word.isdecimal():
        return site.index == int(word)
    if not isinstance(site, GemmSite):
        return False
    file, colon, line = word.rpartition(":")
    if colon and line.isdecimal():
        place = site.location
        return place is not None and place.line == int(line) and place.file.endswith(file)
    return word.lower() in site.text.lower()


def _known(sites: Sequence[GemmSite | OutOfReach]) -> str:
    if not sites:
        return ": the module has none"
    located = any(isinstance(site, GemmSite) and site.location for site in sites)
    hint = "" if located else " (without line information only indices name one)"
    return f"; gemms 0 to {sites[-1].index}{hint}"
