"""Putting an arm in force."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from tilepass.ab.job import Arm
from tilepass.core.pipeline_spec import parse_pipeline
from tilepass.core.registry import instantiate, load_file


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
    remarks.extend(dict.fromkeys(remark.format() for remark in session.remarks))


def check_pipelines(arms: Sequence[Arm], load: Sequence[str]) -> None:
    """Raises TilepassError on a pass file, pass or option that cannot be used.

    So that a typing error is found before anything is compiled.
    """
    for path in load:
        load_file(path)
    for arm in arms:
        for item in parse_pipeline(arm.pipeline):
            instantiate(item)
