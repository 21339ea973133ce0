"""FlashInfer's kernel folder from PyPI, unmodified or with edits."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tilepass.ab.gdn_study.wheels import WITHOUT_SKIP, unpacked

ROOT = Path(__file__).resolve().parent.parent
KERNELS = "flashinfer/gdn_kernels/delta_rule_dsl"


def flashinfer_folder(version: str = WITHOUT_SKIP) -> Path:
    """The unpacked wheel of a version: downloaded once, to $FLASHINFER_CACHE or out/flashinfer."""
    cache = os.environ.get("FLASHINFER_CACHE")
    return unpacked(version, Path(cache) if cache else ROOT / "out" / "flashinfer")


def edited(folder: Path, target: Path, edits: list[tuple[str, str]], file: str) -> Path:
    """A copy of a kernel folder in `target` with texts of one file replaced.

    Each text must be there exactly once.
    """
    copy = target / "edited"
    shutil.copytree(folder / KERNELS, copy / KERNELS, ignore=shutil.ignore_patterns("__pycache__"))
    path = copy / KERNELS / file
    text = path.read_text(encoding="utf-8")
    for before, after in edits:
        assert text.count(before) == 1, f"{text.count(before)} times in {file}: {before}"
        text = text.replace(before, after)
    path.write_text(text, encoding="utf-8")
    return copy
