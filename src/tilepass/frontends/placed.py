"""Passes and the places where they run, whatever the compiler."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tilepass.core.anchor import Anchor
from tilepass.core.pass_base import Pass
from tilepass.core.pipeline_spec import parse_pipeline
from tilepass.core.registry import instantiate, load_file


@dataclass(frozen=True)
class Placed:
    """A pass and where it runs."""

    instance: Pass
    anchor: Anchor

    def __str__(self) -> str:
        """The pass in pipeline syntax, its options and anchor spelled out."""
        return f"{self.instance}@{self.anchor}"


def place_passes(pipeline_text: str, load: Iterable[str | Path] = ()) -> tuple[Placed, ...]:
    """The passes of a pipeline at the anchors given there, or at their own.

    `load` names Python files with passes. Imports the passes, but no compiler. Raises
    PipelineSyntaxError, UnknownPassError, OptionError.
    """
    for path in load:
        load_file(path)
    placed: list[Placed] = []
    for item in parse_pipeline(pipeline_text):
        instance = instantiate(item)
        placed.append(Placed(instance, item.anchor or instance.anchor))
    return tuple(placed)
