"""The compilers that tilepass supports: which versions, which are installed, told before either is
imported. pyproject.toml says the same to pip."""

from __future__ import annotations

import functools
import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tilepass.core.errors import UnsupportedVersionError
from tilepass.core.pass_base import CompilerVersion

_VERSION = re.compile(r"^__version__ = ['\"]([^'\"]+)['\"]", re.MULTILINE)


def parse_version(text: str) -> tuple[int, ...]:
    """`(3, 6, 0)` of `3.6.0+git1234`; numbers up to the first part that is not one."""
    match = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(int(part) for part in match[0].split(".")) if match else ()


@dataclass(frozen=True)
class Requirement:
    """A distribution from `oldest` on and, where that is set, `below` another version.

    `package` is what it is imported as, where that is another name; `called` what messages call
    an installed one.
    """

    distribution: str
    oldest: tuple[int, ...]
    below: tuple[int, ...] = ()
    package: str = ""
    called: str = ""

    @property
    def supported(self) -> str:
        """`>= 3.6, < 3.10`."""
        ends = ((">=", self.oldest), ("<", self.below))
        return ", ".join(f"{sign} {'.'.join(map(str, end))}" for sign, end in ends if end)

    def allows(self, numbers: tuple[int, ...]) -> bool:
        """Whether a version is supported."""
        return self.oldest <= numbers and (not self.below or numbers < self.below)

    def check(self, text: str) -> CompilerVersion:
        """`text` as a version. Raises UnsupportedVersionError outside the range."""
        numbers = parse_version(text)
        if not self.allows(numbers):
            called = self.called or self.distribution
            raise UnsupportedVersionError(f"{called} {text} is not supported ({self._needed})")
        return CompilerVersion(self.distribution, numbers)

    def installed(self) -> CompilerVersion:
        """The installed version, without importing it.

        Raises UnsupportedVersionError where there is none or it is outside the range.
        """
        package = self.package or self.distribution
        spec = find_spec(package)
        if spec is None or spec.origin is None:
            called = self.called or package
            raise UnsupportedVersionError(
                f"{called} is not installed in this Python ({self._needed})"
            )
        return self.check(_version(Path(spec.origin), self.distribution))

    @property
    def _needed(self) -> str:
        return f"tilepass needs {self.distribution} {self.supported}"


PYTHON = Requirement("Python", (3, 11), (3, 14))
TRITON = Requirement("triton", (3, 6), (3, 10), called="Triton")
# From the first one with trace-finalize hooks on.
CUTE = Requirement("nvidia-cutlass-dsl", (4, 6), package="cutlass")


@functools.cache
def triton_version() -> CompilerVersion:
    """The installed Triton. Raises UnsupportedVersionError as `Requirement.installed`."""
    return TRITON.installed()


@functools.cache
def cute_version() -> CompilerVersion:
    """The installed CuTe DSL. Raises UnsupportedVersionError as `Requirement.installed`."""
    return CUTE.installed()


@contextmanager
def importing(distribution: str) -> Generator[None]:
    """Around imports of what `distribution` holds: an installation in disorder is told as such.

    Raises UnsupportedVersionError. nvidia-cutlass-dsl itself raises RuntimeError where a native
    part is missing or is not made for the driver, the loader ImportError or OSError.
    """
    try:
        yield
    except (ImportError, OSError, RuntimeError) as error:
        raise UnsupportedVersionError(
            f"{distribution} is installed but cannot be imported: {type(error).__name__}: {error} "
            f"(reinstall it: pip install --force-reinstall {distribution})"
        ) from error


def _version(init: Path, distribution: str) -> str:
    """What the package's `__init__.py` says, else what its metadata say.

    Reading the metadata takes 40 ms, a third of a run of tilepass-opt.
    """
    if match := _VERSION.search(init.read_text(encoding="utf-8")):
        return match[1]
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(distribution)
    except PackageNotFoundError as error:
        raise UnsupportedVersionError(f"{init} does not say which version it is") from error
