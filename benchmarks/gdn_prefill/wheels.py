"""FlashInfer's pinned wheels from PyPI, of which only the kernel folder is kept."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from tilepass.core.errors import TilepassError

PACKAGE = "flashinfer-python"
WITHOUT_SKIP = "0.7.2.post1"
"""The last version whose prefill for SM12x multiplies by triangular operands densely."""
WITH_SKIP = "0.7.4"
"""A version whose prefill for SM12x leaves the zero atoms out by hand, and others do not."""
_KEPT = "flashinfer/gdn_kernels/"


def unpacked(version: str, cache: Path) -> Path:
    """The folder that holds `flashinfer/gdn_kernels` of a version; downloads it the first time.

    Raises TilepassError without a network, or where the wheel holds no such folder.
    """
    folder = cache / version
    if folder.is_dir():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        wheel = _download(version, Path(scratch))
        part = Path(scratch, "unpacked")
        with zipfile.ZipFile(wheel) as archive:
            kept = [name for name in archive.namelist() if name.startswith(_KEPT)]
            archive.extractall(part, kept)
        if not kept:
            raise TilepassError(f"{wheel.name} holds no {_KEPT}")
        # Whole or not at all: an interrupted download must not look like a finished one.
        part.rename(folder)
    return folder


def _download(version: str, folder: Path) -> Path:
    wanted = f"{PACKAGE}=={version}"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest"]
    done = subprocess.run([*command, str(folder), wanted], capture_output=True, text=True)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        said = done.stderr.strip().splitlines()
        reason = said[-1] if said else f"pip ended with {done.returncode}"
        raise TilepassError(
            f"cannot download {wanted} from the package index: {reason} (an unpacked wheel may be "
            f"put into {folder.parent / version})"
        )
    return wheels[0]
