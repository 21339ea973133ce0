"""Putting an arm in force."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path

import tilepass
from tilepass.ab.job import Arm
from tilepass.core.remarks import Remark
from tilepass.frontends.placed import place_passes


@contextmanager
def arm_enabled(arm: Arm) -> Generator[list[str]]:
    """Launches in the block compile with the arm's pipeline; yields the remarks made, as text.

    The remarks are complete after the block. An arm without a pipeline is the stock compiler.
    """
    remarks: list[str] = []
    if not arm.pipeline:
        yield remarks
        return
    from tilepass.activate import enabled

    with enabled(arm.pipeline, remarks="none") as session:
        yield remarks
    remarks.extend(portable_remarks(session.remarks))


def portable_remarks(remarks: Iterable[Remark]) -> tuple[str, ...]:
    """Remarks as text, each once."""
    return tuple(dict.fromkeys(_portable(remark.format()) for remark in remarks))


def _portable(text: str) -> str:
    """The text with file names that do not depend on where the sources lie: reports are kept."""
    for folder in (Path.cwd(), Path(tilepass.__file__).parents[1]):
        text = text.replace(f"{folder}{os.sep}", "")
    return text


def check_pipelines(arms: Sequence[Arm], load: Sequence[str]) -> None:
    """Raises TilepassError on a pass file, pass or option that cannot be used.

    So that a typing error is found before anything is compiled.
    """
    for arm in arms:
        place_passes(arm.pipeline, load)
