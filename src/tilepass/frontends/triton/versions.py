"""The Triton versions that tilepass supports, and what differs between them."""

from __future__ import annotations

import functools
import re
from importlib.util import find_spec
from pathlib import Path

from tilepass.core.errors import UnsupportedVersionError
from tilepass.core.pass_base import CompilerVersion

OLDEST, BELOW = (3, 6), (3, 10)
_VERSION = re.compile(r"^__version__ = ['\"]([^'\"]+)['\"]", re.MULTILINE)
SUPPORTED = ">= 3.6, < 3.10"


def parse_version(text: str) -> tuple[int, ...]:
    """`(3, 6, 0)` of `3.6.0+git1234`; numbers up to the first part that is not one."""
    match = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(int(part) for part in match[0].split(".")) if match else ()


@functools.cache
def triton_version() -> CompilerVersion:
    """The installed Triton, without importing it.

    Raises UnsupportedVersionError where there is none or it is outside the supported range.
    """
    spec = find_spec("triton")
    if spec is None or spec.origin is None:
        raise UnsupportedVersionError(
            f"Triton is not installed in this Python (tilepass needs triton {SUPPORTED})"
        )
    # The package's metadata say the same, but reading them takes 40 ms, a third of tilepass-opt.
    match = _VERSION.search(Path(spec.origin).read_text(encoding="utf-8"))
    if match is None:
        raise UnsupportedVersionError(f"{spec.origin} does not say which version it is")
    return check_version(match[1])


def check_version(text: str) -> CompilerVersion:
    """`text` as a version of Triton. Raises UnsupportedVersionError outside the range."""
    numbers = parse_version(text)
    if not OLDEST <= numbers[:2] < BELOW:
        raise UnsupportedVersionError(
            f"Triton {text} is not supported (tilepass needs triton {SUPPORTED})"
        )
    return CompilerVersion("triton", numbers)
