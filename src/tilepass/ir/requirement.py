"""Whether an installed package is one that tilepass supports, told before it is imported."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from tilepass.core.errors import UnsupportedVersionError

_VERSION = re.compile(r"^__version__ = ['\"]([^'\"]+)['\"]", re.MULTILINE)


def require(package: str, oldest: tuple[int, ...], distribution: str) -> None:
    """Raise UnsupportedVersionError unless `package` is installed and not older than `oldest`.

    `distribution` is what to install.
    """
    needed = f"{distribution} >= {'.'.join(map(str, oldest))}"
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise UnsupportedVersionError(
            f"{package} is not installed in this Python (tilepass needs {needed})"
        )
    found = _version(Path(spec.origin), distribution)
    numbers = tuple(int(number) for number in re.findall(r"\d+", found)[: len(oldest)])
    if numbers < oldest:
        raise UnsupportedVersionError(
            f"{distribution} {found} is not supported (tilepass needs {needed})"
        )


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
