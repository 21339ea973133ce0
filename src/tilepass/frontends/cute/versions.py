"""The version of the installed CuTe DSL."""

from __future__ import annotations

import functools
from importlib.metadata import version

from tilepass.core.pass_base import CompilerVersion
from tilepass.frontends.triton.versions import parse_version
from tilepass.ir.requirement import require

DISTRIBUTION = "nvidia-cutlass-dsl"
# The first one with trace-finalize hooks.
OLDEST = (4, 6)


@functools.cache
def cute_version() -> CompilerVersion:
    """The installed DSL, without importing it.

    Raises UnsupportedVersionError where there is none or it is too old.
    """
    require("cutlass", oldest=OLDEST, distribution=DISTRIBUTION)
    return CompilerVersion(DISTRIBUTION, parse_version(version(DISTRIBUTION)))
